//! Processes of other jobs between the connection and the shared memory of two ([`super::twos`]): what is posted before
//! it is known how it goes, what connections say about memory, and what is left when somebody has ended.

use super::above::{Above, By, OneOfTwo};
use super::net::Net;
use super::table::{DeviceKind, RankWay};
use super::twos::{MetBy, News};
use weft_device::{Device, Packet, PeerFault, Posted, ReceiveRoom, Sink};
use weft_wire::cell::{Head, INLINE_WORDS, Kind};
use weft_wire::share::Share;

impl Net {
    fn say(&mut self, to: u32, said: &Share) {
        let before = self.tcp.counters();
        let posted = self.tcp.post_control(to, Head::control(Kind::Share), &said.words());
        if posted == Posted::Full && !self.tcp.has_ended(to) {
            self.twos.unsaid.push((to, *said));
        }
        let now = self.tcp.counters();
        self.said.packets += now.packets - before.packets;
        self.said.bytes += now.bytes - before.bytes;
    }

    /// Polls the connections.
    pub(super) fn poll_connections(&mut self, above: &mut impl Above) -> bool {
        above.set_by_long_way(true);
        let sink = OneOfTwo { above, by: By::Connection };
        let any = self.tcp.poll(&mut Beside { sink, ways: &self.ways, news: &mut self.twos.news });
        above.set_by_long_way(false);
        if any || self.has_strangers_work() {
            self.settle_strangers(above);
        }
        any
    }

    /// Whether something is to be done although nothing has come over connections.
    #[inline]
    pub(super) fn has_strangers_work(&self) -> bool {
        !self.unmet.waiting.is_empty() || self.twos.leaving || !self.twos.unsaid.is_empty()
    }

    #[cold]
    fn settle_strangers(&mut self, above: &mut impl Above) {
        for (to, said) in std::mem::take(&mut self.twos.unsaid) {
            self.say(to, &said);
        }
        while let Some(rank) = self.unmet.take_wanted() {
            if let Some(said) = self.twos.offer(rank) {
                self.say(rank, &said);
            }
        }
        for (from, said) in std::mem::take(&mut self.twos.news.said) {
            if let Err(what) = self.hear(above, from, &said) {
                let story = format!("{} is lost: it has sent nonsense: {what}", self.tcp.title(from));
                above.handle_fault(PeerFault::Lost { peer: from, story });
            }
        }
        for fault in std::mem::take(&mut self.twos.news.lost) {
            self.twos.take_last(above, fault.peer());
            above.handle_fault(fault);
        }
        self.settle_ended(above);
        self.let_go();
    }

    /// Gives up the memory shared with those who have ended, once all that they have sent is taken.
    fn settle_ended(&mut self, above: &mut impl Above) {
        let all = self.twos.shared().iter().chain(&self.unmet.waiting);
        let ended: Vec<u32> = all.copied().filter(|rank| self.tcp.has_ended(*rank)).collect();
        self.twos.leaving = false;
        for rank in ended {
            if !above.is_lost(rank) {
                self.twos.take_last(above, rank);
            }
            // The copies look at slots in that memory.
            match above.has_copies_with(rank) {
                true => self.twos.leaving = true,
                false => self.leave_two(above, rank),
            }
        }
    }

    fn hear(&mut self, above: &mut impl Above, from: u32, said: &Share) -> Result<(), &'static str> {
        let now = match self.ways[from as usize].which {
            DeviceKind::Unmet => None,
            DeviceKind::Two => Some(MetBy::Memory),
            _ => Some(MetBy::Connection),
        };
        let answer = match said {
            Share::Offer { .. } => self.twos.hear_offer(above, from, now, said)?,
            Share::Taken { copies } => self.twos.hear_answer(above, from, Some(*copies)).map(|()| None)?,
            Share::NotTaken => self.twos.hear_answer(above, from, None).map(|()| None)?,
        };
        if now.is_none() && self.twos.agreed(from).is_some() {
            self.unmet.note_decided(from);
        }
        if let Some(answer) = answer {
            self.say(from, &answer);
        }
        Ok(())
    }

    /// The memory that is shared with a process goes, and what waits for it. What is posted from now on is the
    /// connection's to refuse.
    pub(super) fn leave_two(&mut self, above: &mut impl Above, rank: u32) {
        if self.twos.leave(rank) {
            self.unmet.forget(rank);
            self.ways[rank as usize].which = DeviceKind::Tcp;
            self.changed = true;
            above.share_copies(rank, None);
        }
    }

    /// Lets go what is held for those of whom it is known how packets go there.
    fn let_go(&mut self) {
        for rank in std::mem::take(&mut self.unmet.waiting) {
            let Some(agreed) = self.twos.agreed(rank) else {
                self.unmet.waiting.push(rank);
                continue;
            };
            let Self { unmet, twos, tcp, .. } = self;
            let Some(held) = unmet.of(rank) else { continue };
            let which = match agreed {
                MetBy::Memory => {
                    held.flush(twos, rank);
                    DeviceKind::Two
                }
                MetBy::Connection => {
                    held.flush(tcp, rank);
                    DeviceKind::Tcp
                }
            };
            if held.is_empty() {
                self.ways[rank as usize].which = which;
                self.changed = true;
                self.tcp.set_lifeline(rank, which != DeviceKind::Tcp);
            } else {
                self.unmet.waiting.push(rank);
            }
        }
    }
}

/// Takes out of what comes over connections what concerns shared memory.
struct Beside<'a, S> {
    sink: S,
    ways: &'a [RankWay],
    news: &'a mut News,
}

impl<S: Sink> Sink for Beside<'_, S> {
    #[inline]
    fn handle_packet(&mut self, packet: Packet<'_>) -> Result<(), &'static str> {
        if packet.head.kind != Kind::Share {
            return self.sink.handle_packet(packet);
        }
        let words: [u64; INLINE_WORDS] = std::array::from_fn(|at| packet.word(at));
        let said = Share::from_words(&words).ok_or("an offer of shared memory that is none")?;
        self.news.said.push((packet.from, said));
        Ok(())
    }

    fn handle_fault(&mut self, fault: PeerFault) {
        match self.ways.get(fault.peer() as usize) {
            // What it has sent before is taken first.
            Some(RankWay { which: DeviceKind::Two | DeviceKind::Unmet, .. }) => self.news.lost.push(fault),
            _ => self.sink.handle_fault(fault),
        }
    }

    fn room(&mut self, from: u32) -> Option<ReceiveRoom<'_>> {
        self.sink.room(from)
    }
}

//! Processes of other jobs between the connection and the shared memory of two ([`super::twos`]): what is posted before
//! it is known how it goes, what connections say about memory, and what is left when somebody has ended.

use super::Way;
use super::held::{Held, Out, words_of};
use super::net::Net;
use super::twos::{News, Posts, Renamed};
use super::upper::{By, Ordered, Upper};
use weft_device::{Device, Packet, PeerFault, Posted, Room, Sink};
use weft_wire::cell::{Head, INLINE_WORDS, Kind};
use weft_wire::segment::RING_CELLS;
use weft_wire::share::Share;

impl Net {
    /// A packet for a process of another job of which it is not known yet how packets go there.
    pub(super) fn post_unmet(&mut self, to: u32, head: Head, inline: &[u8], bulk: Option<&[u8]>) -> Posted {
        if self.tcp.has_ended(to) {
            // It says what there is to say of that.
            self.ways[to as usize] = Way::Tcp;
            return Decided { net: self, rank: to, way: Way::Tcp }.post(head, inline, bulk);
        }
        let (posted, unasked) = self.twos.keep(to, head, inline, bulk);
        if unasked && let Some(said) = self.twos.offer(to) {
            self.say(to, &said);
        }
        posted
    }

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
    pub(super) fn poll_connections(&mut self, upper: &mut impl Upper) -> bool {
        upper.set_long_way(true);
        let ordered = Ordered { upper, by: By::Connection };
        let any = self.tcp.poll(&mut Beside { ordered, ways: &self.ways, news: &mut self.twos.news });
        upper.set_long_way(false);
        if any || self.twos.has_work() {
            self.settle_strangers(upper);
        }
        any
    }

    #[cold]
    fn settle_strangers(&mut self, upper: &mut impl Upper) {
        for (to, said) in std::mem::take(&mut self.twos.unsaid) {
            self.say(to, &said);
        }
        for (from, said) in std::mem::take(&mut self.twos.news.said) {
            if let Err(what) = self.hear(upper, from, &said) {
                let story = format!("{} is lost: it has sent nonsense: {what}", self.tcp.title(from));
                upper.handle_fault(PeerFault::Lost { peer: from, story });
            }
        }
        for fault in std::mem::take(&mut self.twos.news.lost) {
            self.take_last(upper, fault.peer());
            upper.handle_fault(fault);
        }
        self.settle_ended(upper);
        self.let_go();
    }

    /// Gives up the memory shared with those who have ended, once all that they have sent is taken.
    fn settle_ended(&mut self, upper: &mut impl Upper) {
        let twos = &self.twos;
        let all: Vec<u32> = twos.twos.iter().map(|two| two.rank).chain(twos.waiting.iter().copied()).collect();
        self.twos.leaving = false;
        for rank in all.into_iter().filter(|rank| self.tcp.has_ended(*rank)).collect::<Vec<_>>() {
            if !upper.is_lost(rank) {
                self.take_last(upper, rank);
            }
            // The copies look at slots in that memory.
            match upper.has_copies_with(rank) {
                true => self.twos.leaving = true,
                false => self.leave_two(upper, rank),
            }
        }
    }

    fn hear(&mut self, upper: &mut impl Upper, from: u32, said: &Share) -> Result<(), &'static str> {
        let way = self.ways[from as usize];
        let answer = match said {
            Share::Offer { .. } => self.twos.hear_offer(upper, from, way, said)?,
            Share::Taken { copies } => self.twos.hear_answer(upper, from, Some(*copies)).map(|()| None)?,
            Share::NotTaken => self.twos.hear_answer(upper, from, None).map(|()| None)?,
        };
        if let Some(answer) = answer {
            self.say(from, &answer);
        }
        Ok(())
    }

    /// Takes what somebody who has ended has sent.
    fn take_last(&mut self, upper: &mut impl Upper, rank: u32) {
        let Some(two) = self.twos.twos.iter_mut().find(|two| two.rank == rank) else { return };
        // The ring is filled no more; who fills it all the same is not waited for.
        for _ in 0..2 * RING_CELLS {
            if !two.shm.poll(&mut Renamed { sink: upper, rank }) {
                break;
            }
        }
        two.has_left = true;
    }

    /// The memory that is shared with a process goes, and what waits for it. What is posted from now on is the
    /// connection's to refuse.
    pub(super) fn leave_two(&mut self, upper: &mut impl Upper, rank: u32) {
        let Some(stranger) = self.twos.stranger(rank) else { return };
        (stranger.held, stranger.offer, stranger.way) = (Held::default(), None, Some(Way::Tcp));
        self.ways[rank as usize] = Way::Tcp;
        self.changed = true;
        upper.share_copies(rank, None);
        let twos = &mut self.twos;
        twos.waiting.retain(|other| *other != rank);
        twos.unsaid.retain(|(other, _)| *other != rank);
        let Some(index) = twos.twos.iter().position(|two| two.rank == rank) else { return };
        twos.gone = {
            let (packets, bytes) = twos.twos[index].shm.posted();
            let wakeups = twos.twos[index].shm.wakeups;
            let Posts { packets: p, bytes: b, wakeups: w } = twos.gone;
            Posts { packets: p + packets, bytes: b + bytes, wakeups: w + wakeups }
        };
        twos.twos.swap_remove(index);
        if let Some(moved) = twos.twos.get(index) {
            let (rank, way) = (moved.rank, Way::Two(index as u32));
            if let Way::Two(_) = self.ways[rank as usize] {
                self.ways[rank as usize] = way;
            }
            if let Some(stranger) = twos.stranger(rank)
                && let Some(Way::Two(_)) = stranger.way
            {
                stranger.way = Some(way);
            }
        }
    }

    /// Lets go what is held for those of whom it is known how packets go there.
    fn let_go(&mut self) {
        for rank in std::mem::take(&mut self.twos.waiting) {
            let Some(stranger) = self.twos.stranger(rank) else { continue };
            let Some(way) = stranger.way else {
                self.twos.waiting.push(rank);
                continue;
            };
            let mut held = std::mem::take(&mut stranger.held);
            held.flush(&mut Decided { net: self, rank, way });
            if held.is_empty() {
                self.ways[rank as usize] = way;
                self.changed = true;
                self.tcp.set_lifeline(rank, way != Way::Tcp);
            } else {
                if let Some(stranger) = self.twos.stranger(rank) {
                    stranger.held = held;
                }
                self.twos.waiting.push(rank);
            }
        }
    }
}

/// The way to a process that was met.
struct Decided<'a> {
    net: &'a mut Net,
    rank: u32,
    way: Way,
}

impl Out for Decided<'_> {
    fn post(&mut self, head: Head, inline: &[u8], bulk: Option<&[u8]>) -> Posted {
        let (words, count) = words_of(inline);
        // SAFETY: the slices are readable for their lengths.
        unsafe {
            match (self.way, bulk) {
                (Way::Two(index), None) => {
                    let two = self.net.twos.at(index);
                    two.shm.post_short(two.them(), head, inline.as_ptr(), inline.len())
                }
                (Way::Two(index), Some(bulk)) => {
                    let two = self.net.twos.at(index);
                    two.shm.post_bulk(two.them(), head, &words[..count], bulk.as_ptr(), bulk.len())
                }
                (_, None) => self.net.tcp.post_short(self.rank, head, inline.as_ptr(), inline.len()),
                (_, Some(bulk)) => self.net.tcp.post_bulk(self.rank, head, &words[..count], bulk.as_ptr(), bulk.len()),
            }
        }
    }
}

/// Takes out of what comes over connections what concerns shared memory.
struct Beside<'a, U> {
    ordered: Ordered<'a, U>,
    ways: &'a [Way],
    news: &'a mut News,
}

impl<U: Upper> Sink for Beside<'_, U> {
    #[inline]
    fn handle_packet(&mut self, packet: Packet<'_>) -> Result<(), &'static str> {
        if packet.head.kind != Kind::Share {
            return self.ordered.handle_packet(packet);
        }
        let words: [u64; INLINE_WORDS] = std::array::from_fn(|at| packet.word(at));
        let said = Share::from_words(&words).ok_or("an offer of shared memory that is none")?;
        self.news.said.push((packet.from, said));
        Ok(())
    }

    fn handle_fault(&mut self, fault: PeerFault) {
        match self.ways.get(fault.peer() as usize) {
            // What it has sent before is taken first.
            Some(Way::Two(_) | Way::Unmet) => self.news.lost.push(fault),
            _ => self.ordered.handle_fault(fault),
        }
    }

    fn room(&mut self, from: u32) -> Option<Room<'_>> {
        self.ordered.room(from)
    }
}

//! A datagram that arrives: who sent it, whether it is whole and new, and what each part of the link learns from it.

use super::incoming::{Arrival, LinkPacket};
use super::sent::Acked;
use super::{BURST_DATAGRAMS, Gone, LEAST_DATAGRAMS, Link, Phase, Seal};
use weft_wire::link::header::{self, AT_ONCE, DELAY_UNIT_NS, DONE, Header, WANTS_ACK};

/// Why a datagram was not taken. Nothing has changed but a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    Malformed,
    Stranger,
    Stale,
    Replayed,
    Forged,
    BeyondCredit,
    /// The link has ended, or its peer is gone.
    NotAlive,
}

impl<S: Seal> Link<S> {
    /// Takes a datagram. Packets that are complete now go to `deliver`, in order; it answers whether it takes the
    /// packet. One that it does not take is offered again, with the next datagram or by [`Self::poll_delivered`], and
    /// the other side gets no credit for it meanwhile.
    #[inline]
    pub fn handle_datagram<F>(&mut self, now_ns: u64, datagram: &[u8], deliver: F) -> Result<(), Dropped>
    where
        F: FnMut(LinkPacket<'_>) -> bool,
    {
        match Header::parse(datagram) {
            Some(header) => self.handle_parsed(now_ns, header, datagram, deliver),
            None => {
                self.count(Dropped::Malformed);
                Err(Dropped::Malformed)
            }
        }
    }

    /// The same where the header has been parsed already, to find the link.
    #[inline]
    pub fn handle_parsed<F>(&mut self, now_ns: u64, header: Header, datagram: &[u8], deliver: F) -> Result<(), Dropped>
    where
        F: FnMut(LinkPacket<'_>) -> bool,
    {
        let mut room = std::mem::take(&mut self.opened);
        let taken = self.take_datagram(now_ns, header, datagram, &mut room, deliver);
        self.opened = room;
        taken
    }

    #[inline]
    fn take_datagram<F>(
        &mut self,
        now_ns: u64,
        header: Header,
        datagram: &[u8],
        room: &mut Vec<u8>,
        mut deliver: F,
    ) -> Result<(), Dropped>
    where
        F: FnMut(LinkPacket<'_>) -> bool,
    {
        let length = datagram.len();
        let (number, start, datagram) = match self.admit(&header, datagram, room) {
            Ok(admitted) => admitted,
            Err(why) => {
                self.count(why);
                return Err(why);
            }
        };
        self.counters.datagrams_received += 1;
        self.counters.bytes_received += length as u64;
        self.received.take(now_ns, number, header.floor);
        self.life.handle_heard(now_ns, header.flags & DONE != 0);
        let understood = self.handle_answers(now_ns, &header, datagram).and_then(|()| {
            let payload = &datagram[header.payload_at()..][..header.payload_bytes as usize];
            self.handle_payload(start, payload, &mut deliver)
        });
        match understood {
            Ok(at_once) if header.flags & WANTS_ACK != 0 => {
                let at_once = at_once || header.flags & AT_ONCE != 0;
                self.received.want_ack(now_ns, at_once, &self.config.ack);
            }
            Ok(_) => {}
            Err(what) => self.life.phase = Phase::Gone(Gone::Nonsense { what }),
        }
        self.look_for_end(now_ns);
        Ok(())
    }

    /// Offers packets again that were not taken.
    pub fn poll_delivered<F: FnMut(LinkPacket<'_>) -> bool>(&mut self, now_ns: u64, mut deliver: F) {
        if !self.life.is_alive() {
            return;
        }
        let delivered = self.incoming.hand_on(&mut |packet| {
            let taken = deliver(packet);
            self.counters.packets_received += u64::from(taken);
            taken
        });
        if let Err(what) = delivered {
            self.life.phase = Phase::Gone(Gone::Nonsense { what });
        }
        self.look_for_credit();
        self.look_for_end(now_ns);
    }

    /// Whether a datagram is ours, new and whole: its number, where its payload belongs, and what was sealed.
    #[inline]
    fn admit<'a>(
        &self,
        header: &Header,
        datagram: &'a [u8],
        room: &'a mut Vec<u8>,
    ) -> Result<(u64, u64, &'a [u8]), Dropped> {
        if !self.life.is_alive() {
            return Err(Dropped::NotAlive);
        }
        let (local, remote) = (self.config.local, self.config.remote);
        if (header.to, header.from) != (local, remote) {
            let ranks = (header.to.rank, header.from.rank) == (local.rank, remote.rank);
            return Err(if ranks { Dropped::Stale } else { Dropped::Stranger });
        }
        let number = self.received.fresh(header.number).ok_or(Dropped::Replayed)?;
        let payload_bytes = header.payload_bytes as usize;
        if header.payload_at() + payload_bytes + self.seal.bytes() > datagram.len() {
            return Err(Dropped::Malformed);
        }
        let opened = self.seal.open(number, datagram, header.payload_at(), room).ok_or(Dropped::Forged)?;
        let start = self.incoming.place(header.position, payload_bytes).ok_or(Dropped::BeyondCredit)?;
        Ok((number, start, opened))
    }

    fn count(&mut self, why: Dropped) {
        let counters = &mut self.counters;
        *match why {
            Dropped::Malformed => &mut counters.malformed,
            Dropped::Stranger => &mut counters.strangers,
            Dropped::Stale | Dropped::NotAlive => &mut counters.stale,
            Dropped::Replayed => &mut counters.replayed,
            Dropped::Forged => &mut counters.forged,
            Dropped::BeyondCredit => &mut counters.beyond_credit,
        } += 1;
    }

    /// What the datagram says of ours.
    #[inline]
    fn handle_answers(&mut self, now_ns: u64, header: &Header, datagram: &[u8]) -> Result<(), &'static str> {
        self.outgoing.handle_received(header.received).ok_or("a receipt for bytes that were never sent")?;
        if self.outgoing.handle_credit(header.credit) {
            self.uncredited = 0;
        }
        if header.run == 0 {
            return Ok(());
        }
        let words = (0..header.words as usize).map(|index| header::word(datagram, index));
        let acked = self.sent.handle_ack(header.acked, header.run, words);
        let acked = acked.ok_or("an acknowledgement of what was never sent")?;
        if acked.bytes > 0 || acked.overtaken > 0 {
            self.handle_acked(now_ns, header, &acked);
        }
        if self.sent.lost_at_ns(self.rtt.lost_after_ns()) <= now_ns {
            self.give_up_lost(now_ns);
        }
        Ok(())
    }

    #[inline]
    fn handle_acked(&mut self, now_ns: u64, header: &Header, acked: &Acked) {
        if acked.overtaken > 0 {
            self.counters.overtaken += u64::from(acked.overtaken);
            self.rtt.handle_overtaken();
        }
        let Some((newest, entry)) = acked.newest else { return };
        (self.unanswered, self.questions) = (0, 0);
        let is_largest = newest as u32 == header.acked;
        let rtt_ns = is_largest.then(|| {
            let waited_ns = u64::from(header.ack_delay) * DELAY_UNIT_NS;
            now_ns.saturating_sub(entry.sent_ns).saturating_sub(waited_ns).max(1)
        });
        if let Some(rtt_ns) = rtt_ns {
            self.rtt.handle_sample(rtt_ns);
        }
        if self.path.handle_arrived(now_ns, acked.longest as usize) {
            self.handle_new_size();
        }
        let (numbers, in_flight) = ((newest, self.sent.next()), self.sent.in_flight_bytes());
        if self.congestion.handle_arrived(now_ns, acked.bytes, numbers, rtt_ns, in_flight) {
            self.rtt.forget_overtaken();
            self.set_rate();
        }
    }

    /// Datagrams have another size from now on.
    pub(super) fn handle_new_size(&mut self) {
        let size = self.path.size() as u64;
        self.congestion.set_least(LEAST_DATAGRAMS * size);
        self.pacer.set_burst(BURST_DATAGRAMS * size);
    }

    /// The rate follows window and round trip, once a round.
    pub(super) fn set_rate(&mut self) {
        let (window, slow_start) = (self.congestion.window(), self.congestion.in_slow_start());
        self.pacer.set_rate(window, self.rtt.smoothed_ns(), slow_start);
    }

    /// Answers whether the payload is a reason to acknowledge at once.
    #[inline]
    fn handle_payload<F>(&mut self, start: u64, payload: &[u8], deliver: &mut F) -> Result<bool, &'static str>
    where
        F: FnMut(LinkPacket<'_>) -> bool,
    {
        if payload.is_empty() {
            return Ok(false);
        }
        let counters = &mut self.counters;
        let arrival = self.incoming.handle(start, payload, &mut |packet| {
            let taken = deliver(packet);
            counters.packets_received += u64::from(taken);
            taken
        })?;
        self.counters.duplicates += u64::from(arrival == Arrival::Duplicate);
        self.look_for_credit();
        Ok(arrival != Arrival::InOrder)
    }

    fn look_for_credit(&mut self) {
        if self.incoming.has_news_of_credit() {
            self.received.want_update();
        }
    }

    #[inline]
    fn look_for_end(&mut self, now_ns: u64) {
        if self.incoming.ended() && self.outgoing.is_through() {
            self.life.handle_finished(now_ns);
        }
    }
}

//! The receiving end from one peer: takes packets out of its ring, and gives back cells and bytes.

use super::distance::Reading;
use super::doorbell::Mailbox;
use super::outgoing::ShmOutgoing;
use super::ring::{BORROWED, BulkConsumer, Cell, Consumer, LARGEST_PACKET, PAST_CACHES, borrowed_claim};
use super::views::PairView;
use crate::contract::{Foreign, Packet, PeerFault, Sink};
use crate::sync::Ordering;
use weft_wire::cell::{INLINE_WORDS, decode};
use weft_wire::segment::BULK_BYTES;

/// Receiving end from one peer.
pub(super) struct ShmIncoming {
    pub(super) cells: Consumer<'static>,
    bulk: BulkConsumer<'static>,
    reading: Reading,
    pair: PairView,
    /// The sender's mailbox: it may sleep for want of credits.
    mailbox: Mailbox<'static>,
    pub(super) broken: bool,
    /// Stands in the device's list of polled rings.
    pub(super) polled: bool,
    /// Polls in a row that found a packet.
    in_a_row: u32,
    /// The last packet was a part of a message of which more is to come.
    more_follows: bool,
}

/// A shorter answer is not worth the trouble.
const LEAST_BORROWED: usize = 1024;

/// Polls that find a packet before the sender is taken to send a burst.
const BURST_AFTER: u32 = 2;
/// Packets of a burst that are taken before the next ring has its turn.
const BURST_BUDGET: usize = 8;

impl ShmIncoming {
    /// The end of `pair`, whose sender has the mailbox `sender`.
    pub(super) fn new(pair: PairView, sender: Mailbox<'static>) -> Self {
        Self {
            cells: Consumer::new(pair.cells, pair.credits),
            bulk: BulkConsumer::new(pair.credits, BULK_BYTES),
            reading: Reading::default(),
            pair,
            mailbox: sender,
            broken: false,
            in_a_row: 0,
            more_follows: false,
            polled: false,
        }
    }

    /// Takes one packet, or several in a burst or of one message.
    ///
    /// Otherwise a look at the next cell would pull its line from the sender's core, and everything that follows, such
    /// as a reply, would wait for that. While more of a message is to come, nobody can reply to it.
    #[inline]
    pub(super) fn drain<S: Sink>(
        &mut self,
        from: u32,
        mut back: Option<&mut ShmOutgoing>,
        sink: &mut S,
        wakeups: &mut u64,
    ) -> bool {
        let Some((cell, first)) = self.cells.arrived() else {
            self.in_a_row = 0;
            if self.cells.unreported() > 0 {
                self.report(wakeups);
            }
            return false;
        };
        self.in_a_row = self.in_a_row.saturating_add(1);
        let in_burst = self.in_a_row > BURST_AFTER;
        let mut next = Some((cell, first));
        for _ in 0..BURST_BUDGET {
            let Some((cell, first)) = next else { break };
            if in_burst {
                self.cells.fetch_following();
            }
            if !self.take(from, (cell, first), back.as_deref_mut(), sink, wakeups) {
                return false;
            }
            if !in_burst && !self.more_follows {
                break;
            }
            next = self.cells.arrived();
        }
        true
    }

    #[inline]
    fn take<S: Sink>(
        &mut self,
        from: u32,
        cell: (&Cell, u64),
        back: Option<&mut ShmOutgoing>,
        sink: &mut S,
        wakeups: &mut u64,
    ) -> bool {
        if self.broken {
            return false;
        }
        if let Err(what) = self.deliver(from, cell, back, sink) {
            self.broken = true;
            sink.handle_fault(PeerFault::Nonsense { peer: from, what });
            return true;
        }
        if self.cells.consume() {
            self.report(wakeups);
        }
        true
    }

    #[inline]
    fn deliver<S: Sink>(
        &mut self,
        from: u32,
        (cell, first): (&Cell, u64),
        back: Option<&mut ShmOutgoing>,
        sink: &mut S,
    ) -> Result<(), &'static str> {
        let second = cell.head[1].load(Ordering::Relaxed);
        let claim = decode(first, second).ok_or("a header with an unknown kind, length or flag")?;
        let mut packet = Packet {
            from,
            head: claim.head,
            inline_bytes: claim.inline_bytes as usize,
            words: &cell.inline,
            bulk: None,
        };
        self.more_follows = false;
        if !claim.bulk {
            return sink.handle_packet(packet);
        }
        // Read once: the peer may change it.
        let word = packet.word(INLINE_WORDS - 1);
        if word & BORROWED != 0 {
            return self.deliver_borrowed(packet, word, back, sink);
        }
        let length = word & !PAST_CACHES;
        if length > LARGEST_PACKET as u64 {
            return Err("a bulk length above the largest packet");
        }
        let offset = self.bulk.locate(length).ok_or("a bulk length that does not fit the area")?;
        self.cells.fetch_following();
        // SAFETY: offset + length lies inside the bulk area (locate), which is mapped as long as the device lives.
        packet.bulk = Some(unsafe { Foreign::new(self.pair.bulk.add(offset), length as usize) });
        let read = self.reading.begin(length as usize, word != length);
        sink.handle_packet(packet)?;
        self.more_follows = sink.room(from).is_some();
        if let Some(said) = self.reading.end(read) {
            self.pair.credits.reading.store(said, Ordering::Relaxed);
        }
        if self.bulk.consume(length) {
            self.report(&mut 0);
        }
        Ok(())
    }

    /// Delivers what stands in the area of what we send to its sender.
    fn deliver_borrowed<S: Sink>(
        &mut self,
        mut packet: Packet<'_>,
        word: u64,
        back: Option<&mut ShmOutgoing>,
        sink: &mut S,
    ) -> Result<(), &'static str> {
        let (from, (offset, length)) = (packet.from, borrowed_claim(word));
        // Beyond what we have seen to there may be no memory.
        let fits = |out: &&mut ShmOutgoing| (1..=LARGEST_PACKET).contains(&length) && offset + length <= out.populated;
        let out = back.filter(fits).ok_or("an answer in bytes that were not lent")?;
        self.cells.fetch_following();
        // SAFETY: offset + length lies inside the bulk area, which is mapped as long as the device lives.
        packet.bulk = Some(unsafe { Foreign::new(out.pair.bulk.add(offset), length) });
        sink.handle_packet(packet)?;
        self.more_follows = sink.room(from).is_some();
        out.bulk.take_back();
        Ok(())
    }

    /// Bytes of the peer's area for a packet to it: where they are, and where in the area.
    #[inline]
    pub(super) fn borrow(&mut self, length: usize) -> Option<(*mut u8, usize)> {
        self.bulk.answer();
        if length < LEAST_BORROWED {
            return None;
        }
        let offset = self.bulk.borrow(length)?;
        Some((self.pair.bulk.wrapping_add(offset), offset))
    }

    /// Bytes of all packets that went to the peer in bytes borrowed from it.
    pub(super) fn borrowed_bytes(&self) -> u64 {
        self.bulk.loan_bytes()
    }

    /// Returns credits for everything, also for what an answer could be written into.
    pub(super) fn report_all(&mut self, wakeups: &mut u64) {
        if self.cells.unreported() > 0 || self.bulk.unreported() > 0 {
            self.bulk.report_all();
            self.report(wakeups);
        }
    }

    /// Returns credits, and wakes a sender that sleeps for want of them.
    pub(super) fn report(&mut self, wakeups: &mut u64) {
        self.cells.report();
        self.bulk.report();
        if self.mailbox.wake_starved(self.pair.starved) {
            *wakeups += 1;
        }
    }
}

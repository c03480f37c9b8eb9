//! The `shm` device: rings to and from every other member.

use super::doorbell::Mailbox;
use super::ring::{BulkConsumer, BulkProducer, Cell, Consumer, Producer};
use super::segment::{Segment, SegmentError};
use super::slots::CopySlots;
use super::views::{PairView, Views};
use crate::contract::{Capabilities, Device, Foreign, Packet, PeerFault, Posted, Sink};
use crate::sync::{AtomicU32, Ordering, light_barrier};
use weft_wire::cell::{CONTROL_WORDS, Head, INLINE_BYTES, INLINE_WORDS, decode};
use weft_wire::segment::{BULK_BYTES, pair};

/// Largest bulk payload of one packet: long enough to amortise the header, short enough that both sides copy at the
/// same time.
pub const LARGEST_PACKET: usize = 8 * 1024;

/// Sending end to one peer.
struct Outgoing {
    cells: Producer<'static>,
    bulk: BulkProducer<'static>,
    pair: PairView,
    mailbox: Mailbox<'static>,
}

/// Receiving end from one peer.
struct Incoming {
    cells: Consumer<'static>,
    bulk: BulkConsumer<'static>,
    pair: PairView,
    /// The sender's mailbox: it may sleep for want of credits.
    mailbox: Mailbox<'static>,
    broken: bool,
}

/// The device of one member. References in it live as long as `views.memory` (VIEW-KEEPS-MEMORY).
pub struct ShmDevice {
    outgoing: Vec<Option<Box<Outgoing>>>,
    incoming: Vec<Option<Box<Incoming>>>,
    /// Peers that are polled: those whose bit was set in the mailbox.
    polled: Vec<u32>,
    /// The words of the active set as last seen.
    seen: Vec<u64>,
    mailbox: Mailbox<'static>,
    /// Everybody's mailbox.
    bells: Vec<Mailbox<'static>>,
    me: u32,
    /// Wake-ups sent, for the status page.
    pub wakeups: u64,
    segment: Segment,
    views: Views,
}

// SAFETY: the raw pointers lead into the mapping, which any thread may use; the device itself is used by one at a time.
unsafe impl Send for ShmDevice {}

impl ShmDevice {
    /// Joins `segment` as `me`.
    pub fn join(segment: Segment, me: u32) -> Result<Self, SegmentError> {
        let members = segment.members();
        if me >= members {
            return Err(SegmentError::Member { member: me, members });
        }
        // A failure shows in the segment's header: its creator tried the same kernel.
        let _ = crate::sys::membarrier_register();
        crate::sys::allow_attach();
        let views = segment.views.clone();
        segment.set_pid(me, std::process::id());
        let mailbox = views.mailbox(me);
        Ok(Self {
            outgoing: (0..members).map(|_| None).collect(),
            incoming: (0..members).map(|_| None).collect(),
            polled: Vec::new(),
            seen: vec![0; mailbox.active.len()],
            mailbox,
            bells: (0..members).map(|m| views.mailbox(m)).collect(),
            me,
            wakeups: 0,
            segment,
            views,
        })
    }

    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    #[inline]
    fn outgoing(&mut self, to: u32) -> &mut Outgoing {
        if self.outgoing[to as usize].is_none() {
            self.open_outgoing(to);
        }
        self.outgoing[to as usize].as_mut().expect("just opened")
    }

    #[cold]
    fn open_outgoing(&mut self, to: u32) {
        // Too little memory is an error here and not a SIGBUS at the first touch.
        let base = self.views.geometry.pair(self.me, to);
        if let Err(cause) = self.views.memory.populate(base, pair::BULK) {
            panic!("weft: not enough memory to talk to rank {to}: {cause}");
        }
        let pair = self.views.pair(self.me, to);
        self.outgoing[to as usize] = Some(Box::new(Outgoing {
            cells: Producer::new(pair.cells, pair.credits),
            bulk: BulkProducer::new(pair.credits, BULK_BYTES),
            pair,
            mailbox: self.views.mailbox(to),
        }));
    }

    #[cold]
    fn open_incoming(&mut self, from: u32) {
        let pair = self.views.pair(from, self.me);
        self.incoming[from as usize] = Some(Box::new(Incoming {
            cells: Consumer::new(pair.cells, pair.credits),
            bulk: BulkConsumer::new(pair.credits, BULK_BYTES),
            pair,
            mailbox: self.views.mailbox(from),
            broken: false,
        }));
    }

    /// Takes over the changes of one word of the active set.
    #[cold]
    fn refresh_polled(&mut self, index: usize, now: u64) {
        let members = self.views.geometry.members;
        let mut fresh = now & !self.seen[index];
        while fresh != 0 {
            let from = index as u32 * 64 + fresh.trailing_zeros();
            fresh &= fresh - 1;
            // A claim: only members other than ourselves have rings.
            if from >= members || from == self.me {
                continue;
            }
            if self.incoming[from as usize].is_none() {
                self.open_incoming(from);
            }
            self.polled.push(from);
        }
        self.seen[index] = now;
    }

    #[inline]
    fn notice_new_senders(&mut self) {
        for index in 0..self.mailbox.active.len() {
            let now = self.mailbox.active[index].load(Ordering::Relaxed);
            if now != self.seen[index] {
                self.refresh_polled(index, now);
            }
        }
    }

    /// Lies down: after this, whoever sends rings the doorbell. Answers true if nothing had arrived before, so that
    /// the caller may sleep; otherwise the caller must poll (after [`Self::disarm`]).
    pub fn arm(&mut self) -> bool {
        self.announce_starvation();
        let mut before = Vec::with_capacity(self.seen.len());
        self.mailbox.lie_down(|_, word| before.push(word));
        self.polled.clear();
        self.seen.fill(0);
        let mut quiet = true;
        for (index, word) in before.iter().enumerate() {
            let mut rest = *word;
            while rest != 0 {
                let from = index as u32 * 64 + rest.trailing_zeros();
                rest &= rest - 1;
                if from >= self.views.geometry.members || from == self.me {
                    continue;
                }
                if self.incoming[from as usize].is_none() {
                    self.open_incoming(from);
                }
                let ring = self.incoming[from as usize].as_ref().expect("just opened");
                if !ring.broken && ring.cells.arrived().is_some() {
                    // It stays active: nobody announces this cell again.
                    self.mailbox.active[index].fetch_or(1 << (from % 64), Ordering::SeqCst);
                    quiet = false;
                }
            }
        }
        // Senders that joined between the clearing and the barrier are in the set again.
        quiet && self.mailbox.active.iter().all(|w| w.load(Ordering::SeqCst) == 0) && self.no_credit_came()
    }

    /// Gets up.
    pub fn disarm(&mut self) {
        self.mailbox.get_up();
        for out in self.outgoing.iter().flatten() {
            if out.pair.starved.load(Ordering::Relaxed) != 0 {
                out.pair.starved.store(0, Ordering::Relaxed);
            }
        }
    }

    fn announce_starvation(&mut self) {
        for out in self.outgoing.iter_mut().flatten() {
            if out.cells.vacant().is_none() || out.bulk.room(1).is_none() {
                out.pair.starved.store(1, Ordering::SeqCst);
            }
        }
    }

    fn no_credit_came(&mut self) -> bool {
        self.outgoing.iter_mut().flatten().all(|out| {
            out.pair.starved.load(Ordering::Relaxed) == 0
                || (out.cells.vacant().is_none() || out.bulk.room(1).is_none())
        })
    }

    /// Wakes `member` if it sleeps. To be called after storing into shared memory what the member waits for.
    #[inline]
    pub fn wake(&mut self, member: u32) {
        if self.bells[member as usize].rouse() {
            self.wakeups += 1;
        }
    }

    /// Orders an earlier store into shared memory before a later load, against a sleeper's barrier.
    #[inline]
    pub fn order_before_look(&self) {
        self.mailbox.order();
    }

    /// The copy slots of the segment, for long messages.
    pub fn copy_slots(&self) -> CopySlots {
        CopySlots::new(self.views.clone(), self.me)
    }

    /// Whether a bulk payload of `length` bytes would leave whole now, as one packet.
    #[inline]
    pub fn takes_whole(&mut self, to: u32, length: usize) -> bool {
        length <= LARGEST_PACKET && self.outgoing(to).bulk.room(length).is_some_and(|(_, piece)| piece == length)
    }
}

impl Outgoing {
    #[inline]
    fn finish(&mut self, me: u32, first: u64, wakeups: &mut u64) {
        self.cells.publish(first);
        if self.mailbox.announce(me) {
            *wakeups += 1;
        }
    }
}

impl Device for ShmDevice {
    fn capabilities(&self) -> Capabilities {
        Capabilities { largest_packet: LARGEST_PACKET, reliable: true, ordered: true, inline_bytes: INLINE_BYTES }
    }

    #[inline]
    unsafe fn post_short(&mut self, to: u32, head: Head, data: *const u8, length: usize) -> Posted {
        debug_assert!(length <= INLINE_BYTES);
        let me = self.me;
        let out = self.outgoing(to);
        let Some(cell) = out.cells.vacant() else { return Posted::Full };
        cell.head[1].store(head.second_word(), Ordering::Relaxed);
        let whole = length / 8;
        for i in 0..whole {
            // SAFETY: i * 8 + 8 <= length, readable by the caller's promise.
            let word = unsafe { data.cast::<u64>().add(i).read_unaligned() };
            cell.inline[i].store(word, Ordering::Relaxed);
        }
        let rest = length % 8;
        if rest > 0 {
            let mut word = [0u8; 8];
            // SAFETY: whole * 8 + rest == length.
            unsafe { std::ptr::copy_nonoverlapping(data.add(whole * 8), word.as_mut_ptr(), rest) };
            cell.inline[whole].store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
        let mut woken = 0;
        out.finish(me, head.first_word(length as u8, false), &mut woken);
        self.wakeups += woken;
        Posted::Sent(0)
    }

    fn post_control(&mut self, to: u32, head: Head, control: &[u64]) -> Posted {
        debug_assert!(control.len() <= INLINE_WORDS);
        // SAFETY: the slice is readable for its bytes.
        unsafe { self.post_short(to, head, control.as_ptr().cast(), control.len() * 8) }
    }

    unsafe fn post_bulk(&mut self, to: u32, head: Head, control: &[u64], data: *const u8, length: usize) -> Posted {
        debug_assert!(control.len() <= CONTROL_WORDS);
        let me = self.me;
        let out = self.outgoing(to);
        let Some(cell) = out.cells.vacant() else { return Posted::Full };
        let Some((offset, piece)) = out.bulk.room(length.min(LARGEST_PACKET)) else { return Posted::Full };
        // SAFETY: offset + piece lies inside the bulk area, and the peer has given these bytes back (return-credit).
        unsafe { std::ptr::copy_nonoverlapping(data, out.pair.bulk.add(offset), piece) };
        out.bulk.take(piece);
        cell.head[1].store(head.second_word(), Ordering::Relaxed);
        for (word, value) in cell.inline.iter().zip(control) {
            word.store(*value, Ordering::Relaxed);
        }
        cell.inline[INLINE_WORDS - 1].store(piece as u64, Ordering::Relaxed);
        let mut woken = 0;
        out.finish(me, head.first_word((control.len() * 8) as u8, true), &mut woken);
        self.wakeups += woken;
        Posted::Sent(piece)
    }

    #[inline]
    fn poll<S: Sink>(&mut self, sink: &mut S) -> bool {
        self.notice_new_senders();
        let mut any = false;
        for i in 0..self.polled.len() {
            let from = self.polled[i];
            let ring = self.incoming[from as usize].as_mut().expect("polled rings are open");
            // One packet per ring and pass: a look at the next cell would pull its line from the sender's core, and
            // everything that follows, such as a reply, would wait for that.
            if let Some((cell, first)) = ring.cells.arrived() {
                any |= ring.take(from, cell, first, sink, &mut self.wakeups);
            } else if ring.cells.unreported() > 0 {
                ring.report(&mut self.wakeups);
            }
        }
        any
    }
}

impl Incoming {
    #[inline]
    fn take<S: Sink>(&mut self, from: u32, cell: &Cell, first: u64, sink: &mut S, wakeups: &mut u64) -> bool {
        if self.broken {
            return false;
        }
        if let Err(what) = self.deliver(from, cell, first, sink) {
            self.broken = true;
            sink.handle_fault(PeerFault { peer: from, what });
            return true;
        }
        if self.cells.consume() {
            self.report(wakeups);
        }
        true
    }

    #[inline]
    fn deliver<S: Sink>(&mut self, from: u32, cell: &Cell, first: u64, sink: &mut S) -> Result<(), &'static str> {
        let second = cell.head[1].load(Ordering::Relaxed);
        let claim = decode(first, second).ok_or("a header with an unknown kind, length or flag")?;
        let mut packet = Packet {
            from,
            head: claim.head,
            inline_bytes: claim.inline_bytes as usize,
            words: &cell.inline,
            bulk: None,
        };
        if !claim.bulk {
            sink.handle_packet(packet);
            return Ok(());
        }
        // Read once: the peer may change it.
        let length = packet.word(INLINE_WORDS - 1);
        if length > LARGEST_PACKET as u64 {
            return Err("a bulk length above the largest packet");
        }
        let offset = self.bulk.locate(length).ok_or("a bulk length that does not fit the area")?;
        // SAFETY: offset + length lies inside the bulk area (locate), which is mapped as long as the device lives.
        packet.bulk = Some(unsafe { Foreign::new(self.pair.bulk.add(offset), length as usize) });
        sink.handle_packet(packet);
        if self.bulk.consume(length) {
            self.report(&mut 0);
        }
        Ok(())
    }

    /// Returns credits, and wakes a sender that sleeps for want of them.
    fn report(&mut self, wakeups: &mut u64) {
        self.cells.report();
        self.bulk.report();
        // ORDER: ring-doorbell, with the credit in the place of the cell.
        light_barrier();
        let starved: &AtomicU32 = self.pair.starved;
        if starved.load(Ordering::Relaxed) != 0 && self.mailbox.is_asleep() && self.mailbox.ring() {
            *wakeups += 1;
        }
    }
}

//! The `shm` device: rings to and from every other member.

mod cut_off;

use super::doorbell::{Mailbox, members_of};
use super::incoming::ShmIncoming;
use super::outgoing::{Lack, ShmOutgoing};
use super::ring::{LARGEST_PACKET, PAST_CACHES, borrowed_word};
use super::segment::{Segment, SegmentError};
use super::slots::CopySlots;
use super::views::Views;
use crate::contract::{Capabilities, Device, NoMemory, Posted, Sink};
use crate::copying;
use crate::past_caches::hand_on;
use crate::sync::{Label, Ordering, owner_barrier, sender_barrier};
use std::ops::Range;
use weft_wire::cell::{CELL_BYTES, CONTROL_WORDS, Head, INLINE_BYTES, INLINE_WORDS};
use weft_wire::segment::pair;

/// Steps in which the bulk area gets its memory during its first lap.
const POPULATE_BYTES: usize = 16 * 1024;

/// So many of the first bytes of an answer are handed on; the reader fetches those behind them ahead.
const HANDED_ON_BYTES: usize = 2048;

/// The device of one member. References in it live as long as `views.memory` (VIEW-KEEPS-MEMORY).
pub struct ShmDevice {
    outgoing: Vec<Option<Box<ShmOutgoing>>>,
    incoming: Vec<Option<Box<ShmIncoming>>>,
    /// Peers that are polled: those whose bit was set in the mailbox.
    polled: Vec<u32>,
    /// The words of the active set as last seen.
    seen: Vec<u64>,
    mailbox: Mailbox<'static>,
    /// Everybody's mailbox.
    bells: Vec<Mailbox<'static>>,
    /// So many members from 0 on are known to order others, which they do for good.
    ordering: u32,
    /// Why nothing can be sent to some, not yet told; and who they are.
    refusals: Vec<NoMemory>,
    unreachable: Vec<u32>,
    me: u32,
    /// Something has come since the last packet with bulk payload left: whoever sent it may wait for an answer.
    heard: bool,
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
        let device = Self::enter(segment, me, crate::kernel::register_for_barriers().is_err())?;
        crate::sys::allow_attach();
        device.segment.set_process(me);
        Ok(device)
    }

    /// Joins as a process to which `membarrier` is refused if it `fences`.
    fn enter(segment: Segment, me: u32, fences: bool) -> Result<Self, SegmentError> {
        let members = segment.members();
        if me >= members {
            return Err(SegmentError::Member { member: me, members });
        }
        let views = segment.views.clone();
        let mailbox = views.mailbox(me, fences);
        mailbox.open();
        Ok(Self {
            outgoing: (0..members).map(|_| None).collect(),
            incoming: (0..members).map(|_| None).collect(),
            polled: Vec::new(),
            seen: vec![0; mailbox.active.len()],
            mailbox,
            bells: (0..members).map(|m| views.mailbox(m, fences)).collect(),
            ordering: 0,
            refusals: Vec::new(),
            unreachable: Vec::new(),
            me,
            heard: false,
            wakeups: 0,
            segment,
            views,
        })
    }

    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// `None` if there is no memory for it.
    #[inline]
    fn outgoing(&mut self, to: u32) -> Option<&mut ShmOutgoing> {
        if self.outgoing[to as usize].is_none() {
            self.open_outgoing(to);
        }
        self.outgoing[to as usize].as_deref_mut()
    }

    #[cold]
    fn open_outgoing(&mut self, to: u32) {
        if !self.populate(to, 0..pair::BULK) {
            return;
        }
        let pair = self.views.pair(self.me, to);
        self.outgoing[to as usize] = Some(Box::new(ShmOutgoing::new(pair, self.bells[to as usize])));
    }

    /// Sees to memory behind a part of the pair towards `to`: too little of it is an answer here, and would be a SIGBUS
    /// at the first touch. False if there is none, now or before.
    fn populate(&mut self, to: u32, part: Range<usize>) -> bool {
        if self.unreachable.contains(&to) {
            return false;
        }
        let base = self.views.geometry.pair(self.me, to);
        let Err(cause) = self.views.memory.populate(base + part.start, part.len()) else { return true };
        self.unreachable.push(to);
        self.wakeups += u64::from(cut_off::tell(&self.views, self.me, to, &self.bells[to as usize]));
        self.refusals.push(NoMemory { peer: to, cause });
        false
    }

    /// Sees to memory behind the first `end` bytes of the bulk area towards `to`, and somewhat more.
    #[cold]
    fn populate_bulk(&mut self, to: u32, end: usize) -> bool {
        let end = end.next_multiple_of(POPULATE_BYTES);
        let start = self.outgoing[to as usize].as_ref().map_or(0, |out| out.populated);
        let populated = self.populate(to, pair::BULK + start..pair::BULK + end);
        if let (true, Some(out)) = (populated, &mut self.outgoing[to as usize]) {
            out.populated = end;
        }
        populated
    }

    #[cold]
    fn open_incoming(&mut self, from: u32) {
        let (pair, sender) = (self.views.pair(from, self.me), self.bells[from as usize]);
        self.incoming[from as usize] = Some(Box::new(ShmIncoming::new(pair, sender)));
    }

    /// Takes over the changes of one word of the active set. True if there was an alert.
    #[cold]
    fn refresh_polled(&mut self, index: usize, now: u64) -> bool {
        let news = now & !self.seen[index];
        for from in members_of(index, news) {
            // A bit may come and go as a peer likes; a ring is polled once all the same.
            if let Some(ring) = self.claimed_sender(from)
                && !ring.broken
                && !std::mem::replace(&mut ring.polled, true)
            {
                self.polled.push(from);
            }
        }
        self.seen[index] = now;
        self.me as usize / 64 == index && news & (1 << (self.me % 64)) != 0
    }

    /// The ring from `from`, which is a claim: only members other than ourselves have rings.
    fn claimed_sender(&mut self, from: u32) -> Option<&mut ShmIncoming> {
        if from >= self.views.geometry.members || from == self.me {
            return None;
        }
        if self.incoming[from as usize].is_none() {
            self.open_incoming(from);
        }
        self.incoming[from as usize].as_deref_mut()
    }

    /// True if there was an alert.
    #[inline]
    fn notice_new_senders(&mut self) -> bool {
        let mut alerted = false;
        for index in 0..self.mailbox.active.len() {
            let now = self.mailbox.active[index].load(Ordering::Relaxed);
            if now != self.seen[index] {
                alerted |= self.refresh_polled(index, now);
            }
        }
        alerted
    }

    fn announce_starvation(&mut self) {
        for out in self.outgoing.iter_mut().flatten().filter(|out| out.lack != Lack::Nothing) {
            out.pair.starved.store(1, Ordering::SeqCst);
        }
    }

    /// Whether everybody who was refused would be refused again.
    fn no_credit_came(&mut self) -> bool {
        let mut none = true;
        for out in self.outgoing.iter_mut().flatten() {
            let came = match out.lack {
                Lack::Nothing => false,
                Lack::Cell => out.cells.vacant().is_some(),
                Lack::Bulk => out.cells.vacant().is_some() && out.bulk.room(1).is_some(),
            };
            if came {
                out.lack = Lack::Nothing;
                none = false;
            }
        }
        none
    }

    /// Wakes `member` if it sleeps. To be called after storing into shared memory what the member waits for.
    #[inline]
    pub fn wake(&mut self, member: u32) {
        if self.bells[member as usize].rouse() {
            self.wakeups += 1;
        }
    }

    /// Orders an earlier store into shared memory before a later load, against the barrier of whoever sleeps.
    #[inline]
    pub fn order_before_look(&mut self) {
        sender_barrier(Label::AnnounceSender, !self.all_order());
    }

    /// Whether all members order us before they sleep, as far as we know.
    #[inline]
    fn all_order(&mut self) -> bool {
        while let Some(bell) = self.bells.get(self.ordering as usize) {
            if bell.needs_fence() {
                return false;
            }
            self.ordering += 1;
        }
        true
    }

    /// From now on this member sleeps on the bell of this number, and not on its doorbell.
    pub fn sleep_on_bell(&mut self, number: u64) {
        self.mailbox.bell.store(number, Ordering::Relaxed);
    }

    /// The number of the bell that this member sleeps on; 0 for none.
    pub fn bell(&self) -> u64 {
        self.mailbox.bell.load(Ordering::Relaxed)
    }

    /// Packets that were posted, and the bytes that they have taken: cells, and whole lines of bulk.
    pub fn posted(&self) -> (u64, u64) {
        let (packets, bytes) = self.outgoing.iter().flatten().fold((0, 0), |(packets, bytes), out| {
            let cells = out.cells.published();
            (packets + cells, bytes + cells * CELL_BYTES as u64 + out.bulk.taken())
        });
        (packets, bytes + self.incoming.iter().flatten().map(|ring| ring.borrowed_bytes()).sum::<u64>())
    }

    /// The copy slots of the segment, for long messages.
    pub fn copy_slots(&self) -> CopySlots {
        CopySlots::new(self.views.clone(), self.me)
    }
}

impl Device for ShmDevice {
    const CAPABILITIES: Capabilities = Capabilities { shares_memory: true, ..Capabilities::plain(LARGEST_PACKET) };

    #[inline]
    unsafe fn post_short(&mut self, to: u32, head: Head, data: *const u8, length: usize) -> Posted {
        debug_assert!(length <= INLINE_BYTES);
        let me = self.me;
        let Some(out) = self.outgoing(to) else { return Posted::Full };
        let Some(cell) = out.cells.vacant() else { return out.refuse(Lack::Cell) };
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

    unsafe fn post_bulk(&mut self, to: u32, head: Head, control: &[u64], data: *const u8, length: usize) -> Posted {
        debug_assert!(control.len() <= CONTROL_WORDS);
        let (me, heard) = (self.me, std::mem::take(&mut self.heard));
        let wanted = length.min(LARGEST_PACKET);
        let Some(out) = self.outgoing(to) else { return Posted::Full };
        let Some(cell) = out.cells.vacant() else { return out.refuse(Lack::Bulk) };
        let borrowed = self.incoming[to as usize].as_deref_mut().and_then(|ring| ring.borrow(wanted));
        let out = self.outgoing[to as usize].as_deref_mut().expect("it was there");
        let (piece, word) = if let Some((place, offset)) = borrowed {
            out.cells.fetch_for_writing();
            // SAFETY: offset + wanted lies inside the peer's area, and the peer writes there only what it has got back.
            unsafe { copying::copy(data, place, wanted) };
            (wanted, borrowed_word(offset, wanted))
        } else {
            let Some((offset, piece)) = out.bulk.room(wanted) else { return out.refuse(Lack::Bulk) };
            if offset + piece > out.populated {
                return match self.populate_bulk(to, offset + piece) {
                    // SAFETY: the caller's promise.
                    true => unsafe { self.post_bulk(to, head, control, data, length) },
                    false => Posted::Full,
                };
            }
            out.cells.fetch_for_writing();
            // SAFETY: offset + piece lies inside the bulk area, and the peer has given these bytes back
            // (return-credit).
            let past = unsafe { out.store(offset, data, piece) };
            out.bulk.take(piece);
            if heard && !past {
                hand_on(out.pair.bulk.wrapping_add(offset), piece.min(HANDED_ON_BYTES));
            }
            (piece, piece as u64 | if past { PAST_CACHES } else { 0 })
        };
        cell.head[1].store(head.second_word(), Ordering::Relaxed);
        for (word, value) in cell.inline.iter().zip(control) {
            word.store(*value, Ordering::Relaxed);
        }
        cell.inline[INLINE_WORDS - 1].store(word, Ordering::Relaxed);
        let mut woken = 0;
        out.finish(me, head.first_word((control.len() * 8) as u8, true), &mut woken);
        self.wakeups += woken;
        Posted::Sent(piece)
    }

    #[inline]
    fn poll<S: Sink>(&mut self, sink: &mut S) -> bool {
        let mut any = self.notice_new_senders() && self.take_cut_offs(sink);
        for i in 0..self.polled.len() {
            let from = self.polled[i];
            let ring = self.incoming[from as usize].as_mut().expect("polled rings are open");
            any |= ring.drain(from, self.outgoing[from as usize].as_deref_mut(), sink, &mut self.wakeups);
        }
        self.heard |= any;
        any
    }

    #[inline]
    fn takes_whole(&mut self, to: u32, length: usize) -> bool {
        let whole = |out: &mut ShmOutgoing| out.bulk.room(length).is_some_and(|(_, piece)| piece == length);
        length <= LARGEST_PACKET && self.outgoing(to).is_some_and(whole)
    }

    fn has_ended(&self, peer: u32) -> bool {
        self.segment.has_ended(peer)
    }

    /// Lies down: after this, whoever sends rings the doorbell, and so does whoever returns credits to a peer that the
    /// last post was refused for. Answers true if nothing had arrived before, so that the caller may sleep; otherwise
    /// the caller must poll (after [`Self::disarm`]).
    fn arm(&mut self) -> bool {
        self.announce_starvation();
        for from in std::mem::take(&mut self.polled) {
            let ring = self.incoming[from as usize].as_mut().expect("polled rings are open");
            ring.polled = false;
            // Nobody polls for a while: what was consumed is given back now.
            ring.report_all(&mut self.wakeups);
        }
        self.seen.fill(0);
        let (mailbox, me) = (self.mailbox, self.me);
        let quiet = mailbox.settle(|from| {
            // Our own bit is an alert.
            from == me || self.claimed_sender(from).is_some_and(|ring| !ring.broken && ring.cells.arrived().is_some())
        });
        quiet && self.no_credit_came()
    }

    /// For a thread that waits beside another one which has armed already and sleeps: sees to it that credits that were
    /// refused since then wake that one. False if they have come and the caller must poll.
    fn arm_beside(&mut self) -> bool {
        self.announce_starvation();
        owner_barrier(Label::LieDownOwner, self.mailbox.fences);
        self.no_credit_came()
    }

    /// Gets up.
    fn disarm(&mut self) {
        self.mailbox.get_up();
        for out in self.outgoing.iter().flatten() {
            if out.pair.starved.load(Ordering::Relaxed) != 0 {
                out.pair.starved.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Posts to such a peer are answered [`Posted::Full`].
    fn take_refusal(&mut self) -> Option<NoMemory> {
        self.refusals.pop()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;

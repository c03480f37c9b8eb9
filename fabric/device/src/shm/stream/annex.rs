//! An annex: where the bytes of a direction go whose receiver does not read, once its ring is full.
//!
//! Some positions lie in the ring, which is what it always was, and all others in the annex ([`Lie`]). The sender says which:
//! the ring ends at its head when it is full and the sender *grows*, and begins again at the head, without an end, when
//! everything in the ring was read. So what the annex holds may lie before and behind what the ring holds. The annex is given
//! away when everything in it was read and the ring has no end. Only as much as is less than an annex may be unread while the
//! annex takes bytes, so no two of its positions are one place; and a ring more than that while the ring does.
//!
//! Where a position lies does not change from its publication until the receiver has given it back. So the receiver, who
//! asks after it has seen a head, needs no more than that the words were written in this order: `ring_from`, `ring_until`,
//! the annex's number. Between two such states an end without a beginning can be seen, but no position is there then that it
//! is wrong for.
//!
//! Memory of an annex is made by the sender before it is touched, and taken away by the receiver before it gives the room
//! back, in steps. The sender stays a step away from a whole annex, so no step is both made and taken. What is left of a
//! step is taken away when the annex is given away.
//!
//! Who dies in the middle of this leaves what the next one of the side can go on with: first our own words say that the ring
//! takes nothing, or the other's that it does, and what we say is said again before bytes are published that depend on it.

use super::armed::{Calls, look};
use super::bytes::RingBytes;
use super::lines::{Direction, OwnSender};
use super::receiver::Receiver;
use super::sender::{self, Room, Sender};
use crate::sync::{Label, Ordering, ordering, sender_barrier};
use weft_wire::stream::arena::Mode;

/// Bytes of a ring, and of an annex.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub ring: u64,
    pub annex: u64,
}

impl Sizes {
    /// How many bytes may be unread at most; `annex`: the word that says whether there is one.
    pub(super) fn most(self, annex: u32) -> u64 {
        if annex == 0 { self.ring } else { self.ring + self.annex }
    }
}

/// Which positions lie in the ring: those from `from` on, before `until` if that is not 0.
#[derive(Clone, Copy, Debug)]
struct Lie {
    from: u64,
    until: u64,
}

impl Lie {
    /// As the sender knows it.
    fn own(own: &OwnSender) -> Self {
        Self { from: own.ring_from.load(Ordering::Relaxed), until: own.ring_until.load(Ordering::Relaxed) }
    }

    /// As it says. A claim, any values of which lead to places in ring and annex.
    fn said(direction: &Direction) -> Self {
        let until = direction.room.ring_until.load(Ordering::Acquire);
        Self { from: direction.room.ring_from.load(Ordering::Relaxed), until }
    }

    /// Whether a position lies in the ring, and up to where those that follow it do so, too, or do not.
    fn of(self, at: u64) -> (bool, u64) {
        match (at < self.from, self.until) {
            (true, _) => (false, self.from),
            (false, 0) => (true, u64::MAX),
            (false, until) if at < until => (true, until),
            _ => (false, u64::MAX),
        }
    }

    /// How many of these positions lie in the ring.
    fn in_ring(self, tail: u64, head: u64) -> u64 {
        let until = if self.until == 0 { head } else { self.until.min(head) };
        until.saturating_sub(self.from.max(tail))
    }

    fn read<B: RingBytes>(self, [ring, annex]: [&B; 2], mut at: u64, mut into: &mut [u8]) {
        while !into.is_empty() {
            let (in_ring, end) = self.of(at);
            let bytes = if in_ring { ring } else { annex };
            let length = (end - at).clamp(1, bytes.size()).min(into.len() as u64) as usize;
            let (piece, rest) = into.split_at_mut(length);
            bytes.read(at, piece);
            (at, into) = (at.wrapping_add(length as u64), rest);
        }
    }
}

/// What a sender with an annex takes for its tail: so much of the ring is free. None of it, as long as the ring has an end.
#[cold]
pub(super) fn floor(own: &OwnSender, head: u64, size: u64) -> u64 {
    let lie = Lie::own(own);
    if lie.until == 0 { own.taken.load(Ordering::Relaxed).max(lie.from) } else { head.wrapping_sub(size) }
}

impl<B: RingBytes> Sender<'_, B> {
    /// Whether there is an annex, so that what [`Self::push`] has no room for may have some there.
    #[inline(always)]
    pub fn has_annex(&self) -> bool {
        self.annex != 0
    }

    /// Whether the ring takes nothing more before the receiver has read what is in it: there is no growing then.
    pub fn has_grown(&self) -> bool {
        self.annex != 0 && Lie::own(self.own).until != 0
    }

    /// Up to where the receiver has taken the bytes, as was believed last.
    pub(super) fn taken(&self) -> u64 {
        if self.annex == 0 { self.tail } else { self.own.taken.load(Ordering::Relaxed) }
    }

    /// Reads what was pushed.
    pub(super) fn read(&self, at: u64, into: &mut [u8]) {
        match self.bytes.annex(self.annex) {
            Some(annex) => Lie::own(self.own).read([&self.bytes, &annex], at, into),
            None => self.bytes.read(at, into),
        }
    }

    /// A tail of the receiver's: the ring begins again where everything in it was read, and the annex is given away where
    /// everything in it was.
    #[cold]
    pub(super) fn believe_beside_annex(&mut self, claimed: u64) {
        let own = self.own;
        if claimed < own.taken.load(Ordering::Relaxed) || claimed > self.published {
            own.broken.store(1, Ordering::Relaxed);
            return;
        }
        own.taken.store(claimed, Ordering::Relaxed);
        let lie = Lie::own(own);
        // What is not published yet may never have been.
        if lie.until != 0 && claimed >= lie.until && self.head == self.published {
            self.begin_ring();
        }
        let lie = Lie::own(own);
        if lie.until == 0 && claimed >= lie.from {
            self.give_annex_away();
            return;
        }
        self.tail = floor(own, self.head, self.bytes.size());
    }

    fn begin_ring(&self) {
        let (own, room) = (self.own, &self.direction.room);
        own.ring_from.store(self.head, Ordering::Relaxed);
        room.ring_from.store(self.head, Ordering::Relaxed);
        room.ring_until.store(0, Ordering::Release);
        own.ring_until.store(0, Ordering::Release);
    }

    fn give_annex_away(&mut self) {
        self.forget_annex();
        self.direction.sender.annex.store(0, Ordering::Release);
        self.tail = self.own.taken.load(Ordering::Relaxed);
        self.own.tail.store(self.tail, Ordering::Relaxed);
        self.own.annex.store(0, Ordering::Release);
        self.annex = 0;
    }

    /// Nobody reads the annex any more.
    pub(super) fn forget_annex(&self) {
        if let Some(annex) = self.bytes.annex(self.annex) {
            annex.forget(0, annex.size());
        }
    }

    /// Asks for more room than the ring has, where that is full and everything is published: `most` bytes may be unread
    /// then. `claim` answers the number of an annex that nobody uses. Whether there is room now.
    #[cold]
    pub fn grow(&mut self, most: u64, claim: impl FnOnce() -> Option<u32>) -> bool {
        let (free, low) = (self.free(u64::MAX), (self.bytes.size() / 4).max(1));
        let wanted_back = self.direction.watch.want_kernel.load(Ordering::Relaxed) != 0;
        let broken = self.own.broken.load(Ordering::Relaxed) != 0;
        if self.phase != Mode::Ring as u32 || wanted_back || broken || self.head != self.published {
            return false;
        }
        if free >= low || self.has_grown() {
            return free >= low || self.free_in_annex() > 0;
        }
        if most < self.head - self.taken() + low {
            return false;
        }
        if self.annex == 0 && !self.take_annex(claim) {
            return false;
        }
        let Some(annex) = self.bytes.annex(self.annex) else { return false };
        self.own.most.store(most.min(annex.size() - annex.step()), Ordering::Relaxed);
        self.own.ring_until.store(self.head, Ordering::Release);
        self.tail = floor(self.own, self.head, self.bytes.size());
        self.say();
        true
    }

    fn take_annex(&mut self, claim: impl FnOnce() -> Option<u32>) -> bool {
        let Some((number, annex)) = claim().and_then(|number| Some((number, self.bytes.annex(number)?))) else {
            return false;
        };
        // Who had it last may have died, or left something.
        annex.forget(0, annex.size());
        self.own.taken.store(self.tail, Ordering::Relaxed);
        self.own.made.store(0, Ordering::Relaxed);
        self.own.annex.store(number, Ordering::Release);
        self.annex = number;
        true
    }

    /// Says where the positions lie.
    fn say(&self) {
        let (lie, room) = (Lie::own(self.own), &self.direction.room);
        room.most.store(self.own.most.load(Ordering::Relaxed), Ordering::Relaxed);
        room.ring_from.store(lie.from, Ordering::Relaxed);
        room.ring_until.store(lie.until, Ordering::Release);
        self.direction.sender.annex.store(self.annex, Ordering::Release);
    }

    fn free_in_annex(&self) -> u64 {
        self.own.most.load(Ordering::Relaxed).saturating_sub(self.head - self.taken())
    }

    /// Copies into the annex what [`Self::push`] has left, as much as fits.
    #[cold]
    pub fn push_on(&mut self, from: &[u8], mut ring: impl FnMut(Calls)) -> usize {
        let Some(annex) = self.bytes.annex(self.annex).filter(|_| self.phase == Mode::Ring as u32) else { return 0 };
        if !self.has_grown() || self.own.broken.load(Ordering::Relaxed) != 0 {
            return 0;
        }
        self.say();
        let fits = self.free_in_annex().min(from.len() as u64) as usize;
        let mut went = 0;
        for step in from[..fits].chunks(sender::STEP) {
            if !self.make(&annex, self.head + step.len() as u64) {
                break;
            }
            annex.write(self.head, step);
            self.head += step.len() as u64;
            self.tail = floor(self.own, self.head, self.bytes.size());
            went += step.len();
            ring(self.publish());
        }
        went
    }

    /// Makes memory for the bytes before `end`.
    fn make(&self, annex: &B, end: u64) -> bool {
        let step = annex.step();
        let mut made = self.own.made.load(Ordering::Relaxed).max(self.head - self.head % step);
        while made < end {
            if !annex.make(made) {
                return false;
            }
            made += step;
            self.own.made.store(made, Ordering::Relaxed);
        }
        true
    }
}

/// What a sender with an annex would find, without the lock.
#[cold]
pub(super) fn room(own: &OwnSender, (tail, head): (u64, u64), sizes: Sizes) -> Option<Room> {
    let (lie, unread) = (Lie::own(own), head.checked_sub(tail).filter(|unread| *unread <= sizes.most(1))?);
    let (free, most) = match lie.until {
        0 => (sizes.ring.saturating_sub(lie.in_ring(tail, head)), sizes.ring),
        _ => {
            let most = own.most.load(Ordering::Relaxed);
            (most.saturating_sub(unread), most)
        }
    };
    Some(if free >= most / 4 { Room::Ring(free) } else { Room::Full })
}

impl<B: RingBytes> Receiver<'_, B> {
    /// Whether the bytes before `head` can be where the sender says.
    #[cold]
    pub(super) fn is_possible(&self, head: u64) -> bool {
        if head == self.tail {
            return true;
        }
        let Some(annex) = self.bytes.annex(self.annex) else { return false };
        let in_ring = Lie::said(self.direction).in_ring(self.tail, head);
        head - self.tail <= self.bytes.size() + annex.size() && in_ring <= self.bytes.size()
    }

    /// How many bytes may be unread.
    #[cold]
    pub(super) fn most(&self) -> u64 {
        let annex = self.bytes.annex(self.direction.sender.annex.load(Ordering::Acquire));
        self.bytes.size() + annex.map_or(0, |annex| annex.size())
    }

    /// Reads what was found to be there.
    #[inline(always)]
    pub(super) fn read(&self, at: u64, into: &mut [u8]) {
        if self.annex == 0 { self.bytes.read(at, into) } else { self.read_beside_annex(at, into) }
    }

    #[cold]
    fn read_beside_annex(&self, at: u64, into: &mut [u8]) {
        if let Some(annex) = self.bytes.annex(self.annex) {
            Lie::said(self.direction).read([&self.bytes, &annex], at, into);
        }
    }

    /// As [`Self::publish`], `before` being what was published last.
    #[cold]
    pub(super) fn publish_beside_annex(&mut self, before: u64) -> Calls {
        self.give_memory_back(before);
        // ORDER: stream-tail
        self.direction.receiver.tail.store(self.tail, ordering(Label::StreamTailStore, Ordering::Release));
        // ORDER: stream-sleep. The sender has grown, or not, before it armed.
        sender_barrier(Label::StreamPublisher, self.fences);
        if !self.has_made_room() {
            return Calls::NONE;
        }
        let room = &self.direction.room;
        look([&room.wait, &room.set], self.listeners, self.slot, self.fences)
    }

    /// Takes the memory of what was read away. Before that is said: afterwards it may be another's.
    fn give_memory_back(&self, before: u64) {
        let Some(annex) = self.bytes.annex(self.annex) else { return };
        let (lie, step) = (Lie::said(self.direction), annex.step());
        let mut at = before;
        while at < self.tail {
            let (in_ring, end) = lie.of(at);
            let read = end.min(self.tail);
            // The rest of a step, too, where the ring begins: it is farther to the next end than a step is long.
            let whole = if end == read && end == lie.from { read.next_multiple_of(step) } else { read - read % step };
            let first = at - at % step;
            if !in_ring && whole > first {
                annex.forget(first, whole - first);
            }
            at = read;
        }
    }

    /// Whether who sleeps for room would find it. A head from earlier makes this too often, never too seldom.
    pub(super) fn has_made_room(&self) -> bool {
        let (lie, ring) = (Lie::said(self.direction), self.bytes.size());
        let most = self.direction.room.most.load(Ordering::Relaxed).clamp(ring, self.most());
        let (free, most) = match lie.until {
            0 => (ring.saturating_sub(lie.in_ring(self.tail, self.head)), ring),
            _ => (most.saturating_sub(self.head - self.tail), most),
        };
        free >= most / 4
    }
}

/// Bytes that can be unread, for a look from outside.
pub(super) fn most_unread(direction: &Direction, sizes: Sizes) -> u64 {
    sizes.most(direction.sender.annex.load(Ordering::Acquire))
}

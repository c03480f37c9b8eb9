//! Who has which annex of an arena.
//!
//! An annex belongs to the slot that stands in its word, in memory that only our side has. The word is changed under the lock
//! of that slot's sending direction, by who has that lock; so nobody gives an annex away while its slot is about to take
//! it. A slot whose annex was read, and which sends nothing that would show it, loses it to one that wants it.

use super::connection::Stream;
use super::guards::{SendGuard, me, send_lock};
use std::sync::atomic::Ordering;
use weft_device::shm::stream::{Held, SIZES, Sender};
use weft_wire::stream::arena::{ANNEXES, SLOTS};

impl Stream {
    /// Claims an annex for this slot, whose sending direction is locked; answers its number and 1.
    fn claim_annex(&self) -> Option<u32> {
        (0..ANNEXES).find(|annex| self.claim(*annex)).map(|annex| annex as u32 + 1)
    }

    fn claim(&self, annex: usize) -> bool {
        let (word, mine) = (self.arena.annex_user(annex), self.slot + 1);
        let user = word.load(Ordering::Relaxed);
        let take = || word.compare_exchange(user, mine, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        // Ours already: who claimed it has died, or has given it away since.
        if user == mine || (user == 0 && take()) {
            return true;
        }
        if user == 0 || user > SLOTS {
            return false;
        }
        let other = Self { arena: self.arena, slot: user - 1 };
        let lock = send_lock(&other.own().sender);
        if !lock.try_acquire(me()) {
            return false;
        }
        let taken = other.is_without(annex as u32 + 1) && take();
        lock.release();
        taken
    }

    /// Whether this slot, whose sending direction is locked, has this annex no more: after a look whether it was read.
    fn is_without(&self, number: u32) -> bool {
        let own = self.own();
        if own.sender.annex.load(Ordering::Relaxed) != number || self.is_left() {
            return true;
        }
        let context = (self.slot, self.generation(), self.arena.fences());
        let ring = self.arena.ring(self.slot, self.arena.side());
        let listeners = self.arena.listeners(1 - self.arena.side());
        let mut sender = Sender::new(self.outgoing(), &own.sender, ring, listeners, context);
        sender.free(u64::MAX);
        sender.end();
        !sender.has_annex()
    }

    /// Whether the ring has grown: it takes nothing more before it was read, and what may be unread is bounded otherwise.
    pub fn has_grown(&self) -> bool {
        let own = &self.own().sender;
        own.annex.load(Ordering::Relaxed) != 0 && own.ring_until.load(Ordering::Relaxed) != 0
    }

    /// Whether both sides have left the slot.
    fn is_left(&self) -> bool {
        let generation = self.generation();
        let gone = [self.outgoing(), self.incoming()].map(|direction| direction.sender.gone.load(Ordering::SeqCst));
        self.own().side.references.load(Ordering::Relaxed) == 0 && gone == [generation; 2]
    }

    /// What we have not read of an annex of the peer's, which has left. Before we say that we have: then it is anybody's.
    pub(super) fn forget_peers_annex(&self) {
        let from = &self.incoming().sender;
        if from.gone.load(Ordering::SeqCst) == self.generation() && self.peer_attached() {
            let number = from.annex.load(Ordering::Acquire);
            // SAFETY: nobody uses it: the peer has left, and so do we.
            unsafe { self.arena.forget_annex(1 - self.arena.side(), number) };
        }
    }

    /// What the peer, which has left, has not read of ours, if we have an annex.
    pub(super) fn forget_own_annex(&self) {
        let lock = send_lock(&self.own().sender);
        if lock.acquire(me()) != Held::Yes {
            return;
        }
        let number = self.own().sender.annex.load(Ordering::Relaxed);
        let is_ours = |annex: &usize| self.arena.annex_user(*annex).load(Ordering::Relaxed) == self.slot + 1;
        if (number as usize).checked_sub(1).filter(|annex| *annex < ANNEXES).as_ref().is_some_and(is_ours) {
            // SAFETY: nobody uses it, and it is ours: the word says so, which changes under this lock only.
            unsafe { self.arena.forget_annex(self.arena.side(), number) };
        }
        lock.release();
    }
}

impl SendGuard {
    /// Asks for more room than a ring has, because the receiver does not read: `more` bytes than that may be unread then.
    /// Whether there is some now.
    #[cold]
    pub fn grow(&mut self, more: u64) -> bool {
        if self.held != Held::Yes {
            return false;
        }
        self.publish();
        let stream = self.stream;
        self.sender.grow(SIZES.ring + more, || stream.claim_annex())
    }
}

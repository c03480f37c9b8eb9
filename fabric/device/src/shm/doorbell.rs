//! The mailbox's doorbell and set of active senders: who is polled, who sleeps.
//!
//! Both have the same race: the sender stores a cell, then looks at the flag; the owner clears the flag (or lies down),
//! then looks at the ring. Each needs store-load order. The owner pays for both sides with `membarrier`; the sender has
//! only a compiler fence (design decision: the price of sleeping falls on the sleeper). Where the kernel has no such
//! barrier, the segment says so and senders fence.
//!
//! Orderings:
//! - `ring-doorbell`: sender's cell store, light barrier, load of doorbell | owner's doorbell store, membarrier, poll.
//! - `join-active`: sender's cell store, light barrier, load of its bit | owner's clearing of bits, membarrier, poll.

use crate::sync::{AtomicU32, AtomicU64, Ordering, fence, light_barrier};
use crate::sys;

/// The shared part of a mailbox.
#[derive(Clone, Copy)]
pub struct Mailbox<'a> {
    pub doorbell: &'a AtomicU32,
    pub active: &'a [AtomicU64],
    /// Senders must fence (no membarrier on this kernel).
    pub fences: bool,
}

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

impl Mailbox<'_> {
    /// The sender's side of the race with a sleeper: orders an earlier store before a later load.
    #[inline]
    pub fn order(&self) {
        if self.fences {
            fence(Ordering::SeqCst);
        } else {
            light_barrier();
        }
    }

    /// To be called by sender `me` after it has published a cell. True if the owner was woken.
    #[inline]
    pub fn announce(&self, me: u32) -> bool {
        self.order();
        // ORDER: join-active
        let word = &self.active[me as usize / 64];
        let bit = 1 << (me % 64);
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::SeqCst);
        }
        // ORDER: ring-doorbell
        self.doorbell.load(Ordering::Relaxed) == ASLEEP && self.ring()
    }

    /// To be called after storing what the owner may wait for in other shared memory than a ring. True if it was woken.
    #[inline]
    pub fn rouse(&self) -> bool {
        self.order();
        // ORDER: ring-doorbell, with that store in the place of the cell.
        self.doorbell.load(Ordering::Relaxed) == ASLEEP && self.ring()
    }

    /// Wakes the owner if it sleeps; once per sleep, however many ring.
    #[cold]
    pub fn ring(&self) -> bool {
        if self.doorbell.swap(AWAKE, Ordering::SeqCst) != ASLEEP {
            return false;
        }
        #[cfg(not(loom))]
        sys::futex_wake(self.doorbell);
        true
    }

    /// Owner: removes everybody from the active set and lies down. What was sent before is visible to polls after
    /// this; what is sent later rings. The senders that were active are handed to `was_active` word by word.
    pub fn lie_down(&self, mut was_active: impl FnMut(usize, u64)) {
        for (index, word) in self.active.iter().enumerate() {
            // ORDER: join-active
            was_active(index, word.swap(0, Ordering::SeqCst));
        }
        // ORDER: ring-doorbell
        self.doorbell.store(ASLEEP, Ordering::SeqCst);
        if self.fences {
            fence(Ordering::SeqCst);
        } else {
            sys::membarrier();
        }
    }

    /// Owner: gets up again, whether rung or not.
    pub fn get_up(&self) {
        self.doorbell.store(AWAKE, Ordering::SeqCst);
    }

    pub fn is_asleep(&self) -> bool {
        self.doorbell.load(Ordering::SeqCst) == ASLEEP
    }
}

/// The owner's handle on its own doorbell, usable without the device (while another thread uses that).
#[derive(Clone, Copy)]
pub struct Doorbell {
    pub(super) word: &'static AtomicU32,
}

impl Doorbell {
    /// Sleeps until rung, or `limit` has passed. Returns at once if the bell has rung since lying down.
    #[cfg(not(loom))]
    pub fn sleep(&self, limit: Option<std::time::Duration>) {
        sys::futex_wait(self.word, ASLEEP, limit);
    }

    /// Rings one's own bell: wakes the other threads of this process.
    #[cfg(not(loom))]
    pub fn ring(&self) {
        if self.word.swap(AWAKE, Ordering::SeqCst) == ASLEEP {
            sys::futex_wake(self.word);
        }
    }
}

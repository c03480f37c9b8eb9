//! Exclusive use of a set, among threads and against signal handlers.
//!
//! A handler may use the very set that its thread holds further out: it cannot wait for that. It does without, and leaves
//! a note; who holds the set next, which is the interrupted thread when it lets go, puts everything right.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering, compiler_fence};

use super::control;
use super::set::{Inner, Set};
use crate::raw;

/// Values of the word: free, held by one that forks; others are the holding thread's.
const OPEN: usize = 0;
const FOR_FORK: usize = 1;

/// Notes: something in the set may not be as it was; the set is to be given up.
const CHANGED: u32 = 1;
const CLOSED: u32 = 2;

/// A thread of this process, as long as it lives: where the memory of its own begins.
#[inline(always)]
fn this_thread() -> usize {
    let at: usize;
    // SAFETY: reads a word or a register of this thread; both conventions are part of the platform's interface.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("mov {}, fs:0", out(reg) at, options(nostack, preserves_flags, readonly));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) at, options(nostack, preserves_flags, nomem));
    }
    at
}

/// Zeros are an open lock without notes.
pub struct Lock {
    word: AtomicUsize,
    notes: AtomicU32,
}

impl Lock {
    /// For a fork: false when a thread has it. What the forking thread itself has further out counts as taken.
    pub fn take_for_fork(&self) -> bool {
        match self.word.compare_exchange(OPEN, FOR_FORK, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => true,
            Err(holder) => holder == this_thread(),
        }
    }

    /// After a fork in the parent: what was taken for it, and nothing else.
    pub fn leave_after_fork(&self) {
        let _ = self.word.compare_exchange(FOR_FORK, OPEN, Ordering::Release, Ordering::Relaxed);
    }

    /// After a fork in the child: opens it, but where this thread has it further out.
    pub fn break_open(&self) -> bool {
        let is_ours = self.is_ours();
        if !is_ours {
            self.word.store(OPEN, Ordering::Release);
        }
        !is_ours
    }

    /// Whether this thread has it, further out: we are a signal handler.
    #[inline]
    pub fn is_ours(&self) -> bool {
        self.word.load(Ordering::Relaxed) == this_thread()
    }
}

/// Exclusive use of a set.
pub struct Locked {
    set: &'static Set,
}

impl Set {
    /// Held for a bounded number of steps, without any wait. `None`: this thread has it further out.
    #[inline]
    pub fn lock(&'static self) -> Option<Locked> {
        let me = this_thread();
        let mut tries = 0u32;
        while let Err(holder) = self.lock.word.compare_exchange_weak(OPEN, me, Ordering::Acquire, Ordering::Relaxed) {
            if holder == me {
                return None;
            }
            tries += 1;
            if tries.is_multiple_of(64) { raw::yield_core() } else { std::hint::spin_loop() }
        }
        let mut locked = Locked { set: self };
        if self.lock.notes.load(Ordering::Relaxed) != 0 {
            locked.settle();
        }
        Some(locked)
    }

    /// A handler could not do here what it should: it will be done.
    pub fn note_changed(&self) {
        self.lock.notes.fetch_or(CHANGED, Ordering::Relaxed);
    }

    /// The same for the set itself, whose last descriptor is closed.
    pub fn note_closed(&self) {
        self.lock.notes.fetch_or(CLOSED, Ordering::Relaxed);
    }
}

impl Locked {
    #[cold]
    fn settle(&mut self) {
        let notes = self.set.lock.notes.swap(0, Ordering::Relaxed);
        if notes & CLOSED != 0 {
            return self.set.give_up(self);
        }
        control::put_right(self.set, self);
    }
}

impl Deref for Locked {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        // SAFETY: the lock is ours.
        unsafe { &*self.set.inner.get() }
    }
}

impl DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut Inner {
        // SAFETY: the lock is ours.
        unsafe { &mut *self.set.inner.get() }
    }
}

impl Drop for Locked {
    #[inline]
    fn drop(&mut self) {
        self.set.lock.word.store(OPEN, Ordering::Release);
        // A handler that came before this left its note before; one that comes now has the lock itself.
        compiler_fence(Ordering::SeqCst);
        if self.set.lock.notes.load(Ordering::Relaxed) != 0 {
            drop(self.set.lock());
        }
    }
}

//! Exclusive use of a set, among threads and against signal handlers.
//!
//! A handler may use the very set that its thread holds further out: it cannot wait for that. It does without, and
//! leaves a note; who holds the set next, which is the interrupted thread when it lets go, puts everything right.
//!
//! A handler may also leave by `siglongjmp`, and the holder with it. So the word of the lock says where on its stack
//! the holder was: a handler runs further down, and who comes from there or from further up knows that the holder is
//! gone. It takes the set over and makes it anew. (Before such a call of the same thread nothing is proven, and others
//! wait. A program that changes stacks inside of a handler, and goes on with the interrupted one later, breaks this.)

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering, compiler_fence};

use super::control;
use super::set::{EpollInner, EpollSet};
use crate::raw;

/// Values of the word: free, held by one that forks; others are [`here`] of the holder.
const OPEN: usize = 0;
const FOR_FORK: usize = 1;

/// Notes: something in the set may not be as it was; the set is to be given up; its holder has left it half changed.
const CHANGED: u32 = 1;
const CLOSED: u32 = 2;
const DESERTED: u32 = 4;

/// The place on the stack takes so many bits of the word, and the thread the others. The one is counted in 16 bytes,
/// the other in 64, which tells all threads apart that keep their own memory within 4 TiB.
const PLACE_BITS: u32 = 28;
const PLACE_MASK: usize = (1 << PLACE_BITS) - 1;
/// Places that are further apart than 16 MiB are not compared: they may be on two stacks.
const FARTHEST: usize = 1 << 20;

/// A thread of this process, as long as it lives (where the memory of its own begins), and where its stack is now.
#[inline(always)]
fn here() -> usize {
    let (thread, stack): (usize, usize);
    // SAFETY: reads words or registers of this thread; the conventions are part of the platform's interface.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("mov {}, fs:0", "mov {}, rsp", out(reg) thread, out(reg) stack,
            options(nostack, preserves_flags, readonly));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", "mov {}, sp", out(reg) thread, out(reg) stack,
            options(nostack, preserves_flags, nomem));
    }
    (thread >> 6) << PLACE_BITS | (stack >> 4 & PLACE_MASK)
}

/// Whether both words are of one thread.
fn same_thread(one: usize, other: usize) -> bool {
    one >> PLACE_BITS == other >> PLACE_BITS
}

/// Whether the thread that is `here`, and that has `held` a set, cannot be inside a handler that interrupted the
/// holder.
#[cold]
fn has_left(held: usize, here: usize) -> bool {
    // Further down is a large number.
    let further_up = here.wrapping_sub(held) & PLACE_MASK;
    // A stack of handlers lies anywhere.
    further_up < FARTHEST && !raw::on_other_stack()
}

/// Zeros are an open lock without notes.
pub struct EpollLock {
    word: AtomicUsize,
    notes: AtomicU32,
}

impl EpollLock {
    /// For a fork: false when a thread has it. What the forking thread itself has further out counts as taken.
    pub fn take_for_fork(&self) -> bool {
        match self.word.compare_exchange(OPEN, FOR_FORK, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => true,
            Err(holder) => same_thread(holder, here()),
        }
    }

    /// After a fork in the parent: what was taken for it, and nothing else.
    pub fn leave_after_fork(&self) {
        let _ = self.word.compare_exchange(FOR_FORK, OPEN, Ordering::Release, Ordering::Relaxed);
    }

    /// After a fork in the child: opens it, but where this thread has it further out.
    pub fn break_open(&self) -> bool {
        let is_ours = same_thread(self.word.load(Ordering::Relaxed), here());
        if !is_ours {
            self.word.store(OPEN, Ordering::Release);
        }
        !is_ours
    }
}

/// Exclusive use of a set.
pub struct LockedSet {
    set: &'static EpollSet,
}

impl EpollSet {
    /// Held for a bounded number of steps, without any wait. `None`: this thread has it further out. (Inlined, so that
    /// a place on the stack is that of the caller.)
    #[inline(always)]
    pub fn lock(&'static self) -> Option<LockedSet> {
        let me = here();
        match self.lock.word.compare_exchange(OPEN, me, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Some(self.begin()),
            Err(_) => self.lock_held(me),
        }
    }

    #[cold]
    fn lock_held(&'static self, me: usize) -> Option<LockedSet> {
        let mut tries = 0u32;
        while let Err(holder) = self.lock.word.compare_exchange_weak(OPEN, me, Ordering::Acquire, Ordering::Relaxed) {
            if same_thread(holder, me) {
                if !has_left(holder, me) {
                    return None;
                }
                self.lock.word.store(me, Ordering::Relaxed);
                self.lock.notes.fetch_or(CHANGED | DESERTED, Ordering::Relaxed);
                break;
            }
            tries += 1;
            if tries.is_multiple_of(64) { raw::yield_core() } else { std::hint::spin_loop() }
        }
        Some(self.begin())
    }

    fn begin(&'static self) -> LockedSet {
        let mut locked = LockedSet { set: self };
        if self.lock.notes.load(Ordering::Relaxed) != 0 {
            locked.settle();
        }
        locked
    }

    /// Whether this thread has it further out, for good or until now: we are a signal handler.
    #[inline(always)]
    pub fn is_held_further_out(&'static self) -> bool {
        same_thread(self.lock.word.load(Ordering::Relaxed), here()) && self.lock().is_none()
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

impl LockedSet {
    #[cold]
    fn settle(&mut self) {
        let notes = self.set.lock.notes.swap(0, Ordering::Relaxed);
        if notes & DESERTED != 0 {
            let members = self.count_anew();
            self.set.members.store(members, Ordering::SeqCst);
        }
        if notes & CLOSED != 0 {
            return self.set.give_up(self);
        }
        control::put_right(self.set, self);
    }
}

impl Deref for LockedSet {
    type Target = EpollInner;

    fn deref(&self) -> &EpollInner {
        // SAFETY: the lock is ours.
        unsafe { &*self.set.inner.get() }
    }
}

impl DerefMut for LockedSet {
    fn deref_mut(&mut self) -> &mut EpollInner {
        // SAFETY: the lock is ours.
        unsafe { &mut *self.set.inner.get() }
    }
}

impl Drop for LockedSet {
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

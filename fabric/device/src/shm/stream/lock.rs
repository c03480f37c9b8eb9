//! The lock of one end of a side: among the threads and processes that share it, and robust against their deaths.

use crate::kernel;
use crate::sync::{AtomicU32, Ordering};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How a lock was got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HowLocked {
    Yes,
    /// Not at all: this very thread holds it, further out, interrupted by a signal.
    Nested,
}

/// Names its holder by the thread's number.
#[derive(Clone, Copy)]
pub struct StreamLock<'a> {
    pub word: &'a AtomicU32,
    pub contended: &'a AtomicU32,
}

const SPINS: u32 = 200;
/// A sleeper looks at least so often whether the holder lives.
const LOOK: Duration = Duration::from_millis(20);

impl StreamLock<'_> {
    /// Waits for the lock, as the thread `me`.
    #[inline(always)]
    pub fn acquire(&self, me: u32) -> HowLocked {
        match self.word.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => HowLocked::Yes,
            Err(holder) if holder == me => HowLocked::Nested,
            Err(_) => self.acquire_slowly(me),
        }
    }

    /// Takes the lock if nobody has it.
    #[inline]
    pub fn try_acquire(&self, me: u32) -> bool {
        self.word.load(Ordering::Relaxed) == 0 && self.try_from(0, me)
    }

    /// Takes the lock over from a holder that died.
    pub fn take_over(&self, me: u32) -> bool {
        let holder = self.word.load(Ordering::Relaxed);
        holder != 0 && holder != me && !kernel::is_alive(holder) && self.try_from(holder, me)
    }

    /// Whether this very thread has it.
    pub fn is_held_by(&self, me: u32) -> bool {
        self.word.load(Ordering::Relaxed) == me
    }

    /// Nobody can be inside.
    pub fn seize(&self) {
        self.release();
    }

    fn try_from(&self, before: u32, me: u32) -> bool {
        self.word.compare_exchange(before, me, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn acquire_slowly(&self, me: u32) -> HowLocked {
        for _ in 0..SPINS {
            std::hint::spin_loop();
            if self.word.load(Ordering::Relaxed) == 0 && self.try_from(0, me) {
                return HowLocked::Yes;
            }
        }
        loop {
            // Who releases stores 0, then looks here; the barrier is for both. Whoever slept says so again: there may
            // be further ones.
            self.contended.store(1, Ordering::SeqCst);
            kernel::barrier();
            let holder = self.word.load(Ordering::Relaxed);
            let free = holder == 0 || !kernel::is_alive(holder);
            if free && self.try_from(holder, me) {
                return HowLocked::Yes;
            }
            if !free {
                kernel::futex_wait(self.word, holder, Some(LOOK));
            }
        }
    }

    #[inline(always)]
    pub fn release(&self) {
        self.word.store(0, Ordering::Release);
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
        if self.contended.load(Ordering::Relaxed) != 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        self.contended.store(0, Ordering::SeqCst);
        kernel::futex_wake(self.word, 1);
    }
}

/// So often one looks whether the lock is free, offers the core to its holder so often, and looks now and then whether
/// that lives. Nobody waits longer: who is inside may have been stopped, or wait for the one who waits.
const LOOKS: u32 = 100;
const OFFERS: u32 = 64;
const OFFERS_TO_A_LIFE: u32 = 16;

/// How long one waits for a lock that is mostly free, and may also be left to later.
#[derive(Default)]
pub struct Patience {
    /// The last wait was in vain: who is inside stands still, and each offer may cost a time slice. The next waits are
    /// short.
    is_over: AtomicBool,
}

impl Patience {
    /// Whether the lock was got. `offer` offers the core to others.
    pub fn wait(&self, lock: StreamLock<'_>, me: u32, offer: impl Fn()) -> bool {
        let offers = if self.is_over.load(Ordering::Relaxed) { 1 } else { OFFERS };
        for count in 0..offers {
            let taken = (0..LOOKS).any(|_| {
                std::hint::spin_loop();
                lock.try_acquire(me)
            });
            if taken || (count.is_multiple_of(OFFERS_TO_A_LIFE) && lock.take_over(me)) {
                self.is_over.store(false, Ordering::Relaxed);
                return true;
            }
            if lock.is_held_by(me) {
                return false;
            }
            offer();
        }
        self.is_over.store(true, Ordering::Relaxed);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::UnsafeCell;
    use std::sync::Arc;

    struct Guarded {
        word: AtomicU32,
        contended: AtomicU32,
        value: UnsafeCell<u64>,
    }

    // SAFETY: the value is touched under the lock.
    unsafe impl Sync for Guarded {}
    // SAFETY: plain data.
    unsafe impl Send for Guarded {}

    impl Guarded {
        fn new(holder: u32) -> Arc<Self> {
            let (word, contended) = (AtomicU32::new(holder), AtomicU32::new(0));
            Arc::new(Self { word, contended, value: UnsafeCell::new(0) })
        }

        fn lock(&self) -> StreamLock<'_> {
            StreamLock { word: &self.word, contended: &self.contended }
        }
    }

    #[test]
    fn only_one_is_inside() {
        let _ = kernel::register_for_barriers();
        let guarded = Guarded::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        assert_eq!(guarded.lock().acquire(kernel::thread()), HowLocked::Yes);
                        // SAFETY: under the lock.
                        unsafe { *guarded.value.get() += 1 };
                        guarded.lock().release();
                    }
                });
            }
        });
        // SAFETY: all threads have ended.
        assert_eq!(unsafe { *guarded.value.get() }, 80_000);
    }

    #[test]
    fn who_holds_it_is_told_so() {
        let guarded = Guarded::new(kernel::thread());
        assert_eq!(guarded.lock().acquire(kernel::thread()), HowLocked::Nested);
    }

    #[test]
    fn a_dead_holder_is_taken_over_even_before_it_is_collected() {
        let mut child = std::process::Command::new("true").spawn().expect("true");
        let guarded = Guarded::new(child.id());
        assert_eq!(guarded.lock().acquire(kernel::thread()), HowLocked::Yes);
        child.wait().expect("collected");
    }

    #[test]
    fn who_stands_still_inside_is_waited_for_once() {
        // Process 1 lives as long as we do.
        let (guarded, patience) = (Guarded::new(1), Patience::default());
        let offers = std::cell::Cell::new(0);
        let wait = || {
            offers.set(0);
            let got = patience.wait(guarded.lock(), kernel::thread(), || offers.set(offers.get() + 1));
            (got, offers.get())
        };
        assert_eq!(wait(), (false, OFFERS));
        assert_eq!(wait(), (false, 1));
        guarded.lock().release();
        assert_eq!(wait(), (true, 0));
        guarded.word.store(1, Ordering::Relaxed);
        assert_eq!(wait(), (false, OFFERS), "the next one inside may go on at once");
    }
}

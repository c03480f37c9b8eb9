//! Locks and conditions. A thread that waits for a condition moves the fabric meanwhile and runs upcalls, if no other one
//! does; what it waits for mostly comes from them.

use crate::labels::waiting;
use crate::takers;
use crate::upcalls;
use crate::world::WORLD;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A lock of the C library.
pub struct PandaMutex(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: the C library's calls may come from several threads.
unsafe impl Sync for PandaMutex {}

impl PandaMutex {
    pub fn new() -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }

    pub fn lock(&self) {
        // SAFETY: it is a lock, at a place that it keeps.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
        upcalls::bar();
    }

    pub fn try_lock(&self) -> bool {
        // SAFETY: as above.
        let locked = unsafe { libc::pthread_mutex_trylock(self.0.get()) } == 0;
        if locked {
            upcalls::bar();
        }
        locked
    }

    pub fn unlock(&self) {
        upcalls::unbar();
        // SAFETY: as above.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

/// A thread that waits for a condition moves the fabric.
static MOVES: AtomicBool = AtomicBool::new(false);
/// Threads that are in the fabric for a condition, or about to look whether they may be.
static INSIDE: AtomicU32 = AtomicU32::new(0);
/// The fabric is about to close: nobody moves it any more.
static RETIRED: AtomicBool = AtomicBool::new(true);

/// From now on who waits for a condition may move the fabric, which is open.
pub fn begin_moving() {
    RETIRED.store(false, Ordering::SeqCst);
}

/// Has threads that wait for conditions move the fabric no more.
pub fn end_moving() {
    RETIRED.store(true, Ordering::SeqCst);
    while INSIDE.load(Ordering::SeqCst) > 0 {
        drop(WORLD.enter());
        std::thread::yield_now();
    }
}

/// Does something in the fabric, unless it is about to close.
fn inside<R>(what: impl FnOnce() -> R) -> Option<R> {
    INSIDE.fetch_add(1, Ordering::SeqCst);
    let answer = (!RETIRED.load(Ordering::SeqCst)).then(what);
    INSIDE.fetch_sub(1, Ordering::SeqCst);
    answer
}

pub struct PandaCondition {
    /// The lock that it was made for, which outlives it.
    mutex: *const PandaMutex,
    sleepers: UnsafeCell<libc::pthread_cond_t>,
    /// How often it was signalled.
    signals: AtomicU32,
    /// Threads that wait for it and move the fabric.
    movers: AtomicU32,
}

// SAFETY: as above; the lock outlives it.
unsafe impl Sync for PandaCondition {}

impl PandaCondition {
    /// # Safety
    /// The lock outlives the condition.
    pub unsafe fn new(mutex: *const PandaMutex) -> Self {
        let sleepers = UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER);
        Self { mutex, sleepers, signals: AtomicU32::new(0), movers: AtomicU32::new(0) }
    }

    fn mutex(&self) -> &PandaMutex {
        // SAFETY: the promise of `new`.
        unsafe { &*self.mutex }
    }

    /// Waits, with the lock left, until it is signalled.
    pub fn wait(&self, call: &'static str) {
        upcalls::unbar();
        let signalled = !MOVES.swap(true, Ordering::Relaxed) && {
            let signalled = inside(|| self.move_until_signalled(call)).unwrap_or(false);
            MOVES.store(false, Ordering::Relaxed);
            signalled
        };
        if !signalled {
            // SAFETY: both are initialised, and the lock is this thread's.
            unsafe { libc::pthread_cond_wait(self.sleepers.get(), self.mutex().0.get()) };
        }
        upcalls::bar();
    }

    /// False if the fabric closes before.
    fn move_until_signalled(&self, call: &'static str) -> bool {
        let seen = self.signals.load(Ordering::Relaxed);
        self.movers.fetch_add(1, Ordering::SeqCst);
        // SAFETY: it is this thread's.
        unsafe { libc::pthread_mutex_unlock(self.mutex().0.get()) };
        let is_signalled = || self.signals.load(Ordering::SeqCst) != seen;
        takers::wait(waiting(call, None), |_| (is_signalled() || RETIRED.load(Ordering::SeqCst)).then_some(()));
        self.movers.fetch_sub(1, Ordering::SeqCst);
        // SAFETY: it is initialised.
        unsafe { libc::pthread_mutex_lock(self.mutex().0.get()) };
        is_signalled()
    }

    /// As [`Self::wait`], until a time at most; false if that has come.
    pub fn wait_until(&self, until: &libc::timespec) -> bool {
        upcalls::unbar();
        // SAFETY: both are initialised, and the lock is this thread's.
        let ended = unsafe { libc::pthread_cond_timedwait(self.sleepers.get(), self.mutex().0.get(), until) };
        upcalls::bar();
        ended == 0
    }

    pub fn signal(&self) {
        self.wake(libc::pthread_cond_signal);
    }

    pub fn broadcast(&self) {
        self.wake(libc::pthread_cond_broadcast);
    }

    fn wake(&self, sleepers: unsafe extern "C" fn(*mut libc::pthread_cond_t) -> libc::c_int) {
        self.signals.fetch_add(1, Ordering::SeqCst);
        // SAFETY: it is initialised.
        unsafe { sleepers(self.sleepers.get()) };
        if self.movers.load(Ordering::SeqCst) > 0 {
            // Who sleeps in the monitor is woken when it is left.
            inside(|| drop(WORLD.enter()));
        }
    }
}

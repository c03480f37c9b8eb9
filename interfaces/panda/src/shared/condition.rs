//! Locks and conditions. A thread that waits for a condition moves the fabric meanwhile and runs upcalls, if no other
//! one does; what it waits for mostly comes from them.

use crate::labels::waiting;
use crate::takers;
use crate::upcalls::{self, AfterUpcall};
use crate::world::WORLD;
use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::SystemTime;

/// A lock of the C library.
pub struct PandaMutex(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: the C library's calls may come from several threads.
unsafe impl Sync for PandaMutex {}

impl PandaMutex {
    pub fn new() -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }

    pub fn lock(&self) {
        if self.try_lock() {
            return;
        }
        // Who holds it may wait for a thread that is to be woken.
        upcalls::catch_up();
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

/// A thread that waits for a condition.
struct ConditionWaiter {
    thread: Thread,
    signalled: AtomicBool,
    /// It moves the fabric meanwhile.
    moves: AtomicBool,
}

impl ConditionWaiter {
    fn is_signalled(&self) -> bool {
        self.signalled.load(Ordering::SeqCst)
    }

    /// Returns before where the fabric closes.
    fn move_until_signalled(&self, call: &'static str) {
        self.moves.store(true, Ordering::SeqCst);
        takers::wait(waiting(call, None), |_| (self.is_signalled() || RETIRED.load(Ordering::SeqCst)).then_some(()));
        self.moves.store(false, Ordering::SeqCst);
    }
}

impl AfterUpcall for ConditionWaiter {
    fn run(&self) {
        self.signalled.store(true, Ordering::SeqCst);
        self.thread.unpark();
        if self.moves.load(Ordering::SeqCst) {
            // Who sleeps in the monitor is woken when it is left.
            inside(|| drop(WORLD.enter()));
        }
    }
}

/// A signal is for one thread, the one that has waited longest, and none returns without one: programs of old do not
/// ask again what they have waited for.
pub struct PandaCondition {
    /// The lock that it was made for, which outlives it.
    mutex: *const PandaMutex,
    waiters: Mutex<VecDeque<Arc<ConditionWaiter>>>,
}

// SAFETY: as above; the lock outlives it.
unsafe impl Sync for PandaCondition {}

impl PandaCondition {
    /// # Safety
    /// The lock outlives the condition.
    pub unsafe fn new(mutex: *const PandaMutex) -> Self {
        Self { mutex, waiters: Mutex::default() }
    }

    fn waiters(&self) -> MutexGuard<'_, VecDeque<Arc<ConditionWaiter>>> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits as `sleep` does, with the lock left, which is this thread's.
    fn without_lock<R>(&self, sleep: impl FnOnce(&Arc<ConditionWaiter>) -> R) -> R {
        let [signalled, moves] = [AtomicBool::new(false), AtomicBool::new(false)];
        let waiter = Arc::new(ConditionWaiter { thread: std::thread::current(), signalled, moves });
        self.waiters().push_back(waiter.clone());
        // SAFETY: the promise of `new`.
        let mutex = unsafe { &*self.mutex };
        mutex.unlock();
        upcalls::catch_up();
        let answer = sleep(&waiter);
        mutex.lock();
        answer
    }

    /// Waits, with the lock left, until it is signalled.
    pub fn wait(&self, call: &'static str) {
        self.without_lock(|waiter| {
            if !MOVES.swap(true, Ordering::Relaxed) {
                inside(|| waiter.move_until_signalled(call));
                MOVES.store(false, Ordering::Relaxed);
            }
            while !waiter.is_signalled() {
                std::thread::park();
            }
        });
    }

    /// As [`Self::wait`], until a time at most; false if that has come.
    pub fn wait_until(&self, until: SystemTime) -> bool {
        self.without_lock(|waiter| {
            while !waiter.is_signalled()
                && let Ok(left) = until.duration_since(SystemTime::now())
                && !left.is_zero()
            {
                std::thread::park_timeout(left);
            }
            // A signal from here on is for somebody else.
            self.waiters().retain(|other| !Arc::ptr_eq(other, waiter));
            waiter.is_signalled()
        })
    }

    pub fn signal(&self) {
        let first = self.waiters().pop_front();
        first.into_iter().for_each(|waiter| upcalls::after(waiter));
    }

    pub fn broadcast(&self) {
        let all = std::mem::take(&mut *self.waiters());
        all.into_iter().for_each(|waiter| upcalls::after(waiter));
    }
}

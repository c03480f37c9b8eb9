//! Exclusive access to the endpoint and the interface's state, and the one place to wait.
//!
//! The policy of waiting stands in `pace`. With several threads in one process, one sleeps on the doorbell and the
//! others beside it. A rank of a job on several hosts sleeps on its sockets, one of which is a bell that a neighbour
//! rings in the doorbell's place. Threads that wait in other interfaces of the process move this one, too ([`lend`]).
//! What arrives is delivered by whoever makes progress here, or by a thread of its own ([`Monitor::deliver`]).

mod alone;
mod delivery;
mod lend;

pub use delivery::{DeliveryEnd, DeliveryThread};

use crate::pace::{Pace, PaceStep};
use crate::process::company;
use crate::{Endpoint, Waiting};
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use weft_device::kernel;

/// Work that must run with the monitor left, such as a user's reduction function (it may call the interface again).
pub type Outside = Box<dyn FnOnce()>;

/// A thread that sleeps beside the one that watches the doorbell is not told of stores into shared memory, so it looks
/// now and then.
const BESIDE_MEMORY_LIMIT: Duration = Duration::from_micros(500);

/// Who does not sleep on what is attended looks at it so often.
const UNATTENDED_LIMIT: Duration = Duration::from_millis(1);

/// How long a thread may sleep that is not woken for what is attended.
fn limit_unattended<T: Driven>(value: &T) -> Option<Duration> {
    let unattended = value.attended().map(|_| UNATTENDED_LIMIT);
    unattended.into_iter().chain(value.longest_sleep()).min()
}

/// State that lives beside an endpoint and moves with its progress.
pub trait Driven {
    fn endpoint(&mut self) -> &mut Endpoint;

    /// Moves what stands on top of the endpoint (nonblocking collectives); called after each progress pass.
    /// Work that calls user code is handed back, to be run outside.
    fn advance(&mut self) -> Option<Outside>;

    /// Called where a pass moved nothing: by [`Monitor::poll`], and by a thread that waits before it `sleeps`. What is
    /// too rare to be looked at in every pass has its place here. True if anything changed.
    fn idle(&mut self, sleeps: bool) -> bool {
        let _ = sleeps;
        false
    }

    /// Whether a thread waits or polls, which takes what comes: asked by the one that delivers. `None`: it is not
    /// known, and guessed from who comes in.
    fn is_awaited() -> Option<bool> {
        None
    }

    /// What a thread that sleeps is to be woken for besides, when it can be read.
    fn attended(&self) -> Option<RawFd> {
        None
    }

    /// How long a thread may sleep before it looks again; `None`: until it is woken.
    fn longest_sleep(&self) -> Option<Duration> {
        None
    }
}

/// One thread at a time, which the interface's user has promised: no lock is taken.
const ALONE: u8 = 0;
/// The same, and the next one that enters takes the lock from then on: it knows that nobody is inside.
const ASKED: u8 = 1;
/// Several threads, by the lock, which is left where the process has one.
const SHARED: u8 = 2;

/// Passes in a row that moved something, after which the other interfaces of the process are moved, too.
const MOVES_OF_OURS: u32 = 64;

/// One per process and interface: `static WORLD: Monitor<World>`.
///
/// Threading is configuration: opened without threads, `enter` takes no lock, because the interface's user has promised
/// one thread at a time.
pub struct Monitor<T> {
    lock: Mutex<()>,
    /// Who may be inside: [`ALONE`], [`ASKED`] or [`SHARED`].
    mode: AtomicU8,
    open: AtomicBool,
    /// Threads of this process that sleep. Changes under the lock only.
    sleepers: AtomicU32,
    /// One of them sleeps on the doorbell, where other processes ring. Changes under the lock only.
    watched: AtomicBool,
    /// The others sleep on this. Counts, under the lock, whenever something happened that a sleeper may wait for. A
    /// doorbell cannot serve them: rung and armed again before they lie down, it would look as if nothing had been.
    changes: AtomicU32,
    /// How often a thread has come in to do something of its own. Changes under the lock only.
    entries: AtomicU32,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is reached only through `MonitorGuard`; with threads the lock makes it exclusive, without them the
// opener has promised that one thread at a time uses the monitor.
unsafe impl<T: Send> Sync for Monitor<T> {}

impl<T: Driven> Monitor<T> {
    pub const fn new() -> Self {
        Self {
            lock: Mutex::new(()),
            mode: AtomicU8::new(ALONE),
            open: AtomicBool::new(false),
            sleepers: AtomicU32::new(0),
            watched: AtomicBool::new(false),
            changes: AtomicU32::new(0),
            entries: AtomicU32::new(0),
            value: UnsafeCell::new(None),
        }
    }

    /// Puts the value in. With `threads`, several threads may use the monitor at the same time; without, one at a time
    /// and no lock is taken.
    ///
    /// # Panics
    /// If it is open.
    pub fn open(&self, value: T, threads: bool) {
        assert!(!self.is_open(), "the monitor is open");
        alone::look();
        // SAFETY: nobody holds a guard on a closed monitor.
        unsafe { *self.value.get() = Some(value) };
        self.share(threads);
        self.open.store(true, Ordering::Release);
    }

    /// Says anew whether several threads may use the monitor at the same time. Nobody may be inside, or about to enter.
    /// Beside other interfaces of the process they always may.
    pub fn share(&self, threads: bool) {
        let shares = threads || company().is_some();
        self.mode.store(if shares { SHARED } else { ALONE }, Ordering::Release);
    }

    /// Takes the value out again; later `enter` panics.
    pub fn close(&self) -> T {
        // Who watches it for another interface looks anew.
        drop(self.enter());
        let _held = self.lock();
        self.open.store(false, Ordering::Release);
        // SAFETY: the lock is held; the interface's user has promised that no other thread is inside.
        unsafe { (*self.value.get()).take() }.expect("the monitor is open")
    }

    #[inline]
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// Exclusive access; not re-entrant: no call out to user code while the guard lives.
    #[inline]
    pub fn enter(&self) -> MonitorGuard<'_, T> {
        let held = match self.mode.load(Ordering::Relaxed) {
            ALONE => None,
            SHARED if alone::is_alone() => None,
            _ => Some(self.lock_counted()),
        };
        MonitorGuard { monitor: self, _held: held }
    }

    /// As [`Self::enter`], where threads share the monitor, for the one that delivers.
    fn enter_uncounted(&self) -> MonitorGuard<'_, T> {
        MonitorGuard { monitor: self, _held: Some(self.lock()) }
    }

    #[cold]
    fn lock_counted(&self) -> MutexGuard<'_, ()> {
        let held = self.lock();
        self.entries.store(self.entries.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        held
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        if self.mode.load(Ordering::Relaxed) == ASKED {
            // Nobody is inside without the lock: that would be this thread.
            self.mode.store(SHARED, Ordering::Release);
        }
        self.lock.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// One progress pass without waiting.
    pub fn poll(&self) {
        if !self.enter().pass() {
            self.move_others();
        }
    }

    /// Moves the other interfaces of the process. The monitor is left meanwhile.
    #[inline]
    fn move_others(&self) {
        if let Some(others) = company() {
            others.progress(self.context());
        }
    }

    /// Makes progress until `done` answers. `done` is asked first, then after each progress pass.
    ///
    /// `done` answers by what the endpoint or the interface's state say.
    #[inline]
    pub fn wait<R>(&self, what: Waiting, done: impl FnMut(&mut T) -> Option<R>) -> R {
        self.wait_with(what, None, done)
    }

    /// Like [`Self::wait`] for what a peer stores into shared memory and then wakes us for ([`Endpoint::wake`]).
    #[inline]
    pub fn wait_for_memory<R>(&self, what: Waiting, done: impl FnMut(&mut T) -> Option<R>) -> R {
        self.wait_with(what, Some(BESIDE_MEMORY_LIMIT), done)
    }

    #[inline]
    fn wait_with<R>(
        &self,
        what: Waiting,
        beside_limit: Option<Duration>,
        mut done: impl FnMut(&mut T) -> Option<R>,
    ) -> R {
        let mut pace = Pace::default();
        let mut said = false;
        let mut moves = 0u32;
        loop {
            let mut guard = self.enter();
            let value = &mut *guard;
            if let Some(answer) = done(value) {
                return end_wait(value, &mut pace, said, answer);
            }
            let moved = value.endpoint().progress();
            if let Some(work) = value.advance() {
                // Who serves others waits for this again and again, so the next wait begins here.
                pace.ended(value.endpoint().policy());
                drop(guard);
                work();
                continue;
            }
            if moved {
                pace.moved(value.endpoint().policy());
                if let Some(answer) = done(value) {
                    return end_wait(value, &mut pace, said, answer);
                }
                moves = moves.wrapping_add(1);
                if moves.is_multiple_of(MOVES_OF_OURS) {
                    drop(guard);
                    self.move_others();
                }
                continue;
            }
            match pace.idle(value.endpoint().policy()) {
                PaceStep::Poll => {
                    guard.leave_quietly();
                    self.move_others();
                }
                PaceStep::Sleep if guard.idle(true) => {}
                PaceStep::Sleep => {
                    self.say(&mut guard, &what, &pace, &mut said);
                    if let Some(answer) = self.sleep(guard, beside_limit, &mut done) {
                        return answer;
                    }
                }
                PaceStep::Yielded => {
                    if pace.long_since_ns() != 0 {
                        self.say(&mut guard, &what, &pace, &mut said);
                    }
                    guard.endpoint().note_yield();
                    guard.leave_quietly();
                    self.move_others();
                }
            }
        }
    }

    /// Says on the status page what we are blocked in, once the wait has become long.
    #[cold]
    fn say(&self, guard: &mut MonitorGuard<'_, T>, what: &Waiting, pace: &Pace, said: &mut bool) {
        if !std::mem::replace(said, true) {
            guard.endpoint().set_blocked(what, pace.long_since_ns());
        }
    }

    #[cold]
    fn sleep<R>(
        &self,
        guard: MonitorGuard<'_, T>,
        beside_limit: Option<Duration>,
        done: &mut impl FnMut(&mut T) -> Option<R>,
    ) -> Option<R> {
        if self.watched.load(Ordering::Relaxed) {
            self.sleep_beside(guard, beside_limit);
            return None;
        }
        self.sleep_watching(guard, done)
    }

    /// Sleeps on the doorbell. Nobody else arms or disarms it meanwhile, so that a ring is not overlooked.
    fn sleep_watching<R>(
        &self,
        mut guard: MonitorGuard<'_, T>,
        done: &mut impl FnMut(&mut T) -> Option<R>,
    ) -> Option<R> {
        let value = &mut *guard;
        let attended = value.attended();
        value.endpoint().will_sleep(attended.is_some());
        if !value.endpoint().arm() {
            value.endpoint().disarm();
            guard.leave_quietly();
            return None;
        }
        // What does not come through the rings (shared memory of collectives) may have come before we lay down.
        if let Some(answer) = done(value) {
            value.endpoint().disarm();
            value.endpoint().clear_blocked();
            return Some(answer);
        }
        let sleeper = value.endpoint().sleeper();
        let (limit, short_limit) = (value.longest_sleep(), limit_unattended(value));
        self.watched.store(true, Ordering::Relaxed);
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        // From here on another thread of ours that moves something rings (see the guard's drop).
        guard.leave_quietly();
        match (company(), attended) {
            (None, None) => sleeper.sleep(limit),
            (None, Some(descriptor)) => sleeper.sleep_beside(descriptor, limit),
            (Some(others), _) => others.sleep(self.context(), sleeper.place(short_limit)),
        }
        let mut guard = self.enter();
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        self.watched.store(false, Ordering::Relaxed);
        guard.endpoint().disarm();
        // Awake, this thread polls for all; when its own wait ends, its guard wakes another one to watch.
        guard.leave_quietly();
        None
    }

    /// Sleeps beside the thread that watches the doorbell.
    fn sleep_beside(&self, mut guard: MonitorGuard<'_, T>, limit: Option<Duration>) {
        if !guard.endpoint().arm_beside() {
            return guard.leave_quietly();
        }
        let limit = limit.into_iter().chain(limit_unattended(&*guard)).min();
        let seen = self.changes.load(Ordering::Relaxed);
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        guard.leave_quietly();
        kernel::futex_wait(&self.changes, seen, limit);
        let guard = self.enter();
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        guard.leave_quietly();
    }
}

#[inline]
fn end_wait<R>(value: &mut impl Driven, pace: &mut Pace, said: bool, answer: R) -> R {
    if said {
        value.endpoint().clear_blocked();
    }
    value.endpoint().push_out();
    pace.ended(value.endpoint().policy());
    answer
}

impl<T: Driven> Default for Monitor<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Exclusive access to what is in a [`Monitor`].
pub struct MonitorGuard<'a, T: Driven> {
    monitor: &'a Monitor<T>,
    _held: Option<MutexGuard<'a, ()>>,
}

impl<T: Driven> MonitorGuard<'_, T> {
    /// Leaves without waking this process's sleepers: nothing happened that they may wait for.
    fn leave_quietly(mut self) {
        self._held = None;
        std::mem::forget(self);
    }
}

impl<T: Driven> Drop for MonitorGuard<'_, T> {
    /// What this thread did may be what another thread of the process sleeps for.
    #[inline]
    fn drop(&mut self) {
        if self._held.is_some() && self.monitor.sleepers.load(Ordering::Relaxed) > 0 {
            self.wake_sleepers();
        }
    }
}

impl<T: Driven> MonitorGuard<'_, T> {
    /// One progress pass; true if anything moved.
    fn pass(mut self) -> bool {
        let moved = self.endpoint().progress();
        match self.advance() {
            Some(work) => {
                drop(self);
                work();
            }
            None if moved || self.idle(false) => drop(self),
            None => {
                self.leave_quietly();
                return false;
            }
        }
        true
    }

    #[cold]
    fn wake_sleepers(&mut self) {
        self.monitor.changes.fetch_add(1, Ordering::Relaxed);
        kernel::futex_wake(&self.monitor.changes, i32::MAX);
        if self.monitor.watched.load(Ordering::Relaxed) {
            self.endpoint().doorbell().ring();
        }
    }
}

impl<T: Driven> Deref for MonitorGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: exclusive by the lock or by the promise of `Monitor::open`.
        let value = unsafe { &*self.monitor.value.get() };
        value.as_ref().expect("the monitor is open")
    }
}

impl<T: Driven> DerefMut for MonitorGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: exclusive by the lock or by the promise of `Monitor::open`.
        let value = unsafe { &mut *self.monitor.value.get() };
        value.as_mut().expect("the monitor is open")
    }
}

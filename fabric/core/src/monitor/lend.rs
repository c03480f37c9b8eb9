//! How threads that wait in other interfaces of the process move this one, and watch it in their sleep.
//!
//! A monitor that was opened for one thread at a time takes no lock. When a second interface opens, its lock is asked
//! for: the next thread that enters knows that nobody else is inside, and takes the lock from then on, as all do after
//! it. Until then nobody from outside enters. Where the process has one thread, that one is not inside, and nothing is
//! waited for.

use super::{ALONE, ASKED, Driven, Monitor, MonitorGuard, SHARED, limit_unattended};
use crate::process::{self, BESIDE, LOOK_AGAIN, MonitorCalls, NOTHING, ON_PLACE, SleepPlace};
use std::ffi::c_void;
use std::sync::TryLockError;
use std::sync::atomic::Ordering;

impl<T: Driven + Send + 'static> Monitor<T> {
    const CALLS: MonitorCalls =
        MonitorCalls { progress: progress::<T>, arm: arm::<T>, disarm: disarm::<T>, share: share::<T> };

    /// Lets threads that wait in other interfaces of the process move this one. To be called once it is open.
    pub fn lend(&'static self) {
        let enrolment = self.enter().endpoint().membership().map(|membership| membership.enrolment());
        if let Some(enrolment) = enrolment {
            process::register(enrolment, self.context(), const { &Self::CALLS });
        }
        if process::company().is_some() {
            // Another one has come between: who told all to share did not see this one.
            self.share_with_others();
        }
    }
}

impl<T: Driven> Monitor<T> {
    pub(super) fn context(&self) -> *const c_void {
        std::ptr::from_ref(self).cast()
    }

    /// Exclusive access for a thread from outside, without waiting.
    fn try_enter(&self) -> Option<MonitorGuard<'_, T>> {
        if !self.is_lent() {
            return None;
        }
        let held = match self.lock.try_lock() {
            Ok(held) => held,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        self.is_open().then(|| MonitorGuard { monitor: self, _held: Some(held) })
    }

    fn is_lent(&self) -> bool {
        self.mode.load(Ordering::Acquire) == SHARED && self.is_open()
    }

    fn arm_for_others(&self, place: &mut SleepPlace) -> u32 {
        if !self.is_lent() {
            return NOTHING;
        }
        let Some(mut guard) = self.try_enter() else { return LOOK_AGAIN };
        if guard.idle(true) {
            return LOOK_AGAIN;
        }
        if self.watched.load(Ordering::Relaxed) {
            return self.lie_beside(guard, place);
        }
        if !guard.endpoint().arm() {
            guard.endpoint().disarm();
            guard.leave_quietly();
            return LOOK_AGAIN;
        }
        *place = guard.endpoint().sleeper().place(limit_unattended(&*guard));
        self.watched.store(true, Ordering::Relaxed);
        // From here on a thread that moves something here rings, so that the place is armed anew.
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        guard.leave_quietly();
        ON_PLACE
    }

    /// Another thread watches. When that one ends its wait, or anybody moves something, the place is woken, so that it
    /// is armed anew.
    fn lie_beside(&self, mut guard: MonitorGuard<'_, T>, place: &mut SleepPlace) -> u32 {
        if !guard.endpoint().arm_beside() {
            guard.leave_quietly();
            return LOOK_AGAIN;
        }
        *place = SleepPlace::on_word(&self.changes, self.changes.load(Ordering::Relaxed)).within(guard.longest_sleep());
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        guard.leave_quietly();
        BESIDE
    }

    fn disarm_for_others(&self, how: u32) {
        let held = self.lock();
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        if how == BESIDE {
            return;
        }
        self.watched.store(false, Ordering::Relaxed);
        if self.is_open() {
            let mut guard = MonitorGuard { monitor: self, _held: Some(held) };
            guard.endpoint().disarm();
            // Its end wakes those who have slept beside, one of whom watches from now on.
            drop(guard);
        }
    }

    fn share_with_others(&self) {
        let asked = self.mode.compare_exchange(ALONE, ASKED, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if asked && has_one_thread() {
            self.mode.store(SHARED, Ordering::Release);
        }
    }
}

fn has_one_thread() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}

fn monitor<T: Driven + 'static>(context: *const c_void) -> &'static Monitor<T> {
    // SAFETY: what `lend` has registered with these functions: a monitor that stays.
    unsafe { &*context.cast() }
}

extern "C" fn progress<T: Driven + 'static>(context: *const c_void) -> u32 {
    u32::from(monitor::<T>(context).try_enter().is_some_and(MonitorGuard::pass))
}

extern "C" fn arm<T: Driven + 'static>(context: *const c_void, place: *mut SleepPlace) -> u32 {
    // SAFETY: the caller's place, which lives across the call.
    monitor::<T>(context).arm_for_others(unsafe { &mut *place })
}

extern "C" fn disarm<T: Driven + 'static>(context: *const c_void, how: u32) {
    monitor::<T>(context).disarm_for_others(how);
}

extern "C" fn share<T: Driven + 'static>(context: *const c_void) {
    monitor::<T>(context).share_with_others();
}

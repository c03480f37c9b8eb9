//! What moves a run-time system: an access to it, and the simplest driver.

use crate::copy::is_inside;
use crate::fault::ObjectFault;
use crate::message::CallId;
use crate::runtime::{Effect, Runtime};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What moves a run-time system: it delivers what is to be sent, and waits.
pub trait Driver: Send + Sync {
    /// Has something done with the machine, and what it wants sent on its way.
    fn with(&self, what: &mut dyn FnMut(&mut Runtime));

    /// Waits until a call is over.
    fn wait(&self, call: CallId) -> Result<Vec<u8>, ObjectFault>;

    /// The same, and not much longer than `patience`; `None`: it is not over.
    fn wait_within(&self, call: CallId, patience: Duration) -> Option<Result<Vec<u8>, ObjectFault>>;

    /// Takes in what has arrived, and waits for nothing.
    fn poll(&self);

    /// Has a thread take in what arrives, or none.
    fn deliver(&self, delivers: bool) -> Result<(), ObjectFault>;
}

/// The access of handles to the run-time system.
#[derive(Clone)]
pub struct RuntimeAccess(Arc<dyn Driver>);

impl RuntimeAccess {
    pub fn new(driver: impl Driver + 'static) -> Self {
        Self(Arc::new(driver))
    }

    /// # Panics
    /// Inside an operation, which runs while the machine, or the copy that the machine would change next, is held. To
    /// the caller of the operation that is an error.
    pub fn with<R>(&self, what: impl FnOnce(&mut Runtime) -> R) -> R {
        assert!(!is_inside(), "an operation cannot use handles of objects");
        let (mut what, mut done) = (Some(what), None);
        self.0.with(&mut |runtime| done = what.take().map(|what| what(runtime)));
        done.expect("a driver does it once")
    }

    /// Begins a call.
    pub fn begin(&self, begin: impl FnOnce(&mut Runtime) -> CallId) -> Result<CallId, ObjectFault> {
        if is_inside() {
            return Err(ObjectFault::Nested);
        }
        Ok(self.with(begin))
    }

    /// Begins a call and waits until it is over.
    pub fn wait(&self, begin: impl FnOnce(&mut Runtime) -> CallId) -> Result<Vec<u8>, ObjectFault> {
        let call = self.begin(begin)?;
        self.0.wait(call)
    }

    /// Waits for a call that was begun, not much longer than `patience`; `None`: it is not over.
    pub fn wait_within(&self, call: CallId, patience: Option<Duration>) -> Option<Result<Vec<u8>, ObjectFault>> {
        match patience {
            _ if is_inside() => Some(Err(ObjectFault::Nested)),
            None => Some(self.0.wait(call)),
            Some(patience) => self.0.wait_within(call, patience),
        }
    }

    /// Inside an operation nothing is taken in, as it could be an operation on the same copy.
    pub fn poll(&self) {
        if !is_inside() {
            self.0.poll();
        }
    }

    pub fn deliver(&self, delivers: bool) -> Result<(), ObjectFault> {
        if is_inside() { Err(ObjectFault::Nested) } else { self.0.deliver(delivers) }
    }
}

/// One process: what it orders, it gets.
pub struct Alone {
    runtime: Mutex<Runtime>,
    /// Rung when something was done, as that may end what another thread waits for.
    changed: Condvar,
}

impl Alone {
    pub fn new() -> Self {
        Self { runtime: Mutex::new(Runtime::new(0, 1)), changed: Condvar::new() }
    }

    fn hold(&self) -> MutexGuard<'_, Runtime> {
        self.runtime.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Driver for Alone {
    fn with(&self, what: &mut dyn FnMut(&mut Runtime)) {
        let mut runtime = self.hold();
        what(&mut runtime);
        while let Some(effect) = runtime.poll_effect() {
            let Effect::Order(event) = effect else { unreachable!("there is nobody to send to") };
            let number = runtime.handled() + 1;
            runtime.handle_ordered(number, 0, &event);
        }
        self.changed.notify_all();
    }

    fn wait(&self, call: CallId) -> Result<Vec<u8>, ObjectFault> {
        let mut runtime = self.hold();
        loop {
            if let Some(answer) = runtime.poll_answer(call) {
                return answer;
            }
            runtime = self.changed.wait(runtime).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn wait_within(&self, call: CallId, patience: Duration) -> Option<Result<Vec<u8>, ObjectFault>> {
        let until = Instant::now() + patience;
        let mut runtime = self.hold();
        loop {
            if let Some(answer) = runtime.poll_answer(call) {
                return Some(answer);
            }
            let left = until.checked_duration_since(Instant::now())?;
            runtime = self.changed.wait_timeout(runtime, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn poll(&self) {}

    fn deliver(&self, _: bool) -> Result<(), ObjectFault> {
        Ok(())
    }
}

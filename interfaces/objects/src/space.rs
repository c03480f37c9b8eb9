//! The space: all objects of the processes that work together, seen from one of them.

use crate::copy::{LocalCopy, is_inside};
use crate::fault::ObjectFault;
use crate::handle::ObjectHandle;
use crate::live::Live;
use crate::message::{CallId, ProcessId};
use crate::object::{ObjectType, decode, encode};
use crate::runtime::{Effect, Runtime};
use std::any::{Any, type_name};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What moves a run-time system: it delivers what is to be sent, and waits.
pub(crate) trait Driver: Send + Sync {
    /// Has something done with the machine, and what it wants sent on its way.
    fn with(&self, what: &mut dyn FnMut(&mut Runtime));

    /// Waits until a call is over.
    fn wait(&self, call: CallId) -> Result<Vec<u8>, ObjectFault>;

    /// Takes in what has arrived, and waits for nothing.
    fn poll(&self);
}

/// All objects of the processes that work together, seen from this one.
#[derive(Clone)]
pub struct Space {
    driver: Arc<dyn Driver>,
}

impl Space {
    /// Joins the job with all its processes, and waits until they have; a process that nobody has launched is a job of its
    /// own. It leaves when the last handle and the last space are dropped; without [`Self::close`] it has ended for the
    /// others.
    ///
    /// # Errors
    /// The process cannot join, has opened it already, or another one has ended before it did.
    pub fn open() -> Result<Self, ObjectFault> {
        Ok(Self::driven_by(Arc::new(Live::open()?)))
    }

    /// The end: waits until all processes say this, so that nobody leaves who has what others need.
    ///
    /// # Errors
    /// The processes have no order any more.
    pub fn close(self) -> Result<(), ObjectFault> {
        self.wait(Runtime::handle_close).map(drop)
    }

    /// This process, and how many there are.
    pub fn place(&self) -> (ProcessId, u32) {
        self.with(|runtime| runtime.place())
    }

    /// A space of this process alone, for tests of what uses objects. It needs no job.
    pub fn alone() -> Self {
        Self::driven_by(Arc::new(Alone { runtime: Mutex::new(Runtime::new(0, 1)), changed: Condvar::new() }))
    }

    fn driven_by(driver: Arc<dyn Driver>) -> Self {
        Self { driver }
    }

    /// Creates the object of this name, or opens it if it is there already and of the same type.
    ///
    /// # Errors
    /// It is of another type, or lost.
    pub fn share<T: ObjectType>(&self, name: &str, initial: T) -> Result<ObjectHandle<T>, ObjectFault> {
        let state = encode(&initial).map_err(|fault| crate::copy::misfit(format!("the state of '{name}'"), &fault))?;
        self.open_object(name, Some(state))
    }

    /// Opens the object of this name.
    ///
    /// # Errors
    /// Nobody has created it, it is of another type, or lost.
    pub fn find<T: ObjectType>(&self, name: &str) -> Result<ObjectHandle<T>, ObjectFault> {
        self.open_object(name, None)
    }

    fn open_object<T: ObjectType>(&self, name: &str, initial: Option<Vec<u8>>) -> Result<ObjectHandle<T>, ObjectFault> {
        let copy = Arc::new(LocalCopy::<T>::new());
        let kind = type_name::<T>();
        let answer = self.wait(|runtime| runtime.handle_open(name, kind, initial.clone(), copy.clone()))?;
        let object = decode(&answer).expect("the machine's own number");
        let held: Arc<dyn Any + Send + Sync> = self.with(|runtime| runtime.copy(object)).expect("it is open");
        let copy = held.downcast().expect("types of one name are one type");
        Ok(ObjectHandle::new(self.clone(), object, copy))
    }

    pub(crate) fn with<R>(&self, what: impl FnOnce(&mut Runtime) -> R) -> R {
        let (mut what, mut done) = (Some(what), None);
        self.driver.with(&mut |runtime| done = what.take().map(|what| what(runtime)));
        done.expect("a driver does it once")
    }

    /// Begins a call and waits until it is over.
    pub(crate) fn wait(&self, begin: impl FnOnce(&mut Runtime) -> CallId) -> Result<Vec<u8>, ObjectFault> {
        if is_inside() {
            return Err(ObjectFault::Nested);
        }
        let call = self.with(begin);
        self.driver.wait(call)
    }

    pub(crate) fn poll(&self) {
        self.driver.poll();
    }
}

/// One process: what it orders, it gets.
struct Alone {
    runtime: Mutex<Runtime>,
    /// Rung when something was done, as that may end what another thread waits for.
    changed: Condvar,
}

impl Alone {
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

    fn poll(&self) {}
}

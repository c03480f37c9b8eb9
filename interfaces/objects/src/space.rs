//! The space: all objects of the processes that work together, seen from one of them.

use crate::copy::{LocalCopy, misfit};
use crate::driver::{Alone, RuntimeAccess};
use crate::dynamic::DynamicHandle;
use crate::fault::ObjectFault;
use crate::handle::ObjectHandle;
use crate::kind::{ObjectKind, StaticKind};
use crate::live::Live;
use crate::message::{ObjectId, ProcessId};
use crate::object::{ObjectType, decode, encode};
use crate::runtime::Runtime;
use std::any::Any;
use std::sync::Arc;

/// All objects of the processes that work together, seen from this one.
#[derive(Clone)]
pub struct Space {
    runtime: RuntimeAccess,
}

impl Space {
    /// Joins the job with all its processes, and waits until they have; a process that nobody has launched is a job of
    /// its own. It leaves when the last handle and the last space are dropped; without [`Self::close`] it has ended for
    /// the others.
    ///
    /// # Errors
    /// The process cannot join, has opened it already, or another one has ended before it did.
    pub fn open() -> Result<Self, ObjectFault> {
        Ok(Self { runtime: RuntimeAccess::new(Live::open()?) })
    }

    /// From now on a thread of its own takes what comes while the program computes; or not any more. Without it that
    /// is done where the program calls something, and who computes for long keeps others waiting who need an object
    /// that is on this process only, or the process that orders.
    ///
    /// # Errors
    /// The system gives no thread, or this one is inside an operation.
    pub fn deliver(&self, delivers: bool) -> Result<(), ObjectFault> {
        self.runtime.deliver(delivers)
    }

    /// The end: waits until all processes say this, so that nobody leaves who has what others need.
    ///
    /// # Errors
    /// The processes have no order any more.
    pub fn close(self) -> Result<(), ObjectFault> {
        self.runtime.wait(Runtime::handle_close).map(drop)
    }

    /// This process, and how many there are.
    ///
    /// # Panics
    /// Inside an operation.
    pub fn place(&self) -> (ProcessId, u32) {
        self.runtime.with(|runtime| runtime.place())
    }

    /// Takes in what has arrived, and waits for nothing: for those who compute long while others may want something of
    /// an object that is here. Inside an operation it does nothing.
    pub fn poll(&self) {
        self.runtime.poll();
    }

    /// A space of this process alone, for tests of what uses objects. It needs no job.
    pub fn alone() -> Self {
        Self { runtime: RuntimeAccess::new(Alone::new()) }
    }

    /// Creates the object of this name, or opens it if it is there already and of the same type. One that was lost with
    /// the process that had it is created anew; handles of the lost one stay lost.
    ///
    /// # Errors
    /// It is of another type, or the name is empty.
    pub fn share<T: ObjectType>(&self, name: &str, initial: T) -> Result<ObjectHandle<T>, ObjectFault> {
        let state = encode(&initial).map_err(|fault| misfit(format!("the state of '{name}'"), &fault))?;
        self.open_static(name, Some(state))
    }

    /// Opens the object of this name.
    ///
    /// # Errors
    /// Nobody has created it, it is of another type, or lost.
    pub fn find<T: ObjectType>(&self, name: &str) -> Result<ObjectHandle<T>, ObjectFault> {
        self.open_static(name, None)
    }

    fn open_static<T: ObjectType>(&self, name: &str, initial: Option<Vec<u8>>) -> Result<ObjectHandle<T>, ObjectFault> {
        let (object, copy) = self.open_object(name, &Arc::new(StaticKind::<T>::new()), initial)?;
        Ok(ObjectHandle::new(self.runtime.clone(), object, copy))
    }

    /// Opens the object of this name, of a kind that was made while the program runs; creates it with a packed state,
    /// if there is one. What this process has opened with this name before has its kind from then.
    ///
    /// # Errors
    /// As [`Self::share`] and [`Self::find`].
    pub fn open_dynamic<K: ObjectKind>(
        &self,
        name: &str,
        kind: Arc<K>,
        initial: Option<Vec<u8>>,
    ) -> Result<DynamicHandle<K>, ObjectFault> {
        let (object, copy) = self.open_object(name, &kind, initial)?;
        Ok(DynamicHandle::new(self.runtime.clone(), object, copy, kind))
    }

    fn open_object<K: ObjectKind>(
        &self,
        name: &str,
        kind: &Arc<K>,
        initial: Option<Vec<u8>>,
    ) -> Result<(ObjectId, Arc<LocalCopy<K>>), ObjectFault> {
        if name.is_empty() {
            return Err(ObjectFault::NoName);
        }
        let copy = Arc::new(LocalCopy::new(name, kind.clone()));
        let named = kind.name();
        let answer = self.runtime.wait(|runtime| runtime.handle_open(name, &named, initial, copy.clone()))?;
        let object = decode(&answer).expect("the machine's own number");
        let held: Arc<dyn Any + Send + Sync> = self.runtime.with(|runtime| runtime.copy(object)).expect("it is open");
        let other = |_| {
            let is = format!("{named} of another door");
            ObjectFault::OtherType { name: name.to_owned(), is, asked: named.clone() }
        };
        Ok((object, held.downcast().map_err(other)?))
    }
}

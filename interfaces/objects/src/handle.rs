//! Handles: what `#[object]` builds its methods of.

use crate::copy::{LocalCopy, misfit};
use crate::driver::RuntimeAccess;
use crate::fault::ObjectFault;
use crate::kind::StaticKind;
use crate::message::{ObjectId, ObjectPlacement, Strategy};
use crate::object::{ObjectType, decode, encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// After so many reads that asked nobody, what has arrived is looked at, so that who reads in a loop sees what changes.
pub const READS: u64 = 64;

/// An object that this process has opened. Handles that `#[object]` makes lead to this one.
pub struct ObjectHandle<T: ObjectType> {
    runtime: RuntimeAccess,
    object: ObjectId,
    copy: Arc<LocalCopy<StaticKind<T>>>,
}

impl<T: ObjectType> Clone for ObjectHandle<T> {
    fn clone(&self) -> Self {
        Self { runtime: self.runtime.clone(), object: self.object, copy: self.copy.clone() }
    }
}

impl<T: ObjectType> ObjectHandle<T> {
    pub(crate) fn new(runtime: RuntimeAccess, object: ObjectId, copy: Arc<LocalCopy<StaticKind<T>>>) -> Self {
        Self { runtime, object, copy }
    }

    /// The object's name.
    pub fn name(&self) -> &str {
        self.copy.name()
    }

    /// Has the object replicated or on one process from now on, or where counting says. All processes agree on the
    /// moment.
    ///
    /// # Errors
    /// That process has not opened it, or the object is lost.
    pub fn place(&self, strategy: Strategy) -> Result<(), ObjectFault> {
        self.runtime.wait(|runtime| runtime.handle_place(self.object, strategy)).map(drop)
    }

    /// Where the object is, as far as this process has heard.
    ///
    /// # Panics
    /// Inside an operation, which may use its own object only.
    pub fn placement(&self) -> ObjectPlacement {
        self.runtime.with(|runtime| runtime.placement(self.object)).expect("it is open")
    }

    /// An operation where the object is.
    ///
    /// # Errors
    /// As [`ObjectFault`] says.
    pub fn call<R: DeserializeOwned>(&self, number: u16, arguments: &impl Serialize) -> Result<R, ObjectFault> {
        let name = || T::OPERATIONS[usize::from(number)].name;
        let bytes = encode(arguments).map_err(|fault| misfit(format!("an argument of '{}'", name()), &fault))?;
        let answer = self.runtime.wait(|runtime| runtime.handle_call(self.object, number, bytes))?;
        decode(&answer).map_err(|fault| misfit(format!("the answer of '{}'", name()), &fault))
    }

    /// A read: of the copy in this process, if it has one and the guard `is_ready` says so; else as [`Self::call`].
    ///
    /// # Errors
    /// As [`ObjectFault`] says.
    #[inline]
    pub fn read<A: Serialize, R: DeserializeOwned>(
        &self,
        number: u16,
        arguments: A,
        is_ready: impl FnOnce(&T, &A) -> bool,
        run: impl FnOnce(&T, A) -> R,
    ) -> Result<R, ObjectFault> {
        let mut given = Some(arguments);
        let ready = |state: &T, given: &Option<A>| given.as_ref().is_some_and(|arguments| is_ready(state, arguments));
        let read = self.copy.read(number, |state| {
            if !ready(state, &given) {
                return None;
            }
            given.take().map(|arguments| run(state, arguments))
        })?;
        match (read, given) {
            (Some((answer, reads)), _) => {
                if reads % READS == 0 {
                    self.runtime.poll();
                }
                Ok(answer)
            }
            (None, Some(arguments)) => self.call(number, &arguments),
            (None, None) => unreachable!("arguments are taken for an answer"),
        }
    }
}

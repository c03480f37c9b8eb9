//! Handles of objects whose operations are called by number with bytes: what doors for other languages are built on.

use crate::copy::LocalCopy;
use crate::driver::RuntimeAccess;
use crate::fault::ObjectFault;
use crate::handle::READS;
use crate::kind::ObjectKind;
use crate::message::{CallId, ObjectId, ObjectPlacement, Strategy};
use std::sync::Arc;
use std::time::Duration;

/// Whether this thread is inside an operation, where it may call nothing of objects.
pub fn is_inside_operation() -> bool {
    crate::copy::is_inside()
}

/// An object that this process has opened, for calls by number with bytes.
pub struct DynamicHandle<K: ObjectKind> {
    runtime: RuntimeAccess,
    object: ObjectId,
    copy: Arc<LocalCopy<K>>,
    kind: Arc<K>,
}

impl<K: ObjectKind> DynamicHandle<K> {
    pub(crate) fn new(runtime: RuntimeAccess, object: ObjectId, copy: Arc<LocalCopy<K>>, kind: Arc<K>) -> Self {
        Self { runtime, object, copy, kind }
    }

    /// The object's name.
    pub fn name(&self) -> &str {
        self.copy.name()
    }

    /// Begins an operation. A read that the copy in this process can answer asks nobody: its answer is in `answer`
    /// then, and `None` here.
    ///
    /// # Errors
    /// As [`ObjectFault`] says.
    pub fn start(
        &self,
        number: u16,
        arguments: &[u8],
        answer: &mut Vec<u8>,
    ) -> Result<Option<StartedCall>, ObjectFault> {
        answer.clear();
        let Some(known) = self.kind.operation(number) else {
            return Err(self.copy.no_operation(number));
        };
        if !known.writes
            && let Some(reads) = self.copy.read_here(number, arguments, answer)?
        {
            if reads % READS == 0 {
                self.runtime.poll();
            }
            return Ok(None);
        }
        let call = self.runtime.begin(|runtime| runtime.handle_call(self.object, number, arguments.to_vec()))?;
        Ok(Some(StartedCall { runtime: self.runtime.clone(), call: Some(call) }))
    }

    /// As [`crate::ObjectHandle::place`].
    ///
    /// # Errors
    /// That process has not opened it, or the object is lost.
    pub fn place(&self, strategy: Strategy) -> Result<(), ObjectFault> {
        self.runtime.wait(|runtime| runtime.handle_place(self.object, strategy)).map(drop)
    }

    /// As [`crate::ObjectHandle::placement`].
    ///
    /// # Panics
    /// Inside an operation.
    pub fn placement(&self) -> ObjectPlacement {
        self.runtime.with(|runtime| runtime.placement(self.object)).expect("it is open")
    }
}

/// An operation that was begun. Who drops this will not hear of it any more; it may be done all the same.
pub struct StartedCall {
    runtime: RuntimeAccess,
    /// `None` once its answer was told.
    call: Option<CallId>,
}

impl StartedCall {
    /// Waits until it is done, not much longer than `patience`; its answer then, which is told once.
    ///
    /// # Errors
    /// As [`ObjectFault`] says.
    pub fn wait(&mut self, patience: Option<Duration>) -> Option<Result<Vec<u8>, ObjectFault>> {
        let answer = self.runtime.wait_within(self.call?, patience)?;
        self.call = None;
        Some(answer)
    }
}

impl Drop for StartedCall {
    fn drop(&mut self) {
        // Inside an operation nobody can be told: the answer stays until the process ends.
        if let Some(call) = self.call.filter(|_| !is_inside_operation()) {
            self.runtime.with(|runtime| runtime.handle_given_up(call));
        }
    }
}

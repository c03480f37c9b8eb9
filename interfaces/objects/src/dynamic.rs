//! Kinds of objects whose operations are known by number, and may be made while the program runs: what doors for other
//! languages are built on. A type of `#[object]` is one, too ([`StaticKind`]).
//!
//! Arguments, answers and states are bytes here, and whatever form they have is the door's own.

use crate::copy::LocalCopy;
use crate::driver::RuntimeAccess;
use crate::fault::ObjectFault;
use crate::handle::READS;
use crate::message::{CallId, ObjectId, ObjectPlacement, Strategy};
use crate::object::{FormatFault, ObjectType, decode, encode};
use std::any::type_name;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// Whether this thread is inside an operation, where it may call nothing of objects.
pub fn is_inside_operation() -> bool {
    crate::copy::is_inside()
}

/// What is known of an operation.
#[derive(Clone, Copy, Debug)]
pub struct KnownOperation<'a> {
    pub name: &'a str,
    /// It may change the state.
    pub writes: bool,
}

/// Why an operation was not done.
#[derive(Debug)]
pub enum RunFault {
    /// Its arguments or its answer have another form. Nothing has changed.
    Format(FormatFault),
    /// It says so. If it writes, the object cannot be used any more.
    Failed(String),
}

/// What objects of one type have in common.
pub trait ObjectKind: Send + Sync + 'static {
    type State: Send + 'static;

    /// What tells it from other types, on all processes alike.
    fn name(&self) -> String;

    /// The operation of this number, if there is one.
    fn operation(&self, number: u16) -> Option<KnownOperation<'_>>;

    /// Runs an operation; false if its guard is. The answer is written only where somebody waits for it.
    ///
    /// # Errors
    /// As [`RunFault`] says.
    fn run(
        &self,
        number: u16,
        state: &mut Self::State,
        arguments: &[u8],
        answer: Option<&mut Vec<u8>>,
    ) -> Result<bool, RunFault>;

    /// A state as bytes, if it has a form.
    fn pack(&self, state: &Self::State) -> Option<Vec<u8>>;

    /// A state out of bytes, if they are one.
    fn unpack(&self, bytes: &[u8]) -> Option<Self::State>;
}

/// The kind of a type of `#[object]`.
pub struct StaticKind<T>(PhantomData<fn() -> T>);

impl<T> StaticKind<T> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: ObjectType> ObjectKind for StaticKind<T> {
    type State = T;

    fn name(&self) -> String {
        type_name::<T>().to_owned()
    }

    #[inline]
    fn operation(&self, number: u16) -> Option<KnownOperation<'_>> {
        let operation = T::OPERATIONS.get(usize::from(number))?;
        Some(KnownOperation { name: operation.name, writes: operation.writes })
    }

    fn run(
        &self,
        number: u16,
        state: &mut T,
        arguments: &[u8],
        answer: Option<&mut Vec<u8>>,
    ) -> Result<bool, RunFault> {
        let done = (T::OPERATIONS[usize::from(number)].run)(state, arguments, answer.is_some());
        let Some(bytes) = done.map_err(RunFault::Format)? else { return Ok(false) };
        if let Some(answer) = answer {
            *answer = bytes;
        }
        Ok(true)
    }

    fn pack(&self, state: &T) -> Option<Vec<u8>> {
        encode(state).ok()
    }

    fn unpack(&self, bytes: &[u8]) -> Option<T> {
        decode(bytes).ok()
    }
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
            let kind = self.kind.name();
            return Err(ObjectFault::Format(format!("operation {number}"), format!("{kind} has fewer")));
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

    /// Where the object is, as far as this process has heard.
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
        if let Some(call) = self.call {
            self.runtime.with(|runtime| runtime.handle_given_up(call));
        }
    }
}

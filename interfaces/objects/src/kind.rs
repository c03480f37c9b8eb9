//! Kinds of objects: what those of one type have in common, whose operations are known by number.
//!
//! A kind may be made while the program runs, which doors for other languages do. A type of `#[object]` is one, too
//! ([`StaticKind`]). Arguments, answers and states are bytes here, and whatever form they have is the door's own.

use crate::object::{FormatFault, ObjectType, decode, encode};
use std::any::type_name;
use std::marker::PhantomData;

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

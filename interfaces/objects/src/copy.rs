//! What this process has of an object: the state, behind a lock of its own, so that a read asks nobody else.
//!
//! The run-time system knows a copy as a [`Replica`], which takes bytes; handles know its type. An operation runs while
//! the lock of its copy is held. It may use its own state only: a call of another operation from inside would wait for
//! what it holds itself, and is refused.

use crate::fault::ObjectFault;
use crate::kind::{KnownOperation, ObjectKind, RunFault};
use crate::object::FormatFault;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

thread_local! {
    /// Whether this thread is inside an operation.
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// The time in which a thread is inside an operation.
struct InsideOperation;

impl InsideOperation {
    #[inline]
    fn enter() -> Option<Self> {
        (!IS_INSIDE.replace(true)).then_some(Self)
    }
}

impl Drop for InsideOperation {
    fn drop(&mut self) {
        IS_INSIDE.set(false);
    }
}

/// Whether the thread is inside an operation, where it may call none.
pub fn is_inside() -> bool {
    IS_INSIDE.get()
}

/// What became of an operation that was tried.
#[derive(Debug)]
pub enum AttemptEnd {
    /// Its guard is false.
    Waits,
    Over(Result<Vec<u8>, ObjectFault>),
}

/// What the run-time system does with a copy.
pub trait Replica: Any + Send + Sync {
    /// Tries an operation on the state that is here. An answer is written only if somebody `is_answered`.
    fn try_operation(&self, operation: u16, arguments: &[u8], is_answered: bool) -> AttemptEnd;

    /// Whether the operation may change the state; one that is not there does not.
    fn writes(&self, operation: u16) -> bool;

    /// What the operation is called.
    fn name_of(&self, operation: u16) -> String;

    /// The state as bytes; `None` if there is none that could be used.
    fn state(&self) -> Option<Vec<u8>>;

    /// Takes a state over. With `None`, or with bytes of another type, the object cannot be used.
    fn install(&self, state: Option<&[u8]>);

    /// Gives the state up, as it is elsewhere from now on.
    fn forget(&self);

    /// How many reads handles have done here since this was last asked.
    fn take_reads(&self) -> u64;
}

/// A copy of an object of this kind.
pub struct LocalCopy<K: ObjectKind> {
    /// The object's.
    name: String,
    kind: Arc<K>,
    held: Mutex<HeldState<K::State>>,
}

struct HeldState<T> {
    /// `None` where the object is elsewhere, or cannot be used.
    state: Option<T>,
    reads: u64,
}

impl<K: ObjectKind> LocalCopy<K> {
    pub fn new(name: &str, kind: Arc<K>) -> Self {
        Self { name: name.to_owned(), kind, held: Mutex::new(HeldState { state: None, reads: 0 }) }
    }

    /// The object's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// That there is no operation of this number.
    #[cold]
    pub fn no_operation(&self, number: u16) -> ObjectFault {
        let operations = (0..u16::MAX).take_while(|number| self.kind.operation(*number).is_some()).count() as u16;
        ObjectFault::NoOperation { name: self.name.clone(), number, operations }
    }

    /// A panic is caught before the lock is given back, so what it says about panics is nothing new.
    #[inline]
    fn hold(&self) -> MutexGuard<'_, HeldState<K::State>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a read of the state here answers, if there is one and `run` has one, and how many reads there have been.
    ///
    /// # Errors
    /// The operation panicked, or the thread is inside of one.
    #[inline]
    pub fn read<R>(
        &self,
        operation: u16,
        run: impl FnOnce(&K::State) -> Option<R>,
    ) -> Result<Option<(R, u64)>, ObjectFault> {
        let _inside = InsideOperation::enter().ok_or(ObjectFault::Nested)?;
        let mut held = self.hold();
        let HeldState { state: Some(state), reads, .. } = &mut *held else { return Ok(None) };
        match catch_unwind(AssertUnwindSafe(|| run(state))) {
            Ok(None) => Ok(None),
            Ok(Some(answer)) => {
                *reads += 1;
                Ok(Some((answer, *reads)))
            }
            Err(panic) => Err(panicked(&self.name_of(operation), &*panic)),
        }
    }

    /// The same for a read that is known by its number. `None`: there is no state here, or the guard is false.
    ///
    /// # Errors
    /// As [`ObjectFault`] says.
    pub fn read_here(
        &self,
        operation: u16,
        arguments: &[u8],
        answer: &mut Vec<u8>,
    ) -> Result<Option<u64>, ObjectFault> {
        let _inside = InsideOperation::enter().ok_or(ObjectFault::Nested)?;
        let mut held = self.hold();
        let HeldState { state: Some(state), reads } = &mut *held else { return Ok(None) };
        match self.attempt(operation, state, arguments, Some(answer)) {
            Ok(true) => {
                *reads += 1;
                Ok(Some(*reads))
            }
            Ok(false) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Runs an operation on a state; false if its guard is.
    fn attempt(
        &self,
        operation: u16,
        state: &mut K::State,
        arguments: &[u8],
        answer: Option<&mut Vec<u8>>,
    ) -> Result<bool, ObjectFault> {
        match catch_unwind(AssertUnwindSafe(|| self.kind.run(operation, state, arguments, answer))) {
            Ok(Ok(is_done)) => Ok(is_done),
            Ok(Err(RunFault::Format(fault))) => {
                Err(misfit(format!("what operation '{}' takes or answers", self.name_of(operation)), &fault))
            }
            Ok(Err(RunFault::Failed(message))) => {
                Err(ObjectFault::Failed { operation: self.name_of(operation), message })
            }
            Err(panic) => Err(panicked(&self.name_of(operation), &*panic)),
        }
    }
}

#[cold]
fn panicked(operation: &str, panic: &(dyn Any + Send)) -> ObjectFault {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let message = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    ObjectFault::Panicked { operation: operation.to_owned(), message }
}

pub(crate) fn misfit(what: impl Into<String>, fault: &FormatFault) -> ObjectFault {
    ObjectFault::Format(what.into(), fault.to_string())
}

impl<K: ObjectKind> Replica for LocalCopy<K> {
    fn try_operation(&self, operation: u16, arguments: &[u8], is_answered: bool) -> AttemptEnd {
        let Some(KnownOperation { writes, .. }) = self.kind.operation(operation) else {
            return AttemptEnd::Over(Err(self.no_operation(operation)));
        };
        let Some(_inside) = InsideOperation::enter() else { return AttemptEnd::Over(Err(ObjectFault::Nested)) };
        let mut held = self.hold();
        let Some(state) = &mut held.state else {
            return AttemptEnd::Over(Err(ObjectFault::Poisoned { name: self.name.clone() }));
        };
        let mut answer = Vec::new();
        let over = match self.attempt(operation, state, arguments, is_answered.then_some(&mut answer)) {
            Ok(false) => return AttemptEnd::Waits,
            Ok(true) => Ok(answer),
            Err(fault) => {
                if writes && matches!(fault, ObjectFault::Panicked { .. } | ObjectFault::Failed { .. }) {
                    held.state = None;
                }
                Err(fault)
            }
        };
        AttemptEnd::Over(over)
    }

    fn writes(&self, operation: u16) -> bool {
        self.kind.operation(operation).is_some_and(|operation| operation.writes)
    }

    #[cold]
    fn name_of(&self, operation: u16) -> String {
        self.kind.operation(operation).map_or_else(|| operation.to_string(), |known| known.name.to_owned())
    }

    fn state(&self) -> Option<Vec<u8>> {
        self.hold().state.as_ref().and_then(|state| self.kind.pack(state))
    }

    fn install(&self, state: Option<&[u8]>) {
        let state = state.and_then(|bytes| self.kind.unpack(bytes));
        self.hold().state = state;
    }

    fn forget(&self) {
        self.hold().state = None;
    }

    fn take_reads(&self) -> u64 {
        std::mem::take(&mut self.hold().reads)
    }
}

//! What this thread has begun, and its last answer.

use crate::fault::{CallFault, FaultNumber, Result};
use crate::space;
use std::cell::RefCell;
use std::ffi::c_int;
use std::time::Duration;
use weft_objects::dynamic::StartedCall;

/// An answer up to this length leaves its memory to the next one.
const KEPT_BYTES: usize = 64 * 1024;

#[derive(Default)]
struct ThreadCalls {
    /// What is not done yet.
    started: Option<StartedCall>,
    answer: Vec<u8>,
    /// What the call answers with it: 1 for a job of a queue.
    code: c_int,
}

thread_local! {
    static CALLS: RefCell<ThreadCalls> = RefCell::default();
}

/// Begins an operation, and waits for it; its answer is found by [`with_answer`] then.
pub fn start(object: c_int, operation: c_int, arguments: &[u8], patience: Option<Duration>) -> Result<()> {
    let object = space::object(object)?;
    let ThreadCalls { mut answer, started, .. } = CALLS.take();
    drop(started);
    if answer.capacity() > KEPT_BYTES {
        answer = Vec::new();
    }
    let started = object.start(operation, arguments, &mut answer)?;
    let is_done = started.is_none();
    CALLS.set(ThreadCalls { started, answer, code: 0 });
    if is_done { Ok(()) } else { wait(patience) }
}

/// Waits for what was begun, if it is not done.
pub fn wait(patience: Option<Duration>) -> Result<()> {
    space::outside_operation()?;
    let Some(mut started) = CALLS.with_borrow_mut(|calls| calls.started.take()) else { return Ok(()) };
    match started.wait(patience) {
        Some(answer) => {
            keep(answer?, 0);
            Ok(())
        }
        None => {
            CALLS.with_borrow_mut(|calls| calls.started = Some(started));
            Err(CallFault::new(FaultNumber::Timeout, "the operation is not done yet"))
        }
    }
}

/// An answer, to be found by [`with_answer`], and what its call answers. What was begun before is forgotten.
pub fn keep(answer: Vec<u8>, code: c_int) {
    drop(CALLS.replace(ThreadCalls { started: None, answer, code }));
}

/// The last answer of this thread, and what its call answers.
pub fn with_answer<R>(what: impl FnOnce(&[u8], c_int) -> R) -> R {
    CALLS.with_borrow(|calls| what(&calls.answer, calls.code))
}

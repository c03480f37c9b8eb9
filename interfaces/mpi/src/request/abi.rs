//! Bodies of the calls that complete, start, cancel and free requests.
//!
//! The user functions of generalized requests, which ending one calls, run after the monitor was left: what is taken
//! under the monitor is [`TakenRequest`], what the program sees of it is made by [`Batch`] or [`resolve`] later.

mod any;
mod batch;
mod every;
mod grequest;
mod peek;
mod single;
mod some;

pub use any::*;
pub use every::*;
pub use grequest::*;
pub use peek::*;
pub use single::*;
pub use some::*;

use super::{OperationEnd, TakenRequest};
use crate::abi::Status;
use crate::error::{Class, Error, Result};
use weft_fabric::Waiting;

/// What the status page says of a thread that waits for one of several requests.
fn waiting(call: &'static str) -> Waiting {
    Waiting { call, peer: None, tag: None, context: 0 }
}

/// The end of what was taken, and whether the handle is gone with it; `None` if it is pending.
/// The monitor must not be held.
///
/// # Safety
/// The functions of a generalized request may be called.
unsafe fn resolve(taken: TakenRequest) -> Option<(OperationEnd, bool)> {
    match taken {
        TakenRequest::Pending => None,
        TakenRequest::Inactive => Some((OperationEnd::EMPTY, false)),
        TakenRequest::Ended { end, kept } => Some((end, !kept)),
        // SAFETY: the caller's promise.
        TakenRequest::Outside(functions) => Some((unsafe { functions.end() }, true)),
    }
}

/// Stores the status and answers the error.
///
/// # Safety
/// `status` is null or points to a status.
unsafe fn finish(end: OperationEnd, status: *mut Status) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { end.status.store(status) };
    end.error.map_or(Ok(()), |error| Err(*error))
}

/// The length of an array that a program gave.
fn length(count: i32) -> Result<usize> {
    usize::try_from(count).map_err(|_| Error::new(Class::Count, format!("count {count} of requests is negative")))
}

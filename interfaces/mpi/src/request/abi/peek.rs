//! Asking for statuses without completing (MPI 5.0, section 3.7.6).

use super::batch::Batch;
use super::every::all_complete;
use super::some::any_active;
use super::{finish, length};
use crate::abi::{SUCCESS, Status, UNDEFINED};
use crate::error::Result;
use crate::request::{OperationEnd, TakenRequest, peek};
use crate::world::{World, look};

/// The end that was seen; the monitor must not be held.
///
/// # Safety
/// The functions of a generalized request may be called.
unsafe fn seen(taken: TakenRequest) -> OperationEnd {
    match taken {
        TakenRequest::Ended { end, .. } => end,
        // SAFETY: the caller's promise.
        TakenRequest::Outside(functions) => unsafe { functions.query() },
        TakenRequest::Inactive | TakenRequest::Pending => OperationEnd::EMPTY,
    }
}

fn complete(world: &mut World, handle: usize) -> Option<Result<TakenRequest>> {
    match peek(world, handle) {
        Ok(TakenRequest::Pending) => None,
        taken => Some(taken),
    }
}

/// `MPI_Request_get_status`.
pub unsafe fn get_status(request: usize, flag: *mut i32, status: *mut Status) -> Result<()> {
    // SAFETY: the program's flag, status and functions.
    unsafe {
        let taken = look(|world| complete(world, request));
        *flag = taken.is_some() as i32;
        match taken {
            None => Ok(()),
            Some(taken) => finish(seen(taken?), status),
        }
    }
}

/// `MPI_Request_get_status_all`.
pub unsafe fn get_status_all(count: i32, requests: *const usize, flag: *mut i32, statuses: *mut Status) -> Result<()> {
    let count = length(count)?;
    // SAFETY: the program's arrays of `count`, its flag and functions.
    unsafe {
        let mut batch = Batch::new(requests.cast_mut(), statuses);
        let all = look(|world| match all_complete(world, &batch, count) {
            Ok(false) => None,
            Ok(true) => Some(see_all(world, &mut batch, count)),
            Err(error) => Some(Err(error)),
        });
        *flag = all.is_some() as i32;
        all.unwrap_or(Ok(()))?;
        batch.conclude()
    }
}

fn see_all(world: &mut World, batch: &mut Batch, count: usize) -> Result<()> {
    for index in 0..count {
        let taken = peek(world, batch.handle(index))?;
        batch.settle_seen(taken);
    }
    Ok(())
}

/// `MPI_Request_get_status_any`.
pub unsafe fn get_status_any(
    count: i32,
    requests: *const usize,
    index: *mut i32,
    flag: *mut i32,
    status: *mut Status,
) -> Result<()> {
    let count = length(count)?;
    // SAFETY: the program's arrays of `count`, its places for the answers, its functions.
    unsafe {
        let batch = Batch::new(requests.cast_mut(), std::ptr::null_mut());
        let found = look(|world| see_any(world, &batch, count));
        *flag = found.is_some() as i32;
        *index = UNDEFINED;
        let Some(found) = found else { return Ok(()) };
        match found? {
            None => {
                // Nothing was waited for: the empty status has no error (MPI 5.0, section 3.7.3).
                if !status.is_null() {
                    (*status).error = SUCCESS;
                }
                finish(OperationEnd::EMPTY, status)
            }
            Some((place, taken)) => {
                *index = place as i32;
                finish(seen(taken), status)
            }
        }
    }
}

/// A complete one; `None` if there are only pending ones, nothing inside if none is active.
#[allow(clippy::type_complexity)]
fn see_any(world: &mut World, batch: &Batch, count: usize) -> Option<Result<Option<(usize, TakenRequest)>>> {
    let mut active = false;
    for index in 0..count {
        match peek(world, batch.handle(index)) {
            Ok(TakenRequest::Inactive) => {}
            Ok(TakenRequest::Pending) => active = true,
            Ok(taken) => return Some(Ok(Some((index, taken)))),
            Err(error) => return Some(Err(error)),
        }
    }
    (!active).then_some(Ok(None))
}

/// `MPI_Request_get_status_some`.
pub unsafe fn get_status_some(
    count: i32,
    requests: *const usize,
    outcount: *mut i32,
    indices: *mut i32,
    statuses: *mut Status,
) -> Result<()> {
    let count = length(count)?;
    // SAFETY: as for `get_status_all`; `indices` has room for `count`.
    unsafe {
        let mut batch = Batch::new(requests.cast_mut(), statuses);
        let active = look(|world| match any_active(world, &batch, count) {
            Ok(false) => Some(Ok(false)),
            Ok(true) => see_some(world, &mut batch, count, indices).map(|seen| seen.map(|()| true)),
            Err(error) => Some(Err(error)),
        });
        *outcount = if active.unwrap_or(Ok(true))? { batch.filled() as i32 } else { UNDEFINED };
        batch.conclude()
    }
}

/// # Safety
/// `indices` has room for `count`.
unsafe fn see_some(world: &mut World, batch: &mut Batch, count: usize, indices: *mut i32) -> Option<Result<()>> {
    for index in 0..count {
        match peek(world, batch.handle(index)) {
            Ok(TakenRequest::Inactive | TakenRequest::Pending) => {}
            Ok(taken) => {
                // SAFETY: the caller's promise.
                unsafe { *indices.add(batch.filled()) = index as i32 };
                batch.settle_seen(taken);
            }
            Err(error) => return Some(Err(error)),
        }
    }
    (batch.filled() > 0).then_some(Ok(()))
}

//! One of several requests.

use super::{finish, length, resolve, waiting};
use crate::abi::{REQUEST_NULL, Status, UNDEFINED};
use crate::error::Result;
use crate::request::{OperationEnd, TakenRequest, take};
use crate::world::{WORLD, World, look};

/// What a look over several requests found.
enum FoundAny {
    One(usize, TakenRequest),
    /// All are null or inactive.
    NoneActive,
}

/// Takes the first request that is complete; `None` if there are only pending ones.
///
/// # Safety
/// `requests` has `count` handles.
unsafe fn find(world: &mut World, requests: *const usize, count: usize) -> Option<Result<FoundAny>> {
    let mut active = false;
    for index in 0..count {
        // SAFETY: the caller's promise.
        match take(world, unsafe { *requests.add(index) }) {
            Ok(TakenRequest::Inactive) => {}
            Ok(TakenRequest::Pending) => active = true,
            Ok(taken) => return Some(Ok(FoundAny::One(index, taken))),
            Err(error) => return Some(Err(error)),
        }
    }
    (!active).then_some(Ok(FoundAny::NoneActive))
}

/// Tells the program what was found.
///
/// # Safety
/// The pointers are the program's.
unsafe fn answer(found: FoundAny, requests: *mut usize, index: *mut i32, status: *mut Status) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        match found {
            FoundAny::NoneActive => {
                *index = UNDEFINED;
                finish(OperationEnd::EMPTY, status)
            }
            FoundAny::One(place, taken) => {
                *index = place as i32;
                let Some((end, gone)) = resolve(taken) else { return Ok(()) };
                if gone {
                    *requests.add(place) = REQUEST_NULL;
                }
                finish(end, status)
            }
        }
    }
}

/// `MPI_Waitany`.
pub unsafe fn waitany(count: i32, requests: *mut usize, index: *mut i32, status: *mut Status) -> Result<()> {
    let count = length(count)?;
    // SAFETY: the program's arrays of `count`, its index, status and functions.
    unsafe {
        let found = WORLD.wait(waiting("MPI_Waitany"), |world| find(world, requests, count))?;
        answer(found, requests, index, status)
    }
}

/// `MPI_Testany`.
pub unsafe fn testany(
    count: i32,
    requests: *mut usize,
    index: *mut i32,
    flag: *mut i32,
    status: *mut Status,
) -> Result<()> {
    let count = length(count)?;
    // SAFETY: as for `waitany`.
    unsafe {
        match look(|world| find(world, requests, count)) {
            None => {
                *index = UNDEFINED;
                *flag = 0;
                Ok(())
            }
            Some(found) => {
                *flag = 1;
                answer(found?, requests, index, status)
            }
        }
    }
}

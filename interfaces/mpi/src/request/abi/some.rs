//! As many of several requests as are complete.

use super::batch::Batch;
use super::{length, waiting};
use crate::abi::{Status, UNDEFINED};
use crate::error::Result;
use crate::request::{TakenRequest, is_active, take};
use crate::world::{WORLD, World, look};

/// Settles all that are complete. `None`: there are pending ones and none was complete; otherwise whether any was
/// active.
///
/// # Safety
/// `indices` has room for `count`.
unsafe fn settle(world: &mut World, batch: &mut Batch, count: usize, indices: *mut i32) -> Option<bool> {
    let mut active = false;
    for index in 0..count {
        let taken = take(world, batch.handle(index));
        if matches!(taken, Ok(TakenRequest::Inactive)) {
            continue;
        }
        active = true;
        if matches!(taken, Ok(TakenRequest::Pending)) {
            continue;
        }
        // SAFETY: the caller's promise.
        unsafe { *indices.add(batch.filled()) = index as i32 };
        match taken {
            Ok(taken) => batch.settle(index, taken),
            Err(error) => batch.fail(error),
        }
    }
    (!active || batch.filled() > 0).then_some(active)
}

/// `MPI_Waitsome`.
pub unsafe fn waitsome(
    count: i32,
    requests: *mut usize,
    outcount: *mut i32,
    indices: *mut i32,
    statuses: *mut Status,
) -> Result<()> {
    let count = length(count)?;
    // SAFETY: the program's arrays of `count`, its number and functions.
    unsafe {
        let mut batch = Batch::new(requests, statuses);
        let active = WORLD.wait(waiting("MPI_Waitsome"), |world| settle(world, &mut batch, count, indices));
        *outcount = if active { batch.filled() as i32 } else { UNDEFINED };
        batch.conclude()
    }
}

/// `MPI_Testsome`.
pub unsafe fn testsome(
    count: i32,
    requests: *mut usize,
    outcount: *mut i32,
    indices: *mut i32,
    statuses: *mut Status,
) -> Result<()> {
    let count = length(count)?;
    // SAFETY: as for `waitsome`.
    unsafe {
        let mut batch = Batch::new(requests, statuses);
        let active = look(|world| settle(world, &mut batch, count, indices)).unwrap_or(true);
        *outcount = if active { batch.filled() as i32 } else { UNDEFINED };
        batch.conclude()
    }
}

/// Whether any of the requests is neither null nor inactive.
pub(super) fn any_active(world: &World, batch: &Batch, count: usize) -> Result<bool> {
    for index in 0..count {
        if is_active(world, batch.handle(index))? {
            return Ok(true);
        }
    }
    Ok(false)
}

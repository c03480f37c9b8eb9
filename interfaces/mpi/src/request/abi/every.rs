//! All of several requests.

use super::batch::Batch;
use super::{length, waiting};
use crate::abi::Status;
use crate::error::{Class, Error, Result};
use crate::request::{TakenRequest, has_lost, is_complete, take, take_plain};
use crate::world::{WORLD, World, look};

/// `MPI_Waitall`. Once a process is lost that one of them needs, what is not complete is left and told as pending.
pub unsafe fn waitall(count: i32, requests: *mut usize, statuses: *mut Status) -> Result<()> {
    let count = length(count)?;
    // SAFETY: the program's arrays of `count`, and its functions.
    unsafe {
        let mut batch = Batch::new(requests, statuses);
        if count > 0 {
            WORLD.wait(waiting("MPI_Waitall"), |world| settle_in_order(world, &mut batch, count).then_some(()));
        }
        batch.conclude()
    }
}

/// Settles one request after the other until one is pending; true if all are settled.
fn settle_in_order(world: &mut World, batch: &mut Batch, count: usize) -> bool {
    while batch.filled() < count {
        let index = batch.filled();
        if let Some(status) = take_plain(world, batch.handle(index)) {
            batch.settle_plain(index, status);
            continue;
        }
        match take(world, batch.handle(index)) {
            Ok(TakenRequest::Pending) if batch.has_lost() || any_lost(world, batch, index, count) => {
                batch.fail(Error::new(Class::Pending, "not complete"));
            }
            Ok(TakenRequest::Pending) => return false,
            Ok(taken) => batch.settle(index, taken),
            Err(error) => batch.fail(error),
        }
    }
    true
}

/// `MPI_Testall`.
pub unsafe fn testall(count: i32, requests: *mut usize, flag: *mut i32, statuses: *mut Status) -> Result<()> {
    let count = length(count)?;
    // SAFETY: the program's arrays of `count`, its flag and functions.
    unsafe {
        let mut batch = Batch::new(requests, statuses);
        let complete = look(|world| match all_complete(world, &batch, count) {
            Ok(false) if any_lost(world, &batch, 0, count) => {
                settle_in_order(world, &mut batch, count);
                Some(Ok(()))
            }
            Ok(false) => None,
            Ok(true) => {
                settle_in_order(world, &mut batch, count);
                Some(Ok(()))
            }
            Err(error) => Some(Err(error)),
        });
        *flag = complete.is_some() as i32;
        complete.unwrap_or(Ok(()))?;
        batch.conclude()
    }
}

/// Whether any request from `first` on has ended, or stalls, for want of a process that is lost: the others may never
/// end.
fn any_lost(world: &mut World, batch: &Batch, first: usize, count: usize) -> bool {
    world.failures.has_losses() && (first..count).any(|index| has_lost(world, batch.handle(index)))
}

/// Whether all requests are complete, null or inactive.
pub(super) fn all_complete(world: &mut World, batch: &Batch, count: usize) -> Result<bool> {
    for index in 0..count {
        if !is_complete(world, batch.handle(index))? {
            return Ok(false);
        }
    }
    Ok(true)
}

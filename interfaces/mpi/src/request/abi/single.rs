//! One request at a time (MPI 5.0, sections 3.7.3, 3.8.4 and 3.9).

use super::{finish, length, resolve, waiting};
use crate::abi::{REQUEST_NULL, Status};
use crate::error::{Class, Error, Result};
use crate::request::{
    self, Functions, NO_PROC, Request, SENT, TakenRequest, Transfer, TransferDirection, check_startable, release, take,
};
use crate::world::{WORLD, look};
use weft_fabric::{Endpoint, Waiting};

/// `MPI_Wait`.
#[inline]
pub unsafe fn wait(request: *mut usize, status: *mut Status) -> Result<()> {
    // SAFETY: the program's handle and status.
    unsafe {
        let handle = *request;
        if handle == SENT {
            *request = REQUEST_NULL;
            Status::EMPTY.store(status);
            WORLD.enter().endpoint.push_out();
            return Ok(());
        }
        let mut guard = WORLD.enter();
        let world = &mut *guard;
        let Some(Request::Transfer(transfer)) = world.requests.find(handle) else {
            drop(guard);
            return wait_otherwise(request, status);
        };
        let (id, with) = (transfer.id, transfer.with);
        let early = world.endpoint.take_outcome(id);
        let outcome = match early {
            Some(outcome) => {
                world.endpoint.push_out();
                outcome
            }
            None => {
                drop(guard);
                let waiting = Waiting { call: "MPI_Wait", peer: with.peer, tag: with.tag, context: with.context };
                let outcome = WORLD.wait(waiting, |world| match world.endpoint.take_outcome(id) {
                    Some(outcome) => Some(Some(outcome)),
                    None => request::stalls(world, handle).then_some(None),
                });
                guard = WORLD.enter();
                let Some(outcome) = outcome else {
                    let stalled = resolve(request::stalled(&guard, handle));
                    drop(guard);
                    return stalled.map_or(Ok(()), |(end, _)| finish(end, status));
                };
                outcome
            }
        };
        let removed = guard.requests.remove(handle);
        drop(guard);
        *request = REQUEST_NULL;
        match removed? {
            Request::Transfer(mut transfer) => finish(transfer.conclude(outcome), status),
            _ => Ok(()),
        }
    }
}

/// Waits for a request that is no single message.
///
/// # Safety
/// As `wait`.
#[cold]
unsafe fn wait_otherwise(request: *mut usize, status: *mut Status) -> Result<()> {
    // SAFETY: the program's handle, status and functions.
    unsafe {
        let handle = *request;
        let taken = WORLD.wait(waiting("MPI_Wait"), |world| match take(world, handle) {
            Ok(TakenRequest::Pending) => None,
            taken => Some(taken),
        })?;
        match resolve(taken) {
            Some((end, gone)) => {
                if gone {
                    *request = REQUEST_NULL;
                }
                finish(end, status)
            }
            None => Ok(()),
        }
    }
}

/// `MPI_Test`.
pub unsafe fn test(request: *mut usize, flag: *mut i32, status: *mut Status) -> Result<()> {
    // SAFETY: the program's handle, flag, status and functions.
    unsafe {
        let handle = *request;
        let taken = look(|world| match take(world, handle) {
            Ok(TakenRequest::Pending) => None,
            taken => Some(taken),
        });
        let Some((end, gone)) = resolve(taken.unwrap_or(Ok(TakenRequest::Pending))?) else {
            *flag = 0;
            return Ok(());
        };
        *flag = 1;
        if gone {
            *request = REQUEST_NULL;
        }
        finish(end, status)
    }
}

/// `MPI_Request_free`.
pub unsafe fn free(request: *mut usize) -> Result<()> {
    // SAFETY: the program's handle and functions.
    unsafe {
        let functions: Option<Functions> = release(&mut WORLD.enter(), *request)?;
        *request = REQUEST_NULL;
        functions.map_or(Ok(()), |functions| functions.free())
    }
}

/// `MPI_Cancel`: receives that nothing has matched, and sends that ask and that nothing has matched; others go on.
pub unsafe fn cancel(request: *mut usize) -> Result<()> {
    // SAFETY: the program's handle and functions.
    unsafe {
        let handle = *request;
        if matches!(handle, SENT | NO_PROC) {
            return Ok(());
        }
        let mut guard = WORLD.enter();
        let world = &mut *guard;
        match world.requests.get_mut(handle)? {
            Request::Transfer(transfer) => cancel_transfer(transfer, &mut world.endpoint),
            Request::Persistent(persistent) => match &mut persistent.active {
                Some(Request::Transfer(transfer)) => cancel_transfer(transfer, &mut world.endpoint),
                Some(_) => {}
                None => return Err(Error::new(Class::Request, format!("request ({handle:#x}) is not active"))),
            },
            Request::Collective(_) => {
                let detail = format!("request ({handle:#x}) is a collective operation, which cannot be cancelled");
                return Err(Error::new(Class::Request, detail));
            }
            Request::Partitioned(_) => {
                let detail = format!("request ({handle:#x}) is a partitioned operation, which cannot be cancelled");
                return Err(Error::new(Class::Request, detail));
            }
            Request::Generalized(generalized) => {
                let (functions, complete) = (generalized.functions, generalized.complete);
                drop(guard);
                return functions.cancel(complete);
            }
            Request::Done(_) | Request::Pending | Request::Exchange(_) | Request::Flush(_) => {}
        }
        Ok(())
    }
}

fn cancel_transfer(transfer: &Transfer, endpoint: &mut Endpoint) {
    match transfer.direction {
        TransferDirection::In => drop(endpoint.cancel_receive(transfer.id)),
        TransferDirection::Out => endpoint.cancel_send(transfer.id),
    }
}

/// `MPI_Start`.
pub unsafe fn start(request: *mut usize) -> Result<()> {
    // SAFETY: the program's handle, and the buffers it gave before.
    unsafe { request::start(&mut WORLD.enter(), *request) }
}

/// `MPI_Startall`: all or, if one cannot be started, none.
pub unsafe fn startall(count: i32, requests: *mut usize) -> Result<()> {
    let count = length(count)?;
    let mut world = WORLD.enter();
    // SAFETY: the program's array of `count` handles, and the buffers it gave before.
    unsafe {
        for index in 0..count {
            check_startable(&world, *requests.add(index))?;
        }
        for index in 0..count {
            request::start(&mut world, *requests.add(index))?;
        }
    }
    Ok(())
}

//! Requests by their handles: asking, ending, giving up.

use super::generalized::Functions;
use super::{CollectiveStage, NO_PROC, OperationEnd, Request, SENT};
use crate::abi::{REQUEST_NULL, Status};
use crate::error::Result;
use crate::world::World;

/// What became of a request that was asked to end.
pub enum TakenRequest {
    Pending,
    /// The null handle, or a persistent request that was not started.
    Inactive,
    /// Complete. The handle is gone unless it is `kept` (persistent requests).
    Ended {
        end: OperationEnd,
        kept: bool,
    },
    /// A generalized request is complete and gone; [`Functions::end`] is to be called with the monitor left.
    Outside(Functions),
}

/// Ends the request if it is complete.
///
/// # Errors
/// A handle that names no request.
#[inline]
pub fn take(world: &mut World, handle: usize) -> Result<TakenRequest> {
    match handle {
        REQUEST_NULL => Ok(TakenRequest::Inactive),
        SENT => Ok(TakenRequest::Ended { end: OperationEnd::EMPTY, kept: false }),
        NO_PROC => Ok(TakenRequest::Ended { end: OperationEnd::NO_PROC, kept: false }),
        _ => take_entry(world, handle),
    }
}

/// Ends the request if it is the plainest kind, a send that left at once or a complete receive of one run of memory,
/// and nothing is to be told but its status. The common case of [`take`], which serves all others.
#[inline]
pub fn take_plain(world: &mut World, handle: usize) -> Option<Status> {
    if handle == SENT {
        return Some(Status::EMPTY);
    }
    let Request::Transfer(transfer) = world.requests.find(handle)? else { return None };
    if !transfer.is_forgettable() || !world.endpoint.is_complete_and_good(transfer.id) {
        return None;
    }
    let outcome = world.endpoint.take_outcome(transfer.id)?;
    world.requests.discard(handle);
    Some(Status::new(outcome.source as i32, outcome.tag, outcome.length))
}

fn take_entry(world: &mut World, handle: usize) -> Result<TakenRequest> {
    let (requests, mut ground) = world.split();
    let request = requests.get_mut(handle)?;
    if request.is_inactive() {
        return Ok(TakenRequest::Inactive);
    }
    if let Request::Generalized(generalized) = request {
        if !generalized.complete {
            return Ok(TakenRequest::Pending);
        }
        let functions = generalized.functions;
        requests.remove(handle)?;
        return Ok(TakenRequest::Outside(functions));
    }
    let Some(end) = request.end(&mut ground) else {
        return Ok(if stalls(world, handle) { stalled(world, handle) } else { TakenRequest::Pending });
    };
    let kept = request.is_persistent();
    if !kept {
        requests.remove(handle)?;
    }
    Ok(TakenRequest::Ended { end, kept })
}

/// Whether the request is complete, null or inactive.
pub fn is_complete(world: &mut World, handle: usize) -> Result<bool> {
    if matches!(handle, REQUEST_NULL | SENT | NO_PROC) {
        return Ok(true);
    }
    let (requests, ground) = world.split();
    Ok(requests.get(handle)?.is_complete(&ground) || stalls(world, handle))
}

/// Whether the request has ended for want of a process that is lost, or stalls for it. The outcome is kept in it.
pub fn has_lost(world: &mut World, handle: usize) -> bool {
    if stalls(world, handle) {
        return true;
    }
    let (requests, mut ground) = world.split();
    let Some(request) = requests.find_mut(handle) else { return false };
    let operation = match request {
        Request::Persistent(persistent) => match &mut persistent.active {
            Some(active) => active,
            None => return false,
        },
        Request::Generalized(_) | Request::Partitioned(_) => return false,
        // The handle of one that starts again has to stay.
        Request::Collective(collective) if collective.stage != CollectiveStage::Once => return false,
        request => request,
    };
    if !matches!(operation, Request::Done(_)) {
        let Some(end) = operation.end(&mut ground) else { return false };
        *operation = Request::Done(end);
    }
    matches!(operation, Request::Done(OperationEnd { error: Some(error), .. }) if error.class.is_loss())
}

/// Whether the request is a receive from anybody that cannot go on before the program has acknowledged a loss.
#[inline]
pub fn stalls(world: &mut World, handle: usize) -> bool {
    let World { requests, failures, endpoint, .. } = world;
    let transfer = match requests.find(handle) {
        Some(Request::Persistent(persistent)) => persistent.active.as_ref(),
        request => request,
    };
    match transfer {
        Some(Request::Transfer(transfer)) => transfer.stalls(failures, endpoint),
        Some(Request::Exchange(exchange)) => exchange.stalls(failures, endpoint),
        _ => false,
    }
}

/// What is answered for such a request, which stays.
#[cold]
pub fn stalled(world: &World, handle: usize) -> TakenRequest {
    let comm = match world.requests.find(handle) {
        Some(Request::Transfer(transfer)) => transfer.comm as usize,
        Some(Request::Exchange(exchange)) => exchange.comm(),
        _ => 0,
    };
    let error = super::unacknowledged(crate::error::Class::ProcFailedPending);
    let error = if comm == 0 { error } else { error.on(comm) };
    TakenRequest::Ended { end: OperationEnd { error: Some(Box::new(error)), ..OperationEnd::EMPTY }, kept: true }
}

/// Whether waiting for the request is waiting for something: neither null nor inactive.
pub fn is_active(world: &World, handle: usize) -> Result<bool> {
    match handle {
        REQUEST_NULL => Ok(false),
        SENT | NO_PROC => Ok(true),
        _ => Ok(!world.requests.get(handle)?.is_inactive()),
    }
}

/// What [`take`] would answer, leaving the request as it is: the outcome is kept in it. `Outside` asks for
/// [`Functions::query`].
pub fn peek(world: &mut World, handle: usize) -> Result<TakenRequest> {
    if matches!(handle, REQUEST_NULL | SENT | NO_PROC) {
        return take(world, handle);
    }
    let (requests, mut ground) = world.split();
    let request = requests.get_mut(handle)?;
    if request.is_inactive() {
        return Ok(TakenRequest::Inactive);
    }
    let operation = match request {
        Request::Persistent(persistent) => match &mut persistent.active {
            Some(active) => active,
            None => return Ok(TakenRequest::Inactive),
        },
        Request::Generalized(generalized) if generalized.complete => {
            return Ok(TakenRequest::Outside(generalized.functions));
        }
        // Their outcome stays where it is.
        Request::Collective(_) if request.is_complete(&ground) => {
            return Ok(TakenRequest::Ended { end: OperationEnd::EMPTY, kept: true });
        }
        Request::Collective(_) => return Ok(TakenRequest::Pending),
        Request::Partitioned(partitioned) => {
            let status = ground.partitioned.status(partitioned.id);
            return Ok(status.map_or(TakenRequest::Pending, |status| TakenRequest::Ended {
                end: OperationEnd::good(status),
                kept: true,
            }));
        }
        request => request,
    };
    let Some(end) = operation.end(&mut ground) else { return Ok(TakenRequest::Pending) };
    let status = end.status;
    *operation = Request::Done(end);
    Ok(TakenRequest::Ended { end: OperationEnd::good(status), kept: true })
}

/// Gives a request up (`MPI_Request_free`): what is under way completes on its own.
/// Answers the functions of a generalized request whose `free` is to be called with the monitor left.
///
/// # Errors
/// The null handle, or one that names no request.
pub fn release(world: &mut World, handle: usize) -> Result<Option<Functions>> {
    if matches!(handle, SENT | NO_PROC) {
        return Ok(None);
    }
    let (requests, mut ground) = world.split();
    match requests.get_mut(handle)? {
        Request::Generalized(generalized) if !generalized.complete => {
            generalized.freed = true;
            return Ok(None);
        }
        Request::Partitioned(partitioned) => ground.partitioned.check_release(partitioned.id)?,
        _ => {}
    }
    match requests.remove(handle)? {
        Request::Generalized(generalized) => Ok(Some(generalized.functions)),
        request => {
            request.abandon(&mut ground);
            Ok(None)
        }
    }
}

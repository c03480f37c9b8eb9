//! Bodies of the blocking and nonblocking receives (MPI 5.0, sections 3.2 and 3.7).

use super::{SMALL, wait_for};
use crate::abi::{Described, Status};
use crate::error::Result;
use crate::point::buffer::{self, Buffer, MemoryRun, Packed, Scattered};
use crate::point::route::{ReceiveSource, selection};
use crate::point::transfer::{start_receive, take_in};
use crate::request::{self, NO_PROC, OperationEnd, Request, Transfer, TransferDirection};
use crate::world::{WORLD, World};
use std::mem::MaybeUninit;
use weft_fabric::{MonitorGuard, Outcome, Selector};

/// `MPI_Recv`.
#[inline]
pub unsafe fn recv(what: Described, source: i32, tag: i32, comm: usize, status: *mut Status) -> Result<()> {
    let mut guard = WORLD.enter();
    let world = &mut *guard;
    let from = selection(&world.comms, comm, source, tag)?;
    let run = if from.is_some() { buffer::run(&world.types, what, "datatype")? } else { None };
    // SAFETY: the program's buffer and status, for the time of the call.
    unsafe {
        let (Some(from), Some(run)) = (from, run) else {
            drop(guard);
            return receive_otherwise("MPI_Recv", from.map(ReceiveSource::Matching), what, comm, status);
        };
        receive_into("MPI_Recv", guard, from, run, comm, status)
    }
}

/// Receives into a run of bytes.
///
/// # Safety
/// The run is writable for the time of the call, and `status` is null or points to a status.
#[inline]
pub(super) unsafe fn receive_into(
    call: &'static str,
    mut world: MonitorGuard<'_, World>,
    from: Selector,
    run: MemoryRun,
    comm: usize,
    status: *mut Status,
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        let id = world.endpoint.post_receive(from, run.at, run.bytes);
        drop(world);
        let outcome = wait_for(call, id, from);
        if outcome.fault.is_none() {
            Status::new(outcome.source as i32, outcome.tag, outcome.length).store(status);
            return Ok(());
        }
        finish(request::received(&outcome, run.bytes, comm), status)
    }
}

/// Stores the status and answers the error.
///
/// # Safety
/// `status` is null or points to a status.
pub(super) unsafe fn finish(end: OperationEnd, status: *mut Status) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { end.status.store(status) };
    end.error.map_or(Ok(()), |error| Err(*error))
}

/// Receives that are not the plainest ones.
///
/// # Safety
/// The buffer is writable for the time of the call, and `status` is null or points to a status.
pub(super) unsafe fn receive_otherwise(
    call: &'static str,
    source: Option<ReceiveSource>,
    what: Described,
    comm: usize,
    status: *mut Status,
) -> Result<()> {
    let buffer = Buffer::with_partner(&WORLD.enter().types, what, "datatype", source.is_some())?;
    // SAFETY: the caller's promise.
    unsafe {
        let Some(source) = source else { return finish(OperationEnd::NO_PROC, status) };
        let end = match buffer {
            Buffer::Run(run) => request::received(&receive_run(call, source, run), run.bytes, comm),
            Buffer::Scattered(target) => receive_scattered(call, source, &target, comm)?,
        };
        finish(end, status)
    }
}

/// # Safety
/// The run is writable.
unsafe fn receive_run(call: &'static str, source: ReceiveSource, run: MemoryRun) -> Outcome {
    // SAFETY: the caller's promise; the wait lasts until the receive is complete.
    let id = unsafe { take_in(&mut WORLD.enter().endpoint, source, run) };
    wait_for(call, id, source.selector())
}

/// # Safety
/// The target is writable.
unsafe fn receive_scattered(
    call: &'static str,
    source: ReceiveSource,
    target: &Scattered,
    comm: usize,
) -> Result<OperationEnd> {
    let mut small = [MaybeUninit::<u8>::uninit(); SMALL];
    let large;
    let at = if target.bytes <= SMALL {
        small.as_mut_ptr().cast()
    } else {
        large = Packed::new(target.bytes)?;
        large.at()
    };
    // SAFETY: the memory lives until the receive is complete, and holds then what arrived.
    unsafe {
        let outcome = receive_run(call, source, MemoryRun { at, bytes: target.bytes });
        let end = request::received_scattered(&outcome, target, comm);
        target.unpack_from(at, end.status.bytes() as usize);
        Ok(end)
    }
}

/// `MPI_Irecv`.
#[inline]
pub unsafe fn irecv(what: Described, source: i32, tag: i32, comm: usize) -> Result<usize> {
    let mut guard = WORLD.enter();
    let world = &mut *guard;
    let from = selection(&world.comms, comm, source, tag)?;
    let run = if from.is_some() { buffer::run(&world.types, what, "datatype")? } else { None };
    // SAFETY: the program keeps the buffer until the request is complete.
    unsafe {
        if let (Some(with), Some(run)) = (from, run) {
            let id = world.endpoint.post_receive(with, run.at, run.bytes);
            let (comm, capacity) = (comm as u32, run.bytes);
            let transfer = Transfer { id, direction: TransferDirection::In, comm, capacity, with, held: None };
            return Ok(world.requests.insert(Request::Transfer(transfer)));
        }
        drop(guard);
        begin_receive(from.map(ReceiveSource::Matching), what, comm)
    }
}

/// Starts a receive and answers its handle.
///
/// # Safety
/// The buffer is writable until the request is complete.
pub(super) unsafe fn begin_receive(source: Option<ReceiveSource>, what: Described, comm: usize) -> Result<usize> {
    let mut guard = WORLD.enter();
    let world = &mut *guard;
    let buffer = Buffer::with_partner(&world.types, what, "datatype", source.is_some())?;
    let Some(source) = source else { return Ok(NO_PROC) };
    let (requests, mut ground) = world.split();
    // SAFETY: the caller's promise.
    let request = unsafe { start_receive(&mut ground, source, buffer, comm)? };
    Ok(requests.insert(request))
}

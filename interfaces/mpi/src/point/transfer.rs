//! Starting sends and receives that outlive the call.

use super::{Buffer, MemoryRun, MessageRoute, Packed, ReceiveSource};
use crate::error::Result;
use crate::request::{Ground, HeldCopy, OperationEnd, Request, Transfer, TransferDirection};
use weft_fabric::{Endpoint, RequestId, SendMode};

/// How a send is done. Ready sends are standard sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointMode {
    Standard,
    Synchronous,
    Buffered,
}

/// Starts a send; the request is `Done` if the buffer is the program's again.
///
/// # Safety
/// The buffer is readable and stays unchanged until the request is complete.
///
/// # Errors
/// No memory for a packed copy; no room in the attached buffer.
pub unsafe fn start_send(
    ground: &mut Ground,
    route: MessageRoute,
    mode: PointMode,
    buffer: &Buffer,
    comm: usize,
) -> Result<Request> {
    // SAFETY: the caller's promise.
    unsafe {
        if mode == PointMode::Buffered {
            ground.point.send_buffered(ground.endpoint, route, buffer, comm)?;
            return Ok(Request::Done(OperationEnd::EMPTY));
        }
        match buffer {
            Buffer::Run(run) => Ok(start_run(ground.endpoint, route, mode, *run, None, comm)),
            Buffer::Scattered(scattered) => Ok(start_packed(ground.endpoint, route, mode, scattered.pack()?, comm)),
        }
    }
}

/// Starts to send a packed copy, which the request keeps.
pub fn start_packed(
    endpoint: &mut Endpoint,
    route: MessageRoute,
    mode: PointMode,
    packed: Packed,
    comm: usize,
) -> Request {
    let run = MemoryRun { at: packed.at(), bytes: packed.bytes };
    // SAFETY: the packed copy lives in the request, or is not needed any more.
    unsafe { start_run(endpoint, route, mode, run, Some(packed), comm) }
}

/// # Safety
/// As [`start_send`].
unsafe fn start_run(
    endpoint: &mut Endpoint,
    route: MessageRoute,
    mode: PointMode,
    run: MemoryRun,
    packed: Option<Packed>,
    comm: usize,
) -> Request {
    // SAFETY: the caller's promise.
    unsafe {
        if mode == PointMode::Standard && endpoint.try_send(route.to, route.envelope, run.at, run.bytes) {
            return Request::Done(OperationEnd::EMPTY);
        }
        let id = post(endpoint, route, mode, run);
        let held = packed.map(|packed| Box::new(HeldCopy { packed, target: None }));
        Request::Transfer(Transfer {
            id,
            direction: TransferDirection::Out,
            comm: comm as u32,
            capacity: 0,
            with: route.selector(),
            held,
        })
    }
}

/// Starts the send of one run.
///
/// # Safety
/// As [`start_send`].
pub unsafe fn post(endpoint: &mut Endpoint, route: MessageRoute, mode: PointMode, run: MemoryRun) -> RequestId {
    let mode = if mode == PointMode::Synchronous { SendMode::Synchronous } else { SendMode::Standard };
    // SAFETY: the caller's promise.
    unsafe { endpoint.post_send(route.to, route.envelope, run.at, run.bytes, mode) }
}

/// Starts a receive.
///
/// # Safety
/// The buffer is writable and nobody touches it until the request is complete.
///
/// # Errors
/// No memory for a packed copy.
pub unsafe fn start_receive(
    ground: &mut Ground,
    source: ReceiveSource,
    buffer: Buffer,
    comm: usize,
) -> Result<Request> {
    let (run, held) = match buffer {
        Buffer::Run(run) => (run, None),
        Buffer::Scattered(target) => {
            let packed = Packed::new(target.bytes)?;
            let run = MemoryRun { at: packed.at(), bytes: packed.bytes };
            (run, Some(Box::new(HeldCopy { packed, target: Some(target) })))
        }
    };
    // SAFETY: the caller's promise; the packed copy lives in the request.
    let id = unsafe { take_in(ground.endpoint, source, run) };
    Ok(Request::Transfer(Transfer {
        id,
        direction: TransferDirection::In,
        comm: comm as u32,
        capacity: run.bytes,
        with: source.selector(),
        held,
    }))
}

/// Starts the receive of one run.
///
/// # Safety
/// As [`start_receive`].
#[inline]
pub unsafe fn take_in(endpoint: &mut Endpoint, source: ReceiveSource, run: MemoryRun) -> RequestId {
    // SAFETY: the caller's promise.
    unsafe {
        match source {
            ReceiveSource::Matching(from) => endpoint.post_receive(from, run.at, run.bytes),
            ReceiveSource::Matched(message, _) => endpoint.post_matched_receive(message, run.at, run.bytes),
        }
    }
}

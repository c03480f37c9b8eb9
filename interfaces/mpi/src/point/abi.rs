//! Bodies of the blocking and nonblocking sends and receives (MPI 5.0, sections 3.2, 3.4 and 3.7).

use super::buffer::{self, Buffer, Packed, Run, Scattered};
use super::route::{Route, Source, destination, selection, waiting};
use super::transfer::{Mode, post, start_receive, start_send, take_in};
use crate::abi::Status;
use crate::error::Result;
use crate::request::{self, Direction, End, NO_PROC, Request, SENT, Transfer};
use crate::world::WORLD;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use weft_fabric::{Outcome, RequestId, Selector};

pub(crate) use super::buffered::abi::*;
pub(crate) use super::exchange::*;
pub(crate) use super::persistent::*;
pub(crate) use super::probe::abi::*;

/// Scattered buffers of blocking calls up to this size are packed on the stack.
const SMALL: usize = 2048;

/// `MPI_Send`.
#[inline]
pub(crate) unsafe fn send(
    buf: *const c_void,
    count: i64,
    datatype: usize,
    dest: i32,
    tag: i32,
    comm: usize,
) -> Result<()> {
    let mut guard = WORLD.enter();
    let world = &mut *guard;
    let route = destination(&world.comms, comm, dest, tag)?;
    let run = buffer::run(&world.types, buf, count, ("datatype", datatype))?;
    let (Some(route), Some(run)) = (route, run) else {
        drop(guard);
        // SAFETY: the program's buffer, for the time of the call.
        return unsafe { send_otherwise("MPI_Send", Mode::Standard, (buf, count, datatype), route, comm) };
    };
    // SAFETY: as above.
    if unsafe { world.endpoint.try_send(route.to, route.envelope, run.at, run.bytes) } {
        return Ok(());
    }
    drop(guard);
    // SAFETY: as above.
    unsafe { send_run("MPI_Send", Mode::Standard, route, run, comm) }
}

/// `MPI_Rsend`: that the receive is posted makes nothing easier.
pub(crate) unsafe fn rsend(
    buf: *const c_void,
    count: i64,
    datatype: usize,
    dest: i32,
    tag: i32,
    comm: usize,
) -> Result<()> {
    // SAFETY: the program's buffer, for the time of the call.
    unsafe { send_mode("MPI_Rsend", Mode::Standard, (buf, count, datatype), dest, tag, comm) }
}

/// `MPI_Ssend`.
pub(crate) unsafe fn ssend(
    buf: *const c_void,
    count: i64,
    datatype: usize,
    dest: i32,
    tag: i32,
    comm: usize,
) -> Result<()> {
    // SAFETY: as for `rsend`.
    unsafe { send_mode("MPI_Ssend", Mode::Synchronous, (buf, count, datatype), dest, tag, comm) }
}

/// `MPI_Bsend`.
pub(crate) unsafe fn bsend(
    buf: *const c_void,
    count: i64,
    datatype: usize,
    dest: i32,
    tag: i32,
    comm: usize,
) -> Result<()> {
    // SAFETY: the program's buffer, which is copied before the call ends.
    unsafe { begin_send(Mode::Buffered, (buf, count, datatype), dest, tag, comm) }.map(|_| ())
}

/// A program's description of a buffer: address, count, datatype.
pub(super) type Described = (*const c_void, i64, usize);

/// # Safety
/// The buffer is readable for the time of the call.
unsafe fn send_mode(
    call: &'static str,
    mode: Mode,
    what: Described,
    dest: i32,
    tag: i32,
    comm: usize,
) -> Result<()> {
    let route = destination(&WORLD.enter().comms, comm, dest, tag)?;
    // SAFETY: the caller's promise.
    unsafe { send_otherwise(call, mode, what, route, comm) }
}

/// Sends that are not the plainest ones.
///
/// # Safety
/// As [`send_mode`].
#[cold]
unsafe fn send_otherwise(
    call: &'static str,
    mode: Mode,
    (buf, count, datatype): Described,
    route: Option<Route>,
    comm: usize,
) -> Result<()> {
    let buffer = Buffer::find(&WORLD.enter().types, buf, count, datatype)?;
    let Some(route) = route else { return Ok(()) };
    // SAFETY: the caller's promise; the packed copies live until the send is complete.
    unsafe {
        match buffer {
            Buffer::Run(run) => send_run(call, mode, route, run, comm),
            Buffer::Scattered(scattered) if scattered.bytes <= SMALL => {
                let mut packed = [MaybeUninit::<u8>::uninit(); SMALL];
                let at = packed.as_mut_ptr().cast();
                scattered.pack_to(at);
                send_run(call, mode, route, Run { at, bytes: scattered.bytes }, comm)
            }
            Buffer::Scattered(scattered) => {
                let packed = scattered.pack()?;
                send_run(call, mode, route, Run { at: packed.at(), bytes: packed.bytes }, comm)
            }
        }
    }
}

/// Sends one run and waits until it may be changed.
///
/// # Safety
/// It is readable.
unsafe fn send_run(call: &'static str, mode: Mode, route: Route, run: Run, comm: usize) -> Result<()> {
    let mut guard = WORLD.enter();
    let endpoint = &mut guard.endpoint;
    // SAFETY: the caller's promise; the wait below lasts until the send is complete.
    let id = unsafe {
        if mode == Mode::Standard && endpoint.try_send(route.to, route.envelope, run.at, run.bytes) {
            return Ok(());
        }
        post(endpoint, route, mode, run)
    };
    drop(guard);
    let outcome = wait_for(call, id, route.selector());
    match request::fault(&outcome, 0, comm) {
        None => Ok(()),
        Some(error) => Err(*error),
    }
}

#[inline]
pub(super) fn wait_for(call: &'static str, id: RequestId, with: Selector) -> Outcome {
    WORLD.wait(waiting(call, with), |world| world.endpoint.take_outcome(id))
}

/// `MPI_Recv`.
#[inline]
pub(crate) unsafe fn recv(
    buf: *mut c_void,
    count: i64,
    datatype: usize,
    source: i32,
    tag: i32,
    comm: usize,
    status: *mut Status,
) -> Result<()> {
    let mut guard = WORLD.enter();
    let world = &mut *guard;
    let from = selection(&world.comms, comm, source, tag)?;
    let run = buffer::run(&world.types, buf, count, ("datatype", datatype))?;
    // SAFETY: the program's buffer and status, for the time of the call.
    unsafe {
        let (Some(from), Some(run)) = (from, run) else {
            drop(guard);
            return receive_otherwise("MPI_Recv", from.map(Source::Matching), (buf, count, datatype), comm, status);
        };
        let id = world.endpoint.post_receive(from, run.at, run.bytes);
        drop(guard);
        let outcome = wait_for("MPI_Recv", id, from);
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
pub(super) unsafe fn finish(end: End, status: *mut Status) -> Result<()> {
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
    source: Option<Source>,
    (buf, count, datatype): Described,
    comm: usize,
    status: *mut Status,
) -> Result<()> {
    let buffer = Buffer::find(&WORLD.enter().types, buf, count, datatype)?;
    // SAFETY: the caller's promise.
    unsafe {
        let Some(source) = source else { return finish(End::NO_PROC, status) };
        let end = match buffer {
            Buffer::Run(run) => request::received(&receive_run(call, source, run), run.bytes, comm),
            Buffer::Scattered(target) => receive_scattered(call, source, &target, comm)?,
        };
        finish(end, status)
    }
}

/// # Safety
/// The run is writable.
unsafe fn receive_run(call: &'static str, source: Source, run: Run) -> Outcome {
    // SAFETY: the caller's promise; the wait lasts until the receive is complete.
    let id = unsafe { take_in(&mut WORLD.enter().endpoint, source, run) };
    wait_for(call, id, source.selector())
}

/// # Safety
/// The target is writable.
unsafe fn receive_scattered(call: &'static str, source: Source, target: &Scattered, comm: usize) -> Result<End> {
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
        let outcome = receive_run(call, source, Run { at, bytes: target.bytes });
        let end = request::received(&outcome, target.bytes, comm);
        target.unpack_from(at, end.status.bytes() as usize);
        Ok(end)
    }
}

/// `MPI_Isend`.
#[inline]
pub(crate) unsafe fn isend(
    buf: *const c_void,
    count: i64,
    datatype: usize,
    dest: i32,
    tag: i32,
    comm: usize,
    request: *mut usize,
) -> Result<()> {
    let mut guard = WORLD.enter();
    let world = &mut *guard;
    let route = destination(&world.comms, comm, dest, tag)?;
    let run = buffer::run(&world.types, buf, count, ("datatype", datatype))?;
    // SAFETY: the program keeps the buffer until the request is complete; `request` is its own.
    unsafe {
        if let (Some(route), Some(run)) = (route, run) {
            if world.endpoint.try_send(route.to, route.envelope, run.at, run.bytes) {
                *request = SENT;
                return Ok(());
            }
            let id = post(&mut world.endpoint, route, Mode::Standard, run);
            let (comm, with) = (comm as u32, route.selector());
            let transfer = Transfer { id, direction: Direction::Out, comm, capacity: 0, with, held: None };
            *request = world.requests.insert(Request::Transfer(transfer));
            return Ok(());
        }
        drop(guard);
        *request = begin_send(Mode::Standard, (buf, count, datatype), dest, tag, comm)?;
    }
    Ok(())
}

/// `MPI_Irsend`.
pub(crate) unsafe fn irsend(
    buf: *const c_void,
    count: i64,
    datatype: usize,
    dest: i32,
    tag: i32,
    comm: usize,
    request: *mut usize,
) -> Result<()> {
    // SAFETY: the program keeps the buffer until the request is complete; `request` is its own.
    unsafe { *request = begin_send(Mode::Standard, (buf, count, datatype), dest, tag, comm)? };
    Ok(())
}

/// `MPI_Issend`.
pub(crate) unsafe fn issend(
    buf: *const c_void,
    count: i64,
    datatype: usize,
    dest: i32,
    tag: i32,
    comm: usize,
    request: *mut usize,
) -> Result<()> {
    // SAFETY: as for `irsend`.
    unsafe { *request = begin_send(Mode::Synchronous, (buf, count, datatype), dest, tag, comm)? };
    Ok(())
}

/// `MPI_Ibsend`: complete at once, since the message is copied.
pub(crate) unsafe fn ibsend(
    buf: *const c_void,
    count: i64,
    datatype: usize,
    dest: i32,
    tag: i32,
    comm: usize,
    request: *mut usize,
) -> Result<()> {
    // SAFETY: as for `irsend`.
    unsafe { *request = begin_send(Mode::Buffered, (buf, count, datatype), dest, tag, comm)? };
    Ok(())
}

/// Starts a send and answers its handle.
///
/// # Safety
/// The buffer is readable until the request is complete.
unsafe fn begin_send(
    mode: Mode,
    (buf, count, datatype): Described,
    dest: i32,
    tag: i32,
    comm: usize,
) -> Result<usize> {
    let mut guard = WORLD.enter();
    let world = &mut *guard;
    let route = destination(&world.comms, comm, dest, tag)?;
    let buffer = Buffer::find(&world.types, buf, count, datatype)?;
    let Some(route) = route else { return Ok(SENT) };
    let (requests, mut ground) = world.split();
    // SAFETY: the caller's promise.
    match unsafe { start_send(&mut ground, route, mode, &buffer, comm)? } {
        Request::Done(_) => Ok(SENT),
        request => Ok(requests.insert(request)),
    }
}

/// `MPI_Irecv`.
#[inline]
pub(crate) unsafe fn irecv(
    buf: *mut c_void,
    count: i64,
    datatype: usize,
    source: i32,
    tag: i32,
    comm: usize,
    request: *mut usize,
) -> Result<()> {
    let mut guard = WORLD.enter();
    let world = &mut *guard;
    let from = selection(&world.comms, comm, source, tag)?;
    let run = buffer::run(&world.types, buf, count, ("datatype", datatype))?;
    // SAFETY: the program keeps the buffer until the request is complete; `request` is its own.
    unsafe {
        if let (Some(with), Some(run)) = (from, run) {
            let id = world.endpoint.post_receive(with, run.at, run.bytes);
            let (comm, capacity) = (comm as u32, run.bytes);
            let transfer = Transfer { id, direction: Direction::In, comm, capacity, with, held: None };
            *request = world.requests.insert(Request::Transfer(transfer));
            return Ok(());
        }
        drop(guard);
        *request = begin_receive(from.map(Source::Matching), (buf, count, datatype), comm)?;
    }
    Ok(())
}

/// Starts a receive and answers its handle.
///
/// # Safety
/// The buffer is writable until the request is complete.
pub(super) unsafe fn begin_receive(
    source: Option<Source>,
    (buf, count, datatype): Described,
    comm: usize,
) -> Result<usize> {
    let mut guard = WORLD.enter();
    let world = &mut *guard;
    let buffer = Buffer::find(&world.types, buf, count, datatype)?;
    let Some(source) = source else { return Ok(NO_PROC) };
    let (requests, mut ground) = world.split();
    // SAFETY: the caller's promise.
    let request = unsafe { start_receive(&mut ground, source, buffer, comm)? };
    Ok(requests.insert(request))
}

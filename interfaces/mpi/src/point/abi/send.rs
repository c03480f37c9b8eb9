//! Bodies of the blocking and nonblocking sends (MPI 5.0, sections 3.2, 3.4 and 3.7).

use super::{SMALL, wait_for};
use crate::abi::Described;
use crate::error::Result;
use crate::point::buffer::{self, Buffer, MemoryRun};
use crate::point::route::{MessageRoute, destination};
use crate::point::transfer::{PointMode, post, start_send};
use crate::request::{self, Request, SENT, Transfer, TransferDirection};
use crate::world::WORLD;
use std::mem::MaybeUninit;

/// `MPI_Send`.
#[inline]
pub unsafe fn send(what: Described, dest: i32, tag: i32, comm: usize) -> Result<()> {
    let mut guard = WORLD.enter();
    let world = &mut *guard;
    let route = destination(&world.comms, comm, dest, tag)?;
    let run = if route.is_some() { buffer::run(&world.types, what, "datatype")? } else { None };
    let (Some(route), Some(run)) = (route, run) else {
        drop(guard);
        // SAFETY: the program's buffer, for the time of the call.
        return unsafe { send_otherwise("MPI_Send", PointMode::Standard, what, route, comm) };
    };
    // SAFETY: as above.
    if unsafe { world.endpoint.try_send(route.to, route.envelope, run.at, run.bytes) } {
        return Ok(());
    }
    drop(guard);
    // SAFETY: as above.
    unsafe { send_run("MPI_Send", PointMode::Standard, route, run, comm) }
}

/// The modes that have no way of their own: bodies that differ in name and mode.
macro_rules! blocking {
    ($($(#[$about:meta])* $name:ident, $call:literal: $mode:ident;)*) => {$(
        $(#[$about])*
        pub unsafe fn $name(what: Described, dest: i32, tag: i32, comm: usize) -> Result<()> {
            // SAFETY: the program's buffer, for the time of the call.
            unsafe { send_mode($call, PointMode::$mode, what, dest, tag, comm) }
        }
    )*};
}

blocking! {
    /// That the receive is posted makes nothing easier.
    rsend, "MPI_Rsend": Standard;
    ssend, "MPI_Ssend": Synchronous;
}

/// `MPI_Bsend`.
pub unsafe fn bsend(what: Described, dest: i32, tag: i32, comm: usize) -> Result<()> {
    // SAFETY: the program's buffer, which is copied before the call ends.
    unsafe { begin_send(PointMode::Buffered, what, dest, tag, comm) }.map(|_| ())
}

/// # Safety
/// The buffer is readable for the time of the call.
unsafe fn send_mode(
    call: &'static str,
    mode: PointMode,
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
    mode: PointMode,
    what: Described,
    route: Option<MessageRoute>,
    comm: usize,
) -> Result<()> {
    let buffer = Buffer::with_partner(&WORLD.enter().types, what, "datatype", route.is_some())?;
    let Some(route) = route else { return Ok(()) };
    // SAFETY: the caller's promise; the packed copies live until the send is complete.
    unsafe {
        match buffer {
            Buffer::Run(run) => send_run(call, mode, route, run, comm),
            Buffer::Scattered(scattered) if scattered.bytes <= SMALL => {
                let mut packed = [MaybeUninit::<u8>::uninit(); SMALL];
                let at = packed.as_mut_ptr().cast();
                scattered.pack_to(at);
                send_run(call, mode, route, MemoryRun { at, bytes: scattered.bytes }, comm)
            }
            Buffer::Scattered(scattered) => {
                let packed = scattered.pack()?;
                send_run(call, mode, route, MemoryRun { at: packed.at(), bytes: packed.bytes }, comm)
            }
        }
    }
}

/// Sends one run and waits until it may be changed.
///
/// # Safety
/// It is readable.
unsafe fn send_run(
    call: &'static str,
    mode: PointMode,
    route: MessageRoute,
    run: MemoryRun,
    comm: usize,
) -> Result<()> {
    let mut guard = WORLD.enter();
    let endpoint = &mut guard.endpoint;
    // SAFETY: the caller's promise; the wait below lasts until the send is complete.
    let id = unsafe {
        if mode == PointMode::Standard && endpoint.try_send(route.to, route.envelope, run.at, run.bytes) {
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

/// `MPI_Isend`.
#[inline]
pub unsafe fn isend(what: Described, dest: i32, tag: i32, comm: usize) -> Result<usize> {
    let mut guard = WORLD.enter();
    let world = &mut *guard;
    let route = destination(&world.comms, comm, dest, tag)?;
    let run = if route.is_some() { buffer::run(&world.types, what, "datatype")? } else { None };
    // SAFETY: the program keeps the buffer until the request is complete.
    unsafe {
        if let (Some(route), Some(run)) = (route, run) {
            if world.endpoint.try_send_among_others(route.to, route.envelope, run.at, run.bytes) {
                return Ok(SENT);
            }
            let id = post(&mut world.endpoint, route, PointMode::Standard, run);
            let (comm, with) = (comm as u32, route.selector());
            let transfer = Transfer { id, direction: TransferDirection::Out, comm, capacity: 0, with, held: None };
            return Ok(world.requests.insert(Request::Transfer(transfer)));
        }
        drop(guard);
        begin_send(PointMode::Standard, what, dest, tag, comm)
    }
}

/// As `blocking`, for the nonblocking ones.
macro_rules! nonblocking {
    ($($(#[$about:meta])* $name:ident: $mode:ident;)*) => {$(
        $(#[$about])*
        pub unsafe fn $name(what: Described, dest: i32, tag: i32, comm: usize) -> Result<usize> {
            // SAFETY: the program keeps the buffer until the request is complete.
            unsafe { begin_send(PointMode::$mode, what, dest, tag, comm) }
        }
    )*};
}

nonblocking! {
    irsend: Standard;
    issend: Synchronous;
    /// Complete at once, since the message is copied.
    ibsend: Buffered;
}

/// Starts a send and answers its handle.
///
/// # Safety
/// The buffer is readable until the request is complete.
unsafe fn begin_send(mode: PointMode, what: Described, dest: i32, tag: i32, comm: usize) -> Result<usize> {
    let mut guard = WORLD.enter();
    let world = &mut *guard;
    let route = destination(&world.comms, comm, dest, tag)?;
    let buffer = Buffer::with_partner(&world.types, what, "datatype", route.is_some())?;
    let Some(route) = route else { return Ok(SENT) };
    let (requests, mut ground) = world.split();
    // SAFETY: the caller's promise.
    match unsafe { start_send(&mut ground, route, mode, &buffer, comm)? } {
        Request::Done(_) => Ok(SENT),
        request => Ok(requests.insert(request)),
    }
}

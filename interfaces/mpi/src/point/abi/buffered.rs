//! Bodies of the calls that attach, flush and detach buffers.

use crate::abi::CountOut;
use crate::error::Result;
use crate::point::Owner;
use crate::request::Request;
use crate::world::{WORLD, World};
use std::ffi::c_void;
use weft_fabric::Waiting;

/// `MPI_Buffer_attach`.
pub unsafe fn buffer_attach(buffer: *mut c_void, size: i64) -> Result<()> {
    WORLD.enter().point.attach(Owner::Process, buffer as usize, size)
}

/// `MPI_Buffer_detach`.
pub unsafe fn buffer_detach(buffer_addr: *mut c_void, size: CountOut) -> Result<()> {
    // SAFETY: the program's own places for the answers.
    unsafe { detach("MPI_Buffer_detach", Owner::Process, buffer_addr, size) };
    Ok(())
}

/// `MPI_Buffer_flush`.
pub unsafe fn buffer_flush() -> Result<()> {
    flush("MPI_Buffer_flush", Owner::Process);
    Ok(())
}

/// `MPI_Buffer_iflush`.
pub fn buffer_iflush() -> Result<usize> {
    Ok(iflush(&mut WORLD.enter(), Owner::Process))
}

/// `MPI_Comm_attach_buffer`.
pub unsafe fn comm_attach_buffer(comm: usize, buffer: *mut c_void, size: i64) -> Result<()> {
    let mut world = WORLD.enter();
    world.comm(comm)?;
    world.point.attach(Owner::Comm(comm), buffer as usize, size)
}

/// `MPI_Comm_detach_buffer`.
pub unsafe fn comm_detach_buffer(comm: usize, buffer_addr: *mut c_void, size: CountOut) -> Result<()> {
    WORLD.enter().comm(comm)?;
    // SAFETY: the program's own places for the answers.
    unsafe { detach("MPI_Comm_detach_buffer", Owner::Comm(comm), buffer_addr, size) };
    Ok(())
}

/// `MPI_Comm_flush_buffer`.
pub unsafe fn comm_flush_buffer(comm: usize) -> Result<()> {
    WORLD.enter().comm(comm)?;
    flush("MPI_Comm_flush_buffer", Owner::Comm(comm));
    Ok(())
}

/// `MPI_Comm_iflush_buffer`.
pub fn comm_iflush_buffer(comm: usize) -> Result<usize> {
    let mut world = WORLD.enter();
    world.comm(comm)?;
    Ok(iflush(&mut world, Owner::Comm(comm)))
}

/// `MPI_Session_attach_buffer`.
pub unsafe fn session_attach_buffer(session: usize, buffer: *mut c_void, size: i64) -> Result<()> {
    crate::session::of(session)?;
    WORLD.enter().point.attach(Owner::Session(session), buffer as usize, size)
}

/// `MPI_Session_detach_buffer`.
pub unsafe fn session_detach_buffer(session: usize, buffer_addr: *mut c_void, size: CountOut) -> Result<()> {
    crate::session::of(session)?;
    // SAFETY: the program's own places for the answers.
    unsafe { detach("MPI_Session_detach_buffer", Owner::Session(session), buffer_addr, size) };
    Ok(())
}

/// `MPI_Session_flush_buffer`.
pub unsafe fn session_flush_buffer(session: usize) -> Result<()> {
    crate::session::of(session)?;
    flush("MPI_Session_flush_buffer", Owner::Session(session));
    Ok(())
}

/// `MPI_Session_iflush_buffer`.
pub fn session_iflush_buffer(session: usize) -> Result<usize> {
    crate::session::of(session)?;
    Ok(iflush(&mut WORLD.enter(), Owner::Session(session)))
}

fn waiting(call: &'static str) -> Waiting {
    Waiting { call, peer: None, tag: None, context: 0 }
}

/// # Safety
/// The pointers are null or places for a pointer and a count.
unsafe fn detach(call: &'static str, owner: Owner, address: *mut c_void, size: CountOut) {
    let (at, bytes) = WORLD.wait(waiting(call), |world| {
        let World { point, endpoint, .. } = world;
        point.try_detach(owner, endpoint)
    });
    // SAFETY: the caller's promise.
    unsafe {
        if !address.is_null() {
            *address.cast::<usize>() = at;
        }
        if !size.is_null() {
            size.set(bytes);
        }
    }
}

/// Waits until the messages that are in the buffer now have left.
fn flush(call: &'static str, owner: Owner) {
    let drain = WORLD.enter().point.drain(owner);
    WORLD.wait(waiting(call), |world| world.point.is_drained(&drain, &world.endpoint).then_some(()));
}

/// The request's handle.
fn iflush(world: &mut World, owner: Owner) -> usize {
    let drain = world.point.drain(owner);
    world.requests.insert(Request::Flush(drain))
}

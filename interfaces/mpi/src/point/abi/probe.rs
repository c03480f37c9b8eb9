//! Bodies of the probes and of the receives of matched messages.

use super::{begin_receive, receive_otherwise};
use crate::abi::{ANY_TAG, Described, MESSAGE_NO_PROC, MESSAGE_NULL, PROC_NULL, Status};
use crate::error::Result;
use crate::point::buffer::Buffer;
use crate::point::probe::{in_vain, redeem, seen, selected, take};
use crate::point::route::{ReceiveSource, waiting};
use crate::world::{WORLD, look};

const NO_PROC: Status = Status::new(PROC_NULL, ANY_TAG, 0);

/// `MPI_Probe`.
pub unsafe fn probe(source: i32, tag: i32, comm: usize, status: *mut Status) -> Result<()> {
    let found = match selected(source, tag, comm)? {
        None => NO_PROC,
        Some(from) => seen(&WORLD.wait(waiting("MPI_Probe", from), |world| {
            world.endpoint.probe(from).map(Ok).or_else(|| in_vain(world, from, comm).map(Err))
        })?),
    };
    // SAFETY: the program's status.
    unsafe { found.store(status) };
    Ok(())
}

/// `MPI_Iprobe`.
pub unsafe fn iprobe(source: i32, tag: i32, comm: usize, flag: *mut i32, status: *mut Status) -> Result<()> {
    let found = match selected(source, tag, comm)? {
        None => Some(NO_PROC),
        Some(from) => {
            let found =
                look(|world| world.endpoint.probe(from).map(Ok).or_else(|| in_vain(world, from, comm).map(Err)));
            found.transpose()?.map(|outcome| seen(&outcome))
        }
    };
    // SAFETY: the program's flag and status.
    unsafe {
        *flag = found.is_some() as i32;
        if let Some(found) = found {
            found.store(status);
        }
    }
    Ok(())
}

/// `MPI_Mprobe`.
pub unsafe fn mprobe(source: i32, tag: i32, comm: usize, message: *mut usize, status: *mut Status) -> Result<()> {
    let (handle, found) = match selected(source, tag, comm)? {
        None => (MESSAGE_NO_PROC, NO_PROC),
        Some(from) => WORLD.wait(waiting("MPI_Mprobe", from), |world| {
            take(world, from, comm).map(Ok).or_else(|| in_vain(world, from, comm).map(Err))
        })?,
    };
    // SAFETY: the program's places for handle and status.
    unsafe {
        *message = handle;
        found.store(status);
    }
    Ok(())
}

/// `MPI_Improbe`.
pub unsafe fn improbe(
    source: i32,
    tag: i32,
    comm: usize,
    flag: *mut i32,
    message: *mut usize,
    status: *mut Status,
) -> Result<()> {
    let taken = match selected(source, tag, comm)? {
        None => Some((MESSAGE_NO_PROC, NO_PROC)),
        Some(from) => {
            look(|world| take(world, from, comm).map(Ok).or_else(|| in_vain(world, from, comm).map(Err))).transpose()?
        }
    };
    // SAFETY: the program's places for flag, handle and status.
    unsafe {
        *flag = taken.is_some() as i32;
        if let Some((handle, found)) = taken {
            *message = handle;
            found.store(status);
        }
    }
    Ok(())
}

/// Takes a matched message, and answers where it is received from and its communicator.
///
/// # Safety
/// The program's handle, which is null then.
unsafe fn matched(message: *mut usize) -> Result<(Option<ReceiveSource>, usize)> {
    // SAFETY: the caller's promise.
    let taken = unsafe { redeem(*message)? };
    // SAFETY: as above.
    unsafe { *message = MESSAGE_NULL };
    let comm = taken.as_ref().map_or(0, |taken| taken.comm);
    Ok((taken.map(|taken| taken.source()), comm))
}

/// `MPI_Mrecv`.
pub unsafe fn mrecv(what: Described, message: *mut usize, status: *mut Status) -> Result<()> {
    Buffer::named(&WORLD.enter().types, what, "datatype")?;
    // SAFETY: the program's handle, buffer and status.
    unsafe {
        let (source, comm) = matched(message)?;
        receive_otherwise("MPI_Mrecv", source, what, comm, status)
    }
}

/// `MPI_Imrecv`.
pub unsafe fn imrecv(what: Described, message: *mut usize) -> Result<usize> {
    Buffer::named(&WORLD.enter().types, what, "datatype")?;
    // SAFETY: the program's handle, and its buffer until the request is complete.
    unsafe {
        let (source, comm) = matched(message)?;
        begin_receive(source, what, comm)
    }
}

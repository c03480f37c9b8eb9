//! Bodies of the error handler functions.

use super::{FOR_FILES, Handler, handle_of, handlers, resolve, run};
use crate::abi::{ERRHANDLER_NULL, FILE_NULL};
use crate::error::{Class, Error, Result};
use crate::handle::Kind;
use crate::world::WORLD;
use std::sync::{Arc, PoisonError};

unsafe fn create(function: usize, kind: Kind, out: *mut usize) -> Result<()> {
    if function == 0 {
        return Err(Error::new(Class::Arg, format!("{}_errhandler_fn is a null pointer", kind.noun())));
    }
    let handle = handlers().insert(Arc::new(Handler::User { function, kind }));
    // SAFETY: the program's place for the handle.
    unsafe { *out = handle };
    Ok(())
}

pub(crate) unsafe fn comm_create_errhandler(function: usize, out: *mut usize) -> Result<()> {
    // SAFETY: as the caller says.
    unsafe { create(function, Kind::Comm, out) }
}

pub(crate) unsafe fn win_create_errhandler(function: usize, out: *mut usize) -> Result<()> {
    // SAFETY: as the caller says.
    unsafe { create(function, Kind::Win, out) }
}

pub(crate) unsafe fn file_create_errhandler(function: usize, out: *mut usize) -> Result<()> {
    // SAFETY: as the caller says.
    unsafe { create(function, Kind::File, out) }
}

pub(crate) unsafe fn session_create_errhandler(function: usize, out: *mut usize) -> Result<()> {
    // SAFETY: as the caller says.
    unsafe { create(function, Kind::Session, out) }
}

pub(crate) unsafe fn errhandler_free(errhandler: *mut usize) -> Result<()> {
    // SAFETY: the program's handle.
    let handle = unsafe { *errhandler };
    if Handler::predefined(handle).is_none() {
        handlers().remove(handle)?;
    }
    // SAFETY: as above.
    unsafe { *errhandler = ERRHANDLER_NULL };
    Ok(())
}

pub(crate) unsafe fn comm_set_errhandler(comm: usize, errhandler: usize) -> Result<()> {
    let world = WORLD.enter();
    let comm = world.comm(comm)?;
    comm.state().errhandler = resolve(errhandler, Kind::Comm)?;
    Ok(())
}

pub(crate) unsafe fn comm_get_errhandler(comm: usize, out: *mut usize) -> Result<()> {
    let handler = WORLD.enter().comm(comm)?.state().errhandler.clone();
    // SAFETY: the program's place for the handle.
    unsafe { *out = handle_of(&handler) };
    Ok(())
}

pub(crate) unsafe fn comm_call_errhandler(comm: usize, code: i32) -> Result<()> {
    let (handler, handle) = {
        let world = WORLD.enter();
        let comm = world.comm(comm)?;
        (comm.state().errhandler.clone(), comm.handle)
    };
    run(&handler, handle, code, &called("MPI_Comm_call_errhandler", code));
    Ok(())
}

pub unsafe fn session_set_errhandler(session: usize, errhandler: usize) -> Result<()> {
    let session = crate::session::of(session)?;
    session.set_errhandler(resolve(errhandler, Kind::Session)?);
    Ok(())
}

pub unsafe fn session_get_errhandler(session: usize, out: *mut usize) -> Result<()> {
    let handler = crate::session::of(session)?.errhandler();
    // SAFETY: the program's place for the handle.
    unsafe { *out = handle_of(&handler) };
    Ok(())
}

pub unsafe fn session_call_errhandler(session: usize, code: i32) -> Result<()> {
    let handler = crate::session::of(session)?.errhandler();
    run(&handler, session, code, &called("MPI_Session_call_errhandler", code));
    Ok(())
}

/// The line for an error that the program reports itself.
fn called(call: &str, code: i32) -> String {
    format!("{call}: the program reports {} ({})", crate::error::text(code), crate::error::name(code))
}

fn no_file(file: usize) -> Result<()> {
    if file == FILE_NULL { Ok(()) } else { Err(Kind::File.unknown("file", file)) }
}

pub(crate) unsafe fn file_set_errhandler(file: usize, errhandler: usize) -> Result<()> {
    no_file(file)?;
    let handler = resolve(errhandler, Kind::File)?;
    *FOR_FILES.lock().unwrap_or_else(PoisonError::into_inner) = Some(handler);
    Ok(())
}

pub(crate) unsafe fn file_get_errhandler(file: usize, out: *mut usize) -> Result<()> {
    no_file(file)?;
    // SAFETY: the program's place for the handle.
    unsafe { *out = handle_of(&super::for_files()) };
    Ok(())
}

pub(crate) unsafe fn file_call_errhandler(file: usize, code: i32) -> Result<()> {
    no_file(file)?;
    run(&super::for_files(), file, code, &called("MPI_File_call_errhandler", code));
    Ok(())
}

//! Bodies of the error handler functions.

use super::{FOR_FILES, Handler, handle_of, handlers, resolve, run};
use crate::abi::{ERRHANDLER_NULL, FILE_NULL, gives};
use crate::error::{Class, Error, Result};
use crate::file::OpenFile;
use crate::handle::HandleKind;
use crate::world::WORLD;
use std::sync::{Arc, PoisonError};

fn create(function: usize, kind: HandleKind) -> Result<usize> {
    if function == 0 {
        return Err(Error::new(Class::Arg, format!("{}_errhandler_fn is a null pointer", kind.noun())));
    }
    Ok(handle_of(&Arc::new(Handler::User { function, kind })))
}

macro_rules! creates {
    ($($name:ident: $kind:ident;)*) => {$(
        pub fn $name(function: usize) -> Result<usize> {
            create(function, HandleKind::$kind)
        }
    )*};
}

creates! {
    comm_create_errhandler: Comm;
    win_create_errhandler: Win;
    file_create_errhandler: File;
    session_create_errhandler: Session;
}

pub unsafe fn errhandler_free(errhandler: *mut usize) -> Result<()> {
    // SAFETY: the program's handle.
    let handle = unsafe { *errhandler };
    if Handler::predefined(handle).is_none() {
        let mut handlers = handlers();
        let named = handlers.get_mut(handle)?;
        named.given -= 1;
        if named.given == 0 {
            handlers.remove(handle)?;
        }
    }
    // SAFETY: as above.
    unsafe { *errhandler = ERRHANDLER_NULL };
    Ok(())
}

pub unsafe fn comm_set_errhandler(comm: usize, errhandler: usize) -> Result<()> {
    let mut world = WORLD.enter();
    let handler = resolve(errhandler, HandleKind::Comm)?;
    // Programs set the handler of a duplicate that is not finished.
    if let Some(draft) = crate::comm::idup::draft(&mut world, comm) {
        draft.errhandler = handler;
        return Ok(());
    }
    world.comm(comm)?.state().errhandler = handler;
    Ok(())
}

gives! {
    comm_get_errhandler(comm) -> usize = {
        let handler = WORLD.enter().comm(comm)?.state().errhandler.clone();
        handle_of(&handler)
    };
    session_get_errhandler(session) -> usize = {
        let handler = crate::session::of(session)?.errhandler();
        handle_of(&handler)
    };
    win_get_errhandler(win) -> usize = {
        let handler = WORLD.enter().windows.table.get(win)?.errhandler.clone();
        handle_of(&handler)
    };
    file_get_errhandler(file) -> usize = {
        let handler = file_of(file)?.map_or_else(super::for_files, |file| file.errhandler());
        handle_of(&handler)
    };
}

pub unsafe fn comm_call_errhandler(comm: usize, code: i32) -> Result<()> {
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
    session.set_errhandler(resolve(errhandler, HandleKind::Session)?);
    Ok(())
}

pub unsafe fn session_call_errhandler(session: usize, code: i32) -> Result<()> {
    let handler = crate::session::of(session)?.errhandler();
    run(&handler, session, code, &called("MPI_Session_call_errhandler", code));
    Ok(())
}

pub unsafe fn win_set_errhandler(win: usize, errhandler: usize) -> Result<()> {
    let handler = resolve(errhandler, HandleKind::Win);
    WORLD.enter().windows.table.get_mut(win)?.errhandler = handler?;
    Ok(())
}

pub unsafe fn win_call_errhandler(win: usize, code: i32) -> Result<()> {
    let handler = WORLD.enter().windows.table.get(win)?.errhandler.clone();
    run(&handler, win, code, &called("MPI_Win_call_errhandler", code));
    Ok(())
}

/// The line for an error that the program reports itself.
fn called(call: &str, code: i32) -> String {
    format!("{call}: the program reports {} ({})", crate::error::text(code), crate::error::name(code))
}

/// The open file with this handle; none for the null handle, which has a handler, too.
fn file_of(file: usize) -> Result<Option<Arc<OpenFile>>> {
    if file == FILE_NULL { Ok(None) } else { crate::file::of(file).map(Some) }
}

pub unsafe fn file_set_errhandler(file: usize, errhandler: usize) -> Result<()> {
    let file = file_of(file)?;
    let handler = resolve(errhandler, HandleKind::File)?;
    match file {
        Some(file) => file.set_errhandler(handler),
        None => *FOR_FILES.lock().unwrap_or_else(PoisonError::into_inner) = Some(handler),
    }
    Ok(())
}

pub unsafe fn file_call_errhandler(file: usize, code: i32) -> Result<()> {
    let handler = file_of(file)?.map_or_else(super::for_files, |file| file.errhandler());
    run(&handler, file, code, &called("MPI_File_call_errhandler", code));
    Ok(())
}

//! Error handlers (MPI 5.0, section 9.3).

pub mod abi;
pub mod handler;

pub use handler::Handler;

use crate::abi::{COMM_SELF, COMM_WORLD, ERRORS_ABORT, ERRORS_ARE_FATAL, ERRORS_RETURN};
use crate::comm::Comm;
use crate::error::{Class, Error, Result, recent};
use crate::handle::{HandleKind, HandleTable};
use crate::world::{WORLD, World};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A handler with a handle, which the program has to free as often as it got it.
struct NamedHandler {
    handler: Arc<Handler>,
    given: usize,
}

/// The handlers that the program made; usable before `MPI_Init`.
static HANDLERS: Mutex<HandleTable<NamedHandler>> = Mutex::new(HandleTable::new(HandleKind::Errhandler));

/// The handler of `MPI_FILE_NULL`, for errors of files that could not be opened.
static FOR_FILES: Mutex<Option<Arc<Handler>>> = Mutex::new(None);

fn handlers() -> MutexGuard<'static, HandleTable<NamedHandler>> {
    HANDLERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The handler that a handle names, if it may be used for objects of `kind`.
pub fn resolve(handle: usize, kind: HandleKind) -> Result<Arc<Handler>> {
    if let Some(handler) = Handler::predefined(handle) {
        return Ok(Arc::new(handler));
    }
    let named = |error: Error| Error { code: Class::Errhandler as i32, ..error };
    let handler = handlers().get(handle).map_err(named)?.handler.clone();
    match *handler {
        Handler::User { kind: made_for, .. } if made_for != kind => {
            let detail = format!("errhandler ({handle:#x}) was made for a {}, not a {}", made_for.noun(), kind.noun());
            Err(Error::new(Class::Errhandler, detail))
        }
        _ => Ok(handler),
    }
}

/// A handle for `handler` to give to the program, which frees it: the one that the program knows, if there is one.
pub fn handle_of(handler: &Arc<Handler>) -> usize {
    match **handler {
        Handler::Initial | Handler::Fatal => ERRORS_ARE_FATAL,
        Handler::Abort => ERRORS_ABORT,
        Handler::Return => ERRORS_RETURN,
        Handler::User { .. } => {
            let mut handlers = handlers();
            let is_it = |(_, named): &(usize, &NamedHandler)| Arc::ptr_eq(&named.handler, handler);
            let Some(handle) = handlers.iter().find(is_it).map(|(handle, _)| handle) else {
                return handlers.insert(NamedHandler { handler: handler.clone(), given: 1 });
            };
            if let Some(named) = handlers.find_mut(handle) {
                named.given += 1;
            }
            handle
        }
    }
}

/// The object whose error handler an error goes to.
#[derive(Clone, Copy, Debug)]
pub enum On {
    /// No object among the arguments.
    Process,
    Comm(usize),
    Win(usize),
    File(usize),
    Session(usize),
    /// An object that is being made, and gets this handler.
    Made(usize),
}

/// Reports `error` of the function `call` to the right error handler; what the call then returns.
///
/// Runs the program's handler: the monitor must not be held.
#[cold]
pub fn raise(call: &'static str, on: On, error: Error) -> i32 {
    let of = |handle| match handle {
        _ if HandleKind::Session.has(handle) => On::Session(handle),
        _ if HandleKind::Win.has(handle) => On::Win(handle),
        _ => On::Comm(handle),
    };
    let on = error.on.map_or(on, of);
    let (handler, object) = match &error.through {
        Some(handler) => (handler.clone(), handler.null()),
        None => find(on),
    };
    let line = format!("{call}: {} ({})", error.detail, crate::error::name(error.code));
    run(&handler, object, error.code, &line)
}

/// Calls a handler with `code`; the line says what happened. Answers what the call is to return, which a handler of the
/// program may have changed.
pub(crate) fn run(handler: &Handler, object: usize, code: i32, line: &str) -> i32 {
    match *handler {
        Handler::Initial | Handler::Fatal => crate::start::abort_with(code, line, crate::start::FATAL),
        Handler::Abort => crate::start::abort_members(object, code, line, "MPI_ERRORS_ABORT"),
        Handler::Return => recent::remember(code, line),
        Handler::User { function, kind } => {
            recent::remember(code, line);
            let (mut object, mut passed) = (crate::program::handle(kind, object), crate::program::code(code));
            // SAFETY: the program said that this is a function of this type (MPI 5.0, section 9.3.1).
            unsafe {
                let function: unsafe extern "C" fn(*mut usize, *mut i32, ...) = std::mem::transmute(function);
                function(&mut object, &mut passed);
            }
            return crate::program::code_back(passed);
        }
    }
    code
}

/// The handler for errors on an object, and the handle that it is called with.
fn find(on: On) -> (Arc<Handler>, usize) {
    match on {
        On::Comm(handle) => of_comm(Some(handle)),
        On::File(handle) => (of_file(handle), handle),
        On::Win(handle) => of_win(handle),
        On::Session(handle) => of_session(handle),
        On::Process => of_comm(None),
        On::Made(handle) => match given(handle) {
            Some(handler) => (handler.clone(), handler.null()),
            None => of_comm(None),
        },
    }
}

fn given(handle: usize) -> Option<Arc<Handler>> {
    Handler::predefined(handle).map(Arc::new).or_else(|| handlers().find(handle).map(|named| named.handler.clone()))
}

/// The handler of a session; without a live one that of the process.
fn of_session(handle: usize) -> (Arc<Handler>, usize) {
    match crate::session::of(handle) {
        Ok(session) => (session.errhandler(), handle),
        Err(_) => of_comm(None),
    }
}

/// The handler of a window; without a valid one that of the process.
fn of_win(handle: usize) -> (Arc<Handler>, usize) {
    if crate::start::is_running()
        && let Some(window) = WORLD.enter().windows.table.find(handle)
        && *window.errhandler != Handler::Initial
    {
        return (window.errhandler.clone(), handle);
    }
    of_comm(None)
}

/// The handler of a file; without a valid one that of `MPI_FILE_NULL`.
fn of_file(handle: usize) -> Arc<Handler> {
    let file = if crate::start::is_running() { crate::file::of(handle).ok() } else { None };
    file.map_or_else(for_files, |file| file.errhandler())
}

/// What files get that are opened, and errors of files that are not open.
pub(crate) fn for_files() -> Arc<Handler> {
    let set = FOR_FILES.lock().unwrap_or_else(PoisonError::into_inner);
    set.clone().unwrap_or_else(|| Arc::new(Handler::Return))
}

/// The handler of a communicator; without a valid one that of the process. Without a world all errors are fatal.
fn of_comm(handle: Option<usize>) -> (Arc<Handler>, usize) {
    if !crate::start::is_running() {
        return (Arc::new(Handler::Fatal), COMM_SELF);
    }
    let world = WORLD.enter();
    let own = handle.and_then(|handle| world.comms.find(handle)).filter(|comm| has_handler(comm));
    match own.or_else(|| of_process(&world)) {
        Some(comm) => (comm.state().errhandler.clone(), comm.handle),
        // Only sessions are used: the initial error handler (MPI 5.0, section 9.3).
        None => (Arc::new(Handler::Fatal), COMM_SELF),
    }
}

fn has_handler(comm: &Comm) -> bool {
    *comm.state().errhandler != Handler::Initial
}

/// Whose handler gets errors of no object: `MPI_COMM_SELF` (MPI 5.0, section 9.3). Before MPI 4.0 it was
/// `MPI_COMM_WORLD`, and many programs set only that one's handler: it is taken while that of `MPI_COMM_SELF` is the
/// initial one.
fn of_process(world: &World) -> Option<&Arc<Comm>> {
    let own = world.comms.find(COMM_SELF)?;
    if has_handler(own) { Some(own) } else { world.comms.find(COMM_WORLD) }
}

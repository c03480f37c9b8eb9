//! Generalized requests: operations that the program itself performs and completes (MPI 5.0, section 13.2).

use super::{OperationEnd, Request};
use crate::abi::Status;
use crate::error::{Class, Error, Result};
use crate::program;
use crate::world::WORLD;
use std::ffi::c_void;

pub type Query = unsafe extern "C" fn(*mut c_void, *mut Status) -> i32;
pub type Free = unsafe extern "C" fn(*mut c_void) -> i32;
pub type Cancel = unsafe extern "C" fn(*mut c_void, i32) -> i32;

/// The program's three functions and its argument for them.
#[derive(Clone, Copy)]
pub struct Functions {
    pub query: Option<Query>,
    pub free: Option<Free>,
    pub cancel: Option<Cancel>,
    pub extra: *mut c_void,
}

// SAFETY: the program gives functions and argument for calls from any thread that completes the request.
unsafe impl Send for Functions {}

/// A generalized request.
pub struct Generalized {
    pub functions: Functions,
    /// The program has said that the operation is complete.
    pub complete: bool,
    /// The program has freed the request and will still complete it.
    pub freed: bool,
}

impl Functions {
    /// Asks for the status; with the monitor left.
    ///
    /// # Safety
    /// The functions are what the program gave for this purpose.
    pub unsafe fn query(&self) -> OperationEnd {
        let mut status = Status::EMPTY;
        // SAFETY: the program's own function and argument.
        let code = self.query.map_or(0, |query| unsafe { program::query(query as usize, self.extra, &mut status) });
        OperationEnd { status, error: failed("query_fn", code) }
    }

    /// Tells the program that the request is gone; with the monitor left.
    ///
    /// # Safety
    /// As [`Self::query`].
    pub unsafe fn free(&self) -> Result<()> {
        // SAFETY: as above.
        let code = self.free.map_or(0, |free| program::code_back(unsafe { free(self.extra) }));
        failed("free_fn", code).map_or(Ok(()), |error| Err(*error))
    }

    /// # Safety
    /// As [`Self::query`].
    pub unsafe fn cancel(&self, complete: bool) -> Result<()> {
        // SAFETY: as above.
        let code = self.cancel.map_or(0, |cancel| program::code_back(unsafe { cancel(self.extra, complete as i32) }));
        failed("cancel_fn", code).map_or(Ok(()), |error| Err(*error))
    }

    /// The end of a completed request, which is gone with it; with the monitor left.
    ///
    /// # Safety
    /// As [`Self::query`].
    pub unsafe fn end(&self) -> OperationEnd {
        // SAFETY: the caller's promise.
        unsafe {
            let mut end = self.query();
            if let Err(error) = self.free() {
                end.error = end.error.or_else(|| Some(Box::new(error)));
            }
            end
        }
    }
}

fn failed(function: &str, code: i32) -> Option<Box<Error>> {
    (code != 0)
        .then(|| Box::new(Error::from_code(code, format!("{function} of the generalized request answered {code}"))))
}

/// Replaces the functions of a generalized request that was just started.
pub fn rewrap(handle: usize, with: impl FnOnce(Functions) -> Functions) -> Result<()> {
    let mut world = WORLD.enter();
    if let Request::Generalized(generalized) = world.requests.get_mut(handle)? {
        generalized.functions = with(generalized.functions);
    }
    Ok(())
}

/// Marks a request as complete; frees it if the program gave it up before.
///
/// # Safety
/// The functions of the request may be called.
pub unsafe fn complete(handle: usize) -> Result<()> {
    let mut world = WORLD.enter();
    let Request::Generalized(generalized) = world.requests.get_mut(handle)? else {
        let detail = format!("request ({handle:#x}) is no generalized request");
        return Err(Error::new(Class::Request, detail));
    };
    generalized.complete = true;
    if !generalized.freed {
        return Ok(());
    }
    let functions = generalized.functions;
    world.requests.remove(handle)?;
    drop(world);
    // SAFETY: the caller's promise.
    unsafe { functions.free() }
}

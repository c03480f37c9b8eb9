//! Generalized requests.

use crate::error::Result;
use crate::request::Request;
use crate::request::generalized::{self, Cancel, Free, Functions, Generalized, Query};
use crate::world::WORLD;
use std::ffi::c_void;

/// `MPI_Grequest_start`.
pub unsafe fn grequest_start(query: usize, free: usize, cancel: usize, extra: *mut c_void) -> Result<usize> {
    // SAFETY: the program's functions have the types that the standard gives them; null ones are never called.
    let functions = unsafe {
        Functions {
            query: std::mem::transmute::<usize, Option<Query>>(query),
            free: std::mem::transmute::<usize, Option<Free>>(free),
            cancel: std::mem::transmute::<usize, Option<Cancel>>(cancel),
            extra,
        }
    };
    let generalized = Generalized { functions, complete: false, freed: false };
    let handle = WORLD.enter().requests.insert(Request::Generalized(Box::new(generalized)));
    Ok(handle)
}

/// `MPI_Grequest_complete`.
pub unsafe fn grequest_complete(request: usize) -> Result<()> {
    // SAFETY: the functions are the program's.
    unsafe { generalized::complete(request) }
}

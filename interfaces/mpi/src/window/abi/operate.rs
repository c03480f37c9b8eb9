//! Operations (MPI 5.0, section 12.3).

use crate::abi::{Aim, Described, REQUEST_NULL};
use crate::error::Result;
use crate::window::accumulate::{self, AccumulateCall};
use crate::window::transfer;
use std::ffi::c_void;

/// An operation, and the same with a request. The macro is given an expression that begins it, and in that the names of
/// the call and of whether it has a request.
macro_rules! operations {
    ($($name:ident $named:literal, $begun:ident $begun_named:literal:
       ($($argument:ident: $type:ty),*; $call:ident, $has_request:pat) $begin:expr;)*) => {$(
        pub unsafe fn $name($($argument: $type),*) -> Result<()> {
            let ($call, $has_request) = ($named, false);
            // SAFETY: the program keeps the promises of the standard for its buffers.
            unsafe { $begin.map(drop) }
        }

        pub unsafe fn $begun($($argument: $type,)* request: *mut usize) -> Result<()> {
            let ($call, $has_request) = ($begun_named, true);
            // SAFETY: as above; the program's place for the handle.
            unsafe {
                *request = REQUEST_NULL;
                *request = $begin?;
            }
            Ok(())
        }
    )*};
}

operations! {
    put "MPI_Put", rput "MPI_Rput":
        (origin: Described, aim: Aim, win: usize; call, _)
        transfer::put(call, win, origin, aim);
    get "MPI_Get", rget "MPI_Rget":
        (origin: Described, aim: Aim, win: usize; call, has_request)
        transfer::get(call, win, origin, aim, has_request);
    accumulate "MPI_Accumulate", raccumulate "MPI_Raccumulate":
        (origin: Described, aim: Aim, op: usize, handle: usize; name, has_request)
        accumulate::accumulate(&AccumulateCall { name, handle, origin, result: None, aim, op, has_request });
    get_accumulate "MPI_Get_accumulate", rget_accumulate "MPI_Rget_accumulate":
        (origin: Described, result: Described, aim: Aim, op: usize, handle: usize; name, has_request)
        accumulate::accumulate(&AccumulateCall { name, handle, origin, result: Some(result), aim, op, has_request });
}

pub unsafe fn fetch_and_op(
    origin: *const c_void,
    result: *mut c_void,
    datatype: usize,
    rank: i32,
    disp: isize,
    op: usize,
    win: usize,
) -> Result<()> {
    // SAFETY: as above.
    unsafe { accumulate::fetch_and_op(win, (origin, result), datatype, (rank, disp), op) }
}

pub unsafe fn compare_and_swap(
    origin: *const c_void,
    compare: *const c_void,
    result: *mut c_void,
    datatype: usize,
    rank: i32,
    disp: isize,
    win: usize,
) -> Result<()> {
    // SAFETY: as above.
    unsafe { accumulate::compare_and_swap(win, (origin, compare, result), datatype, (rank, disp)) }
}

//! Operations (MPI 5.0, section 12.3).

use crate::abi::REQUEST_NULL;
use crate::error::Result;
use crate::window::accumulate::{self, Call};
use crate::window::transfer::{self, Aim, Described};
use std::ffi::c_void;

/// An operation, and the same with a request. The macro is given an expression that begins it, and the names in that of
/// the origin and of what else stands before the target, of the window, the target and a reduction, and of the call's
/// name and whether it has a request.
macro_rules! operations {
    ($($name:ident $named:literal, $begun:ident $begun_named:literal:
       ($origin:ident: $pointer:ty $(, $more:ident: $type:ty)*; $win:ident, $aim:ident $(, $op:ident)?;
        $call:ident, $has_request:pat) $begin:expr;)*) => {$(
        pub unsafe fn $name(
            $origin: $pointer, count: i64, datatype: usize, $($more: $type,)*
            rank: i32, disp: isize, target_count: i64, target_datatype: usize, $($op: usize,)? $win: usize,
        ) -> Result<()> {
            let $origin: Described = ($origin, count, datatype);
            let $aim = Aim { rank, disp, count: target_count, datatype: target_datatype };
            let ($call, $has_request) = ($named, false);
            // SAFETY: the program keeps the promises of the standard for its buffers.
            unsafe { $begin.map(drop) }
        }

        pub unsafe fn $begun(
            $origin: $pointer, count: i64, datatype: usize, $($more: $type,)*
            rank: i32, disp: isize, target_count: i64, target_datatype: usize, $($op: usize,)? $win: usize,
            request: *mut usize,
        ) -> Result<()> {
            let $origin: Described = ($origin, count, datatype);
            let $aim = Aim { rank, disp, count: target_count, datatype: target_datatype };
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
        (origin: *const c_void; win, aim; call, _)
        transfer::put(call, win, origin, aim);
    get "MPI_Get", rget "MPI_Rget":
        (origin: *mut c_void; win, aim; call, has_request)
        transfer::get(call, win, origin, aim, has_request);
    accumulate "MPI_Accumulate", raccumulate "MPI_Raccumulate":
        (origin: *const c_void; win, aim, op; name, has_request)
        accumulate::accumulate(&Call { name, handle: win, origin, result: None, aim, op, has_request });
    get_accumulate "MPI_Get_accumulate", rget_accumulate "MPI_Rget_accumulate":
        (origin: *const c_void, result: *mut c_void, result_count: i64, result_datatype: usize; win, aim, op;
         name, has_request)
        {
            let result = Some((result.cast_const(), result_count, result_datatype));
            accumulate::accumulate(&Call { name, handle: win, origin, result, aim, op, has_request })
        };
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

//! Operations (MPI 5.0, section 12.3).

use crate::abi::REQUEST_NULL;
use crate::error::Result;
use crate::window::accumulate::{self, Call};
use crate::window::transfer::{self, Aim};
use std::ffi::c_void;

pub unsafe fn put(
    origin: *const c_void,
    count: i64,
    datatype: usize,
    rank: i32,
    disp: isize,
    target_count: i64,
    target_datatype: usize,
    win: usize,
) -> Result<()> {
    let aim = Aim { rank, disp, count: target_count, datatype: target_datatype };
    // SAFETY: the program keeps the promises of the standard for its buffers.
    unsafe { transfer::put("MPI_Put", win, (origin, count, datatype), aim).map(drop) }
}

pub unsafe fn rput(
    origin: *const c_void,
    count: i64,
    datatype: usize,
    rank: i32,
    disp: isize,
    target_count: i64,
    target_datatype: usize,
    win: usize,
    request: *mut usize,
) -> Result<()> {
    let aim = Aim { rank, disp, count: target_count, datatype: target_datatype };
    // SAFETY: as above; the program's place for the handle.
    unsafe {
        *request = REQUEST_NULL;
        *request = transfer::put("MPI_Rput", win, (origin, count, datatype), aim)?;
    }
    Ok(())
}

pub unsafe fn get(
    origin: *mut c_void,
    count: i64,
    datatype: usize,
    rank: i32,
    disp: isize,
    target_count: i64,
    target_datatype: usize,
    win: usize,
) -> Result<()> {
    let aim = Aim { rank, disp, count: target_count, datatype: target_datatype };
    // SAFETY: as above.
    unsafe { transfer::get("MPI_Get", win, (origin, count, datatype), aim, false).map(drop) }
}

pub unsafe fn rget(
    origin: *mut c_void,
    count: i64,
    datatype: usize,
    rank: i32,
    disp: isize,
    target_count: i64,
    target_datatype: usize,
    win: usize,
    request: *mut usize,
) -> Result<()> {
    let aim = Aim { rank, disp, count: target_count, datatype: target_datatype };
    // SAFETY: as above; the program's place for the handle.
    unsafe {
        *request = REQUEST_NULL;
        *request = transfer::get("MPI_Rget", win, (origin, count, datatype), aim, true)?;
    }
    Ok(())
}

pub unsafe fn accumulate(
    origin: *const c_void,
    count: i64,
    datatype: usize,
    rank: i32,
    disp: isize,
    target_count: i64,
    target_datatype: usize,
    op: usize,
    win: usize,
) -> Result<()> {
    let aim = Aim { rank, disp, count: target_count, datatype: target_datatype };
    let (name, origin) = ("MPI_Accumulate", (origin, count, datatype));
    let call = Call { name, handle: win, origin, result: None, aim, op, has_request: false };
    // SAFETY: as above.
    unsafe { accumulate::accumulate(&call).map(drop) }
}

pub unsafe fn raccumulate(
    origin: *const c_void,
    count: i64,
    datatype: usize,
    rank: i32,
    disp: isize,
    target_count: i64,
    target_datatype: usize,
    op: usize,
    win: usize,
    request: *mut usize,
) -> Result<()> {
    let aim = Aim { rank, disp, count: target_count, datatype: target_datatype };
    let (name, origin) = ("MPI_Raccumulate", (origin, count, datatype));
    let call = Call { name, handle: win, origin, result: None, aim, op, has_request: true };
    // SAFETY: as above; the program's place for the handle.
    unsafe {
        *request = REQUEST_NULL;
        *request = accumulate::accumulate(&call)?;
    }
    Ok(())
}

pub unsafe fn get_accumulate(
    origin: *const c_void,
    count: i64,
    datatype: usize,
    result: *mut c_void,
    result_count: i64,
    result_datatype: usize,
    rank: i32,
    disp: isize,
    target_count: i64,
    target_datatype: usize,
    op: usize,
    win: usize,
) -> Result<()> {
    let aim = Aim { rank, disp, count: target_count, datatype: target_datatype };
    let result = Some((result.cast_const(), result_count, result_datatype));
    let (name, origin) = ("MPI_Get_accumulate", (origin, count, datatype));
    let call = Call { name, handle: win, origin, result, aim, op, has_request: false };
    // SAFETY: as above.
    unsafe { accumulate::accumulate(&call).map(drop) }
}

pub unsafe fn rget_accumulate(
    origin: *const c_void,
    count: i64,
    datatype: usize,
    result: *mut c_void,
    result_count: i64,
    result_datatype: usize,
    rank: i32,
    disp: isize,
    target_count: i64,
    target_datatype: usize,
    op: usize,
    win: usize,
    request: *mut usize,
) -> Result<()> {
    let aim = Aim { rank, disp, count: target_count, datatype: target_datatype };
    let result = Some((result.cast_const(), result_count, result_datatype));
    let (name, origin) = ("MPI_Rget_accumulate", (origin, count, datatype));
    let call = Call { name, handle: win, origin, result, aim, op, has_request: true };
    // SAFETY: as above; the program's place for the handle.
    unsafe {
        *request = REQUEST_NULL;
        *request = accumulate::accumulate(&call)?;
    }
    Ok(())
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

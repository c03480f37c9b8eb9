//! Bodies of the file functions that move data: four forms of each access.

use super::{Place, of};
use crate::abi::{ANY_SOURCE, ANY_TAG, Status};
use crate::error::Result;
use crate::file::access;
use crate::file::call::{Call, Way};
use crate::file::memory::Memory;
use crate::request::{End, Request};
use crate::world::WORLD;
use std::ffi::c_void;

type Described = (*const c_void, i64, usize);

const fn status(bytes: u64) -> Status {
    Status::new(ANY_SOURCE, ANY_TAG, bytes)
}

/// # Safety
/// The buffer is the program's, for the time of the call.
unsafe fn perform(fh: usize, call: Call, (buf, count, datatype): Described) -> Result<u64> {
    let file = of(fh)?;
    if call.together {
        file.refuse_open_split()?;
    }
    // SAFETY: the caller's promise.
    access::perform(&file, call, unsafe { Memory::find(buf, count, datatype) })
}

/// # Safety
/// As [`perform`]; `out` is null or a status.
unsafe fn blocking(fh: usize, call: Call, what: Described, out: *mut Status) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { status(perform(fh, call, what)?).store(out) };
    Ok(())
}

/// # Safety
/// As [`perform`]; `request` is the program's place for the handle.
unsafe fn nonblocking(fh: usize, call: Call, what: Described, request: *mut usize) -> Result<()> {
    // SAFETY: the caller's promise.
    let end = End::good(status(unsafe { perform(fh, call, what)? }));
    let handle = WORLD.enter().requests.insert(Request::Done(end));
    // SAFETY: the caller's promise.
    unsafe { *request = handle };
    Ok(())
}

/// # Safety
/// The buffer is the program's until the end of the split access.
unsafe fn begin(fh: usize, call: Call, family: &'static str, (buf, count, datatype): Described) -> Result<()> {
    let file = of(fh)?;
    // SAFETY: the caller's promise.
    access::begin(&file, call, family, buf as usize, unsafe { Memory::find(buf, count, datatype) })
}

/// # Safety
/// `out` is null or a status.
unsafe fn end(fh: usize, family: &'static str, buf: *const c_void, out: *mut Status) -> Result<()> {
    let bytes = access::end(&*of(fh)?, family, buf as usize)?;
    // SAFETY: the caller's promise.
    unsafe { status(bytes).store(out) };
    Ok(())
}

/// The blocking form and the nonblocking one, which does not wait for other processes, whatever the blocking one does.
macro_rules! both {
    ($($way:ident, $buffer:ty: $name:ident $call:literal, $begun:ident $begun_call:literal,
       $place:expr $(, $offset:ident)?; together $together:literal;)*) => {$(
        pub unsafe fn $name(
            fh: usize,
            $($offset: i64,)?
            buf: $buffer,
            count: i64,
            datatype: usize,
            out: *mut Status,
        ) -> Result<()> {
            let call = Call { name: $call, way: Way::$way, place: $place, together: $together };
            // SAFETY: the program's buffer and status.
            unsafe { blocking(fh, call, (buf.cast_const_void(), count, datatype), out) }
        }

        pub unsafe fn $begun(
            fh: usize,
            $($offset: i64,)?
            buf: $buffer,
            count: i64,
            datatype: usize,
            request: *mut usize,
        ) -> Result<()> {
            let call = Call { name: $begun_call, way: Way::$way, place: $place, together: false };
            // SAFETY: the program's buffer, and its place for the handle.
            unsafe { nonblocking(fh, call, (buf.cast_const_void(), count, datatype), request) }
        }
    )*};
}

/// A split collective access.
macro_rules! split {
    ($($way:ident, $buffer:ty: $begin:ident, $end:ident, $family:literal, $place:expr $(, $offset:ident)?;)*) => {$(
        pub unsafe fn $begin(
            fh: usize,
            $($offset: i64,)?
            buf: $buffer,
            count: i64,
            datatype: usize,
        ) -> Result<()> {
            let call = Call { name: concat!($family, "_begin"), way: Way::$way, place: $place, together: true };
            // SAFETY: the program's buffer.
            unsafe { begin(fh, call, $family, (buf.cast_const_void(), count, datatype)) }
        }

        pub unsafe fn $end(fh: usize, buf: $buffer, out: *mut Status) -> Result<()> {
            // SAFETY: the program's status.
            unsafe { end(fh, $family, buf.cast_const_void(), out) }
        }
    )*};
}

/// Buffers that are read and buffers that are written, as one.
trait Buffer {
    fn cast_const_void(self) -> *const c_void;
}

impl Buffer for *mut c_void {
    fn cast_const_void(self) -> *const c_void {
        self
    }
}

impl Buffer for *const c_void {
    fn cast_const_void(self) -> *const c_void {
        self
    }
}

both! {
    Read, *mut c_void: read_at "MPI_File_read_at", iread_at "MPI_File_iread_at",
        Place::At(offset), offset; together false;
    Write, *const c_void: write_at "MPI_File_write_at", iwrite_at "MPI_File_iwrite_at",
        Place::At(offset), offset; together false;
    Read, *mut c_void: read_at_all "MPI_File_read_at_all", iread_at_all "MPI_File_iread_at_all",
        Place::At(offset), offset; together true;
    Write, *const c_void: write_at_all "MPI_File_write_at_all", iwrite_at_all "MPI_File_iwrite_at_all",
        Place::At(offset), offset; together true;
    Read, *mut c_void: read "MPI_File_read", iread "MPI_File_iread", Place::Own; together false;
    Write, *const c_void: write "MPI_File_write", iwrite "MPI_File_iwrite", Place::Own; together false;
    Read, *mut c_void: read_all "MPI_File_read_all", iread_all "MPI_File_iread_all", Place::Own; together true;
    Write, *const c_void: write_all "MPI_File_write_all", iwrite_all "MPI_File_iwrite_all", Place::Own; together true;
    Read, *mut c_void: read_shared "MPI_File_read_shared", iread_shared "MPI_File_iread_shared",
        Place::Shared; together false;
    Write, *const c_void: write_shared "MPI_File_write_shared", iwrite_shared "MPI_File_iwrite_shared",
        Place::Shared; together false;
}

/// `MPI_File_read_ordered`.
pub unsafe fn read_ordered(fh: usize, buf: *mut c_void, count: i64, datatype: usize, out: *mut Status) -> Result<()> {
    let call = Call { name: "MPI_File_read_ordered", way: Way::Read, place: Place::Shared, together: true };
    // SAFETY: the program's buffer and status.
    unsafe { blocking(fh, call, (buf, count, datatype), out) }
}

/// `MPI_File_write_ordered`.
pub unsafe fn write_ordered(
    fh: usize,
    buf: *const c_void,
    count: i64,
    datatype: usize,
    out: *mut Status,
) -> Result<()> {
    let call = Call { name: "MPI_File_write_ordered", way: Way::Write, place: Place::Shared, together: true };
    // SAFETY: the program's buffer and status.
    unsafe { blocking(fh, call, (buf, count, datatype), out) }
}

split! {
    Read, *mut c_void: read_at_all_begin, read_at_all_end, "MPI_File_read_at_all", Place::At(offset), offset;
    Write, *const c_void: write_at_all_begin, write_at_all_end, "MPI_File_write_at_all", Place::At(offset), offset;
    Read, *mut c_void: read_all_begin, read_all_end, "MPI_File_read_all", Place::Own;
    Write, *const c_void: write_all_begin, write_all_end, "MPI_File_write_all", Place::Own;
    Read, *mut c_void: read_ordered_begin, read_ordered_end, "MPI_File_read_ordered", Place::Shared;
    Write, *const c_void: write_ordered_begin, write_ordered_end, "MPI_File_write_ordered", Place::Shared;
}

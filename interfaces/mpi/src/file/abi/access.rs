//! Bodies of the file functions that move data: four forms of each access.

use super::{AccessPlace, of};
use crate::abi::{ANY_SOURCE, ANY_TAG, Described, Status};
use crate::error::Result;
use crate::file::access;
use crate::file::call::{BytesWay, Call};
use crate::file::memory::FileMemory;
use crate::request::{OperationEnd, Request};
use crate::world::WORLD;
use std::ffi::c_void;

const fn status(bytes: u64) -> Status {
    Status::new(ANY_SOURCE, ANY_TAG, bytes)
}

/// # Safety
/// The buffer is the program's, for the time of the call.
unsafe fn perform(fh: usize, call: Call, what: Described) -> Result<u64> {
    let file = of(fh)?;
    if call.together {
        file.refuse_open_split()?;
    }
    // SAFETY: the caller's promise.
    access::perform(&file, call, unsafe { FileMemory::find(what) })
}

/// # Safety
/// As [`perform`]; `out` is null or a status.
unsafe fn blocking(fh: usize, call: Call, what: Described, out: *mut Status) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { status(perform(fh, call, what)?).store(out) };
    Ok(())
}

/// # Safety
/// As [`perform`].
unsafe fn nonblocking(fh: usize, call: Call, what: Described) -> Result<usize> {
    // SAFETY: the caller's promise.
    let end = OperationEnd::good(status(unsafe { perform(fh, call, what)? }));
    Ok(WORLD.enter().requests.insert(Request::Done(end)))
}

/// # Safety
/// The buffer is the program's until the end of the split access.
unsafe fn begin(fh: usize, call: Call, family: &'static str, what: Described) -> Result<()> {
    let file = of(fh)?;
    // SAFETY: the caller's promise.
    access::begin(&file, call, family, what.buffer as usize, unsafe { FileMemory::find(what) })
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
    ($($way:ident: $name:ident $call:literal, $begun:ident $begun_call:literal,
       $place:expr $(, $offset:ident)?; together $together:literal;)*) => {$(
        pub unsafe fn $name(fh: usize, $($offset: i64,)? what: Described, out: *mut Status) -> Result<()> {
            let call = Call { name: $call, way: BytesWay::$way, place: $place, together: $together };
            // SAFETY: the program's buffer and status.
            unsafe { blocking(fh, call, what, out) }
        }

        pub unsafe fn $begun(fh: usize, $($offset: i64,)? what: Described) -> Result<usize> {
            let call = Call { name: $begun_call, way: BytesWay::$way, place: $place, together: false };
            // SAFETY: the program's buffer.
            unsafe { nonblocking(fh, call, what) }
        }
    )*};
}

/// A split collective access.
macro_rules! split {
    ($($way:ident: $begin:ident, $end:ident, $family:literal, $place:expr $(, $offset:ident)?;)*) => {$(
        pub unsafe fn $begin(fh: usize, $($offset: i64,)? what: Described) -> Result<()> {
            let call = Call { name: concat!($family, "_begin"), way: BytesWay::$way, place: $place, together: true };
            // SAFETY: the program's buffer.
            unsafe { begin(fh, call, $family, what) }
        }

        pub unsafe fn $end(fh: usize, buf: *const c_void, out: *mut Status) -> Result<()> {
            // SAFETY: the program's status.
            unsafe { end(fh, $family, buf, out) }
        }
    )*};
}

both! {
    Read: read_at "MPI_File_read_at", iread_at "MPI_File_iread_at",
        AccessPlace::At(offset), offset; together false;
    Write: write_at "MPI_File_write_at", iwrite_at "MPI_File_iwrite_at",
        AccessPlace::At(offset), offset; together false;
    Read: read_at_all "MPI_File_read_at_all", iread_at_all "MPI_File_iread_at_all",
        AccessPlace::At(offset), offset; together true;
    Write: write_at_all "MPI_File_write_at_all", iwrite_at_all "MPI_File_iwrite_at_all",
        AccessPlace::At(offset), offset; together true;
    Read: read "MPI_File_read", iread "MPI_File_iread", AccessPlace::Own; together false;
    Write: write "MPI_File_write", iwrite "MPI_File_iwrite", AccessPlace::Own; together false;
    Read: read_all "MPI_File_read_all", iread_all "MPI_File_iread_all", AccessPlace::Own; together true;
    Write: write_all "MPI_File_write_all", iwrite_all "MPI_File_iwrite_all", AccessPlace::Own; together true;
    Read: read_shared "MPI_File_read_shared", iread_shared "MPI_File_iread_shared",
        AccessPlace::Shared; together false;
    Write: write_shared "MPI_File_write_shared", iwrite_shared "MPI_File_iwrite_shared",
        AccessPlace::Shared; together false;
}

/// `MPI_File_read_ordered`.
pub unsafe fn read_ordered(fh: usize, what: Described, out: *mut Status) -> Result<()> {
    let call = Call { name: "MPI_File_read_ordered", way: BytesWay::Read, place: AccessPlace::Shared, together: true };
    // SAFETY: the program's buffer and status.
    unsafe { blocking(fh, call, what, out) }
}

/// `MPI_File_write_ordered`.
pub unsafe fn write_ordered(fh: usize, what: Described, out: *mut Status) -> Result<()> {
    let call =
        Call { name: "MPI_File_write_ordered", way: BytesWay::Write, place: AccessPlace::Shared, together: true };
    // SAFETY: the program's buffer and status.
    unsafe { blocking(fh, call, what, out) }
}

split! {
    Read: read_at_all_begin, read_at_all_end, "MPI_File_read_at_all", AccessPlace::At(offset), offset;
    Write: write_at_all_begin, write_at_all_end, "MPI_File_write_at_all", AccessPlace::At(offset), offset;
    Read: read_all_begin, read_all_end, "MPI_File_read_all", AccessPlace::Own;
    Write: write_all_begin, write_all_end, "MPI_File_write_all", AccessPlace::Own;
    Read: read_ordered_begin, read_ordered_end, "MPI_File_read_ordered", AccessPlace::Shared;
    Write: write_ordered_begin, write_ordered_end, "MPI_File_write_ordered", AccessPlace::Shared;
}

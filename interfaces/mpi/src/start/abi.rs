//! Bodies of the functions that start, end and describe the interface.

use super::phase::{BEFORE, ENDED, PHASE, RUNNING, THREAD_LEVEL};
use super::{MAIN, abort_members, finish, start};
use crate::abi::{
    ABI_SUBVERSION, ABI_VERSION, INFO_NULL, MAX_LIBRARY_VERSION_STRING, MAX_PROCESSOR_NAME, SUBVERSION,
    THREAD_FUNNELED, THREAD_MULTIPLE, THREAD_SERIALIZED, THREAD_SINGLE, VERSION, store_string,
};
use crate::error::{Class, Error, Result};
use crate::info::{self, Info};
use std::ffi::{c_char, c_void};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

pub unsafe fn init(_argc: *mut i32, _argv: *mut c_void) -> Result<()> {
    start(THREAD_SINGLE)
}

/// The level provided is the next one at or above the one required.
pub fn init_thread(_argc: *mut i32, _argv: *mut c_void, required: i32) -> Result<i32> {
    let levels = [THREAD_SINGLE, THREAD_FUNNELED, THREAD_SERIALIZED];
    let level = levels.into_iter().find(|&level| required <= level).unwrap_or(THREAD_MULTIPLE);
    start(level)?;
    Ok(level)
}

pub unsafe fn finalize() -> Result<()> {
    finish()
}

pub fn initialized() -> Result<i32> {
    Ok((PHASE.load(Ordering::Acquire) != BEFORE) as i32)
}

pub fn finalized() -> Result<i32> {
    Ok((PHASE.load(Ordering::Acquire) == ENDED) as i32)
}

pub unsafe fn abort(comm: usize, code: i32) -> Result<()> {
    abort_members(comm, code, &format!("MPI_Abort was called with code {code}"), "")
}

pub fn is_thread_main() -> Result<i32> {
    Ok((MAIN.get() == Some(&std::thread::current().id())) as i32)
}

pub fn query_thread() -> Result<i32> {
    Ok(THREAD_LEVEL.load(Ordering::Relaxed))
}

pub fn get_version() -> Result<(i32, i32)> {
    Ok((VERSION, SUBVERSION))
}

pub unsafe fn get_library_version(version: *mut c_char, length: *mut i32) -> Result<()> {
    let text = concat!("Weft ", env!("CARGO_PKG_VERSION"));
    // SAFETY: the program gave room for MPI_MAX_LIBRARY_VERSION_STRING bytes.
    unsafe { store_string(text, MAX_LIBRARY_VERSION_STRING as usize, version, length) };
    Ok(())
}

pub unsafe fn get_processor_name(name: *mut c_char, length: *mut i32) -> Result<()> {
    // SAFETY: the program gave room for MPI_MAX_PROCESSOR_NAME bytes.
    unsafe { store_string(&info::host_name(), MAX_PROCESSOR_NAME as usize, name, length) };
    Ok(())
}

pub fn get_hw_resource_info() -> Result<usize> {
    Ok(info::insert(Info::default()))
}

/// Seconds on the machine's monotonic clock, which all processes of a host share.
pub unsafe fn wtime() -> f64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a timespec; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

/// Resolution of [`wtime`] in seconds.
pub unsafe fn wtick() -> f64 {
    1e-9
}

/// Allocates `size` bytes, aligned to a cache line or to the info key `mpi_minimum_memory_alignment`.
pub unsafe fn alloc_mem(size: isize, info: usize, out: *mut c_void) -> Result<()> {
    let size = usize::try_from(size).map_err(|_| Error::new(Class::Arg, format!("size {size} is negative")))?;
    let wanted = info::value(info, "mpi_minimum_memory_alignment")?.and_then(|text| text.parse::<usize>().ok());
    let alignment = wanted.filter(|wanted| wanted.is_power_of_two()).unwrap_or(64).max(64);
    if let Some(memory) = weft_fabric::memory::allocate(size, alignment) {
        // SAFETY: the program's place for the pointer.
        unsafe { *out.cast::<*mut u8>() = memory };
        return Ok(());
    }
    let mut memory = std::ptr::null_mut();
    // SAFETY: `memory` takes the pointer; the alignment is a power of two and a multiple of a pointer's size.
    let failed = unsafe { libc::posix_memalign(&mut memory, alignment, size.max(1)) } != 0;
    if failed {
        return Err(Error::new(Class::NoMem, format!("no memory for {size} bytes")));
    }
    // SAFETY: the program's place for the pointer.
    unsafe { *out.cast::<*mut c_void>() = memory };
    Ok(())
}

pub unsafe fn free_mem(base: *mut c_void) -> Result<()> {
    if !weft_fabric::memory::free(base as usize) {
        // SAFETY: it came from `alloc_mem`, as the standard wants, and not out of a region.
        unsafe { libc::free(base) };
    }
    Ok(())
}

/// Profiling levels mean nothing to the library itself.
pub unsafe fn pcontrol(_level: i32) -> Result<()> {
    Ok(())
}

pub fn abi_get_version() -> Result<(i32, i32)> {
    Ok((ABI_VERSION, ABI_SUBVERSION))
}

pub fn abi_get_info() -> Result<usize> {
    let mut info = Info::default();
    for key in ["mpi_aint_size", "mpi_count_size", "mpi_offset_size"] {
        info.set(key, "8");
    }
    Ok(info::insert(info))
}

/// What a Fortran layer says about its compiler.
struct Fortran {
    info: Option<Info>,
    /// The bytes of true and false.
    booleans: Option<(Vec<u8>, Vec<u8>)>,
}

static FORTRAN: Mutex<Fortran> = Mutex::new(Fortran { info: None, booleans: None });

/// It may be told once, and only before the interface starts.
fn told_late(already: bool, what: &str) -> Result<()> {
    if already {
        return Err(Error::new(Class::Abi, format!("the Fortran {what} have been set already")));
    }
    if PHASE.load(Ordering::Relaxed) == RUNNING {
        return Err(Error::new(Class::Abi, format!("the Fortran {what} can be set only before MPI_Init")));
    }
    Ok(())
}

pub fn abi_get_fortran_info() -> Result<usize> {
    let info = FORTRAN.lock().unwrap_or_else(PoisonError::into_inner).info.clone();
    Ok(info.map_or(INFO_NULL, info::insert))
}

pub unsafe fn abi_set_fortran_info(handle: usize) -> Result<()> {
    let info = info::copy_of(handle)?;
    let mut fortran = FORTRAN.lock().unwrap_or_else(PoisonError::into_inner);
    told_late(fortran.info.is_some(), "type sizes")?;
    fortran.info = Some(info);
    Ok(())
}

fn boolean_size(size: i32) -> Result<usize> {
    let allowed = matches!(size, 1 | 2 | 4 | 8 | 16);
    let wrong = || Error::new(Class::Arg, format!("logical_size {size} is not 1, 2, 4, 8 or 16"));
    allowed.then_some(size as usize).ok_or_else(wrong)
}

pub unsafe fn abi_set_fortran_booleans(size: i32, yes: *mut c_void, no: *mut c_void) -> Result<()> {
    let size = boolean_size(size)?;
    // SAFETY: both are Fortran logicals of this size.
    let bytes = |at: *mut c_void| unsafe { std::slice::from_raw_parts(at.cast::<u8>(), size) }.to_vec();
    let mut fortran = FORTRAN.lock().unwrap_or_else(PoisonError::into_inner);
    told_late(fortran.booleans.is_some(), "booleans")?;
    fortran.booleans = Some((bytes(yes), bytes(no)));
    Ok(())
}

pub unsafe fn abi_get_fortran_booleans(size: i32, yes: *mut c_void, no: *mut c_void, is_set: *mut i32) -> Result<()> {
    let size = boolean_size(size)?;
    let fortran = FORTRAN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = fortran.booleans.as_ref().filter(|known| known.0.len() == size);
    // SAFETY: both are places for Fortran logicals of this size.
    unsafe {
        *is_set = known.is_some() as i32;
        if let Some(known) = known {
            std::ptr::copy_nonoverlapping(known.0.as_ptr(), yes.cast(), size);
            std::ptr::copy_nonoverlapping(known.1.as_ptr(), no.cast(), size);
        }
    }
    Ok(())
}

//! Memory that is shared, and mappings.

use crate::descriptors::{Descriptor, control, limits, stat};
use crate::system_call;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;

/// Whether a file may have so many bytes. Asked before: who makes one longer than that is sent a signal that ends it.
pub fn may_have_file_of(bytes: usize) -> bool {
    limits(libc::RLIMIT_FSIZE).map_or(true, |(soft, _)| soft >= bytes as u64)
}

/// Anonymous memory that can be shared, of a size that nobody can change.
pub fn sealed_memory(name: &CStr, bytes: usize) -> io::Result<Descriptor> {
    memory_sealed_by(name, bytes, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL)
}

/// The same for others who may seal it further: so they learn whether anybody has it in his memory.
pub fn sealable_memory(name: &CStr, bytes: usize) -> io::Result<Descriptor> {
    memory_sealed_by(name, bytes, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW)
}

fn memory_sealed_by(name: &CStr, bytes: usize, seals: i32) -> io::Result<Descriptor> {
    if !may_have_file_of(bytes) {
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a C string.
    let memory = unsafe { system_call!(libc::SYS_memfd_create, name.as_ptr(), flags) }?;
    let memory = Descriptor::own(memory as RawFd);
    // SAFETY: numbers only.
    unsafe { system_call!(libc::SYS_ftruncate, memory.as_raw_fd(), bytes) }?;
    control(memory.as_raw_fd(), libc::F_ADD_SEALS, seals)?;
    Ok(memory)
}

/// Memory with these bytes, whose length nobody can change; where it `is_final`, nor anything else of it.
///
/// # Errors
/// Those of making it.
pub fn memory_with(name: &CStr, bytes: &[u8], is_final: bool) -> io::Result<OwnedFd> {
    let memory = File::from(OwnedFd::from(sealable_memory(name, bytes.len())?));
    memory.write_all_at(bytes, 0)?;
    control(memory.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SEAL | if is_final { libc::F_SEAL_WRITE } else { 0 })?;
    Ok(memory.into())
}

/// Whether a descriptor is memory of exactly so many bytes whose size nobody can change.
pub fn is_sealed(memory: RawFd, bytes: usize) -> bool {
    let wanted = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
    sealed_size(memory).is_some_and(|(seals, size)| seals & wanted == wanted && size == bytes)
}

/// Bytes of the memory behind a descriptor, if nobody can make it shorter.
pub fn sealed_bytes(memory: RawFd) -> Option<usize> {
    sealed_size(memory).filter(|(seals, _)| seals & libc::F_SEAL_SHRINK != 0).map(|(_, size)| size)
}

/// Seals and size of memory.
fn sealed_size(memory: RawFd) -> Option<(i32, usize)> {
    let seals = control(memory, libc::F_GET_SEALS, 0).ok()?;
    stat(memory).map(|stat| (seals, stat.st_size as usize))
}

/// Maps memory for reading and writing: that behind a descriptor, or new memory that is shared with children.
pub fn map_shared(memory: Option<RawFd>, bytes: usize) -> io::Result<*mut u8> {
    map(std::ptr::null_mut(), memory, bytes, libc::MAP_SHARED)
}

/// New memory of this process alone; a child by fork gets a copy.
pub fn map_private(bytes: usize) -> io::Result<*mut u8> {
    map(std::ptr::null_mut(), None, bytes, libc::MAP_PRIVATE)
}

/// Puts the memory behind a descriptor, or new private memory, in the place of whatever is mapped at `at`.
///
/// # Safety
/// `at` is the beginning of pages that belong to the caller, and nobody minds that their content changes.
pub unsafe fn map_over(at: *mut u8, memory: Option<RawFd>, bytes: usize) -> io::Result<()> {
    let kind = if memory.is_some() { libc::MAP_SHARED } else { libc::MAP_PRIVATE };
    map(at, memory, bytes, kind | libc::MAP_FIXED).map(drop)
}

fn map(at: *mut u8, memory: Option<RawFd>, bytes: usize, flags: i32) -> io::Result<*mut u8> {
    let (flags, descriptor) = match memory {
        Some(memory) => (flags, memory as usize),
        None => (flags | libc::MAP_ANONYMOUS, usize::MAX),
    };
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (flags | libc::MAP_NORESERVE) as usize;
    // SAFETY: a new mapping at an address of the kernel's choice, or, with MAP_FIXED, of a caller who answers for it.
    unsafe { system_call!(libc::SYS_mmap, at, bytes, protection, flags, descriptor) }.map(|at| at as *mut u8)
}

/// # Safety
/// Nobody uses the mapping any more.
pub unsafe fn unmap(at: *mut u8, bytes: usize) {
    // SAFETY: the caller's.
    let _ = unsafe { system_call!(libc::SYS_munmap, at, bytes) };
}

/// Leaves a mapping out of core dumps.
pub fn without_dump(at: *mut u8, bytes: usize) {
    // SAFETY: changes no content.
    let _ = unsafe { system_call!(libc::SYS_madvise, at, bytes, libc::MADV_DONTDUMP) };
}

/// Gives the pages of shared memory back; they are zero when next touched.
///
/// # Safety
/// The range is mapped shared memory, and nobody minds that its content is gone.
pub unsafe fn forget(at: *mut u8, bytes: usize) {
    // SAFETY: the caller's.
    let _ = unsafe { system_call!(libc::SYS_madvise, at, bytes, libc::MADV_REMOVE) };
}

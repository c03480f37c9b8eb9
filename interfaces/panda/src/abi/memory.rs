//! Memory of the program: the C library's, which threads may share.

use std::ffi::c_void;

#[unsafe(no_mangle)]
pub extern "C" fn pan_malloc(size: usize) -> *mut c_void {
    // SAFETY: any size may be asked for.
    unsafe { libc::malloc(size) }
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: as above.
    unsafe { libc::calloc(count, size) }
}

/// # Safety
/// It is null or came from one of these functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_realloc(memory: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { libc::realloc(memory, size) }
}

/// # Safety
/// As [`pan_realloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_free(memory: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { libc::free(memory) };
}

//! The C functions, and where C and Rust meet.

mod arguments;
mod buffers;
mod format;
mod group;
mod handler;
mod machine;
mod mailbox;
mod message;
mod option;
mod pack;
mod perror;
mod reduce;
mod spawn;
mod task;
mod tracing;

use crate::errors::answered as told;
use std::ffi::{CStr, c_char, c_int, c_void};
use weft_pvm_machine::frame::Bytes;

/// The bytes of a C string; nothing for a null pointer.
///
/// # Safety
/// It is null or a C string.
pub unsafe fn text(from: *const c_char) -> Bytes {
    if from.is_null() {
        return Bytes::default();
    }
    // SAFETY: the caller's promise.
    Bytes(unsafe { CStr::from_ptr(from) }.to_bytes().to_vec())
}

/// The items of an array; none for a null pointer or a count below 1.
///
/// # Safety
/// It is null or has so many items.
pub unsafe fn items<'a, T>(from: *const T, count: c_int) -> &'a [T] {
    match usize::try_from(count) {
        // SAFETY: the caller's promise.
        Ok(count) if count > 0 && !from.is_null() => unsafe { std::slice::from_raw_parts(from, count) },
        _ => &[],
    }
}

/// Writes an answer where the program has a place for it.
///
/// # Safety
/// It is null or writable.
pub unsafe fn put<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: the caller's promise.
        unsafe { to.write(value) };
    }
}

/// Calls a function when the process ends.
pub fn at_exit(function: extern "C" fn()) {
    // SAFETY: a function of this library, which stays loaded: the fabric sees to that.
    unsafe { libc::atexit(function) };
}

/// Writes to a stream of the C library.
pub fn write_to_stream(stream: usize, text: &[u8]) {
    let stream = stream as *mut libc::FILE;
    // SAFETY: the program has given the stream to `pvm_catchout`, which says how long it must stay.
    unsafe {
        libc::fwrite(text.as_ptr().cast::<c_void>(), 1, text.len(), stream);
        libc::fflush(stream);
    }
}

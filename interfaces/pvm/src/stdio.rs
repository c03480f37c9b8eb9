//! What the C library does for the process: streams, and its end.

use std::ffi::c_void;

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

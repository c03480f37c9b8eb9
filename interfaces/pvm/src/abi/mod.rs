//! The C functions, and where C and Rust meet.

/// Functions of numbers that answer one, or an error, which is told by their C string.
macro_rules! answers {
    ($($(#[$comment:meta])* $name:ident $called:literal($($number:ident),*) = $outcome:expr;)*) => { $(
        $(#[$comment])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($number: c_int),*) -> c_int {
            // What it holds is given back before an error is told.
            let outcome = $outcome;
            crate::errors::answered($called, outcome)
        }
    )* };
}

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
use std::ffi::{CStr, c_char, c_int};
use weft_pvm_machine::frame::ByteString;

/// The bytes of a C string; nothing for a null pointer.
///
/// # Safety
/// It is null or a C string.
pub unsafe fn text(from: *const c_char) -> ByteString {
    if from.is_null() {
        return ByteString::default();
    }
    // SAFETY: the caller's promise.
    ByteString(unsafe { CStr::from_ptr(from) }.to_bytes().to_vec())
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

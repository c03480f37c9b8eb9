//! The functions of C. They turn pointers into values at once, and answer numbers.

mod messages;
mod objects;
mod spmd;

use crate::failure::{Answer, bad};
use std::ffi::c_void;

/// Writes what a call answers by a pointer.
///
/// # Safety
/// `at` is null or writable.
unsafe fn put<T>(at: *mut T, value: T) -> Answer<()> {
    if at.is_null() {
        return Err(bad("a pointer is null"));
    }
    // SAFETY: the caller's promise.
    unsafe { at.write(value) };
    Ok(())
}

/// # Safety
/// `values` has `count` of them for as long as the slice is used.
#[inline]
unsafe fn arguments<'a>(count: i32, values: *const i32) -> Answer<&'a [i32]> {
    let wrong = bad("there are more than 16 arguments, or less than none");
    let count = usize::try_from(count).map_err(|_| wrong)?;
    if count == 0 {
        return Ok(&[]);
    }
    if count > crate::message::MOST_ARGUMENTS {
        return Err(wrong);
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(values, count) })
}

/// Bytes that a program sends, at most so many.
///
/// # Safety
/// `bytes` is null or readable for `length` of them for as long as the slice is used.
unsafe fn bytes<'a>(bytes: *const c_void, length: usize, most: usize) -> Answer<&'a [u8]> {
    if length == 0 {
        return Ok(&[]);
    }
    if bytes.is_null() {
        return Err(bad("the bytes are null, and their number is not 0"));
    }
    if length > most {
        return Err(bad("too many bytes: AM_MaxMedium and AM_MaxLong say how many a message may have"));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(bytes.cast(), length) })
}

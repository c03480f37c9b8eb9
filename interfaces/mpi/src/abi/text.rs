//! Strings of C.

use crate::error::{Class, Error, Result};
use std::ffi::{CStr, c_char};

/// The text of a C string; bytes that are not UTF-8 are replaced.
///
/// # Safety
/// `string` is null (an error that names `argument`) or a C string.
pub unsafe fn text_of(string: *const c_char, argument: &str) -> Result<String> {
    if string.is_null() {
        return Err(Error::new(Class::Arg, format!("{argument} is a null pointer")));
    }
    // SAFETY: a C string, as the caller says.
    Ok(unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned())
}

/// Stores `text` as a C string in `room` bytes, cut if need be, and its length without the zero.
///
/// # Safety
/// `out` has `room` bytes; `length` is null or a place for the length.
pub unsafe fn store_string(text: &str, room: usize, out: *mut c_char, length: *mut i32) {
    let mut end = text.len().min(room - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    // SAFETY: `end < room`, and `out` has room bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), out, end);
        *out.add(end) = 0;
        if !length.is_null() {
            *length = end as i32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_too_long_is_cut_between_characters() {
        let (mut buffer, mut length) = ([1 as c_char; 6], 0);
        // SAFETY: the buffer has six bytes.
        unsafe {
            store_string("abcdäf", 6, buffer.as_mut_ptr(), &mut length);
            assert_eq!((text_of(buffer.as_ptr(), "text").unwrap().as_str(), length), ("abcd", 4));
            assert_eq!(text_of(std::ptr::null(), "key").unwrap_err().detail, "key is a null pointer");
        }
    }
}

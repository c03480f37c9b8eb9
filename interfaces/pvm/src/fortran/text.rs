//! Texts: those of Fortran have a length and blanks at their end, those of C a zero.

use std::ffi::{CStr, CString, c_char};

/// The bytes of a text without the blanks at its end, and without what follows a zero.
///
/// # Safety
/// A text of Fortran.
unsafe fn bytes<'a>(at: *const u8, length: usize) -> &'a [u8] {
    if at.is_null() {
        return &[];
    }
    // SAFETY: as the caller says.
    let text = unsafe { std::slice::from_raw_parts(at, length) };
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    &text[..text.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1)]
}

fn of_c(text: &[u8]) -> CString {
    CString::new(text).unwrap_or_default()
}

/// # Safety
/// `at` and `length` are a text of Fortran.
pub unsafe fn c_text(at: *const u8, length: usize) -> CString {
    // SAFETY: as the caller says.
    of_c(unsafe { bytes(at, length) })
}

/// What stands between blanks.
///
/// # Safety
/// `at` and `length` are a text of Fortran.
pub unsafe fn words(at: *const u8, length: usize) -> Vec<CString> {
    // SAFETY: as the caller says.
    let text = unsafe { bytes(at, length) };
    text.split(|byte| b" \t".contains(byte)).filter(|word| !word.is_empty()).map(of_c).collect()
}

/// Writes a text of C over the whole of one of Fortran: what does not fit is cut off, blanks fill the rest.
///
/// # Safety
/// `text` is null, or of C; `at` is null, or of Fortran with `length`.
pub unsafe fn write(text: *const c_char, at: *mut u8, length: usize) {
    if at.is_null() {
        return;
    }
    // SAFETY: as the caller says.
    let text = if text.is_null() { c"" } else { unsafe { CStr::from_ptr(text) } };
    // SAFETY: as the caller says.
    let into = unsafe { std::slice::from_raw_parts_mut(at, length) };
    let copied = text.count_bytes().min(length);
    into[..copied].copy_from_slice(&text.to_bytes()[..copied]);
    into[copied..].fill(b' ');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_fill_and_do_not_count() {
        // SAFETY: slices and their lengths.
        unsafe {
            let of = |text: &[u8]| c_text(text.as_ptr(), text.len());
            assert_eq!(of(b"ab c  "), c"ab c".to_owned());
            assert_eq!((of(b"   "), of(b""), of(b"ab\0c")), (c"".to_owned(), c"".to_owned(), c"ab".to_owned()));
            let text = b" -n  5 \tx ";
            assert_eq!(words(text.as_ptr(), text.len()), [c"-n".to_owned(), c"5".to_owned(), c"x".to_owned()]);
            let mut room = *b"12345";
            write(c"ab".as_ptr(), room.as_mut_ptr(), 4);
            assert_eq!(&room, b"ab  5");
            write(c"abcdef".as_ptr(), room.as_mut_ptr(), 4);
            assert_eq!(&room, b"abcd5");
        }
    }
}

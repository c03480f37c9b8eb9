//! Strings: those of Fortran have a length and blanks at their end, those of C a zero (MPI 5.0, section 19.3.8).

use std::ffi::{CString, c_char, c_void};

/// The longest string that a function fills, with its zero (`MPI_MAX_LIBRARY_VERSION_STRING`).
const LONGEST: usize = 8192;

/// A string without the blanks at its end.
///
/// # Safety
/// `at` and `length` are a string of Fortran.
pub unsafe fn c_string(at: *const u8, length: usize) -> CString {
    // SAFETY: as the caller says.
    CString::new(without_end(unsafe { bytes(at, length) })).unwrap_or_default()
}

/// Without the blanks at its beginning, too: a key or value of an info object (MPI 5.0, chapter 10), a command or an
/// argument of one (section 11.8.2).
///
/// # Safety
/// `at` and `length` are a string of Fortran.
pub unsafe fn trimmed(at: *const u8, length: usize) -> CString {
    // SAFETY: as the caller says.
    let text = without_end(unsafe { bytes(at, length) });
    let begin = text.iter().position(|&byte| byte != b' ').unwrap_or(0);
    CString::new(&text[begin..]).unwrap_or_default()
}

unsafe fn bytes<'a>(at: *const u8, length: usize) -> &'a [u8] {
    if at.is_null() {
        return &[];
    }
    // SAFETY: as the caller says.
    unsafe { std::slice::from_raw_parts(at, length) }
}

/// What follows a zero does not count.
fn without_end(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
    let length = text[..end].iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1);
    &text[..length]
}

/// Writes a string over the whole of one of Fortran.
fn padded(text: &[u8], into: &mut [u8]) {
    let (copied, rest) = into.split_at_mut(text.len().min(into.len()));
    copied.copy_from_slice(&text[..copied.len()]);
    rest.fill(b' ');
}

/// Memory in which a function of C leaves a string.
pub struct Filled(Vec<u8>);

impl Filled {
    /// `room`: how many characters the caller allows the function to write.
    pub fn new(room: i32) -> Self {
        Self(vec![0; LONGEST.max(usize::try_from(room).unwrap_or(0) + 1)])
    }

    pub fn at(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }

    fn text(&self) -> &[u8] {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        &self.0[..end]
    }

    /// # Safety
    /// `at` and `length` are a string of Fortran.
    pub unsafe fn back(&self, at: *mut u8, length: usize) {
        if !at.is_null() {
            // SAFETY: as the caller says.
            padded(self.text(), unsafe { std::slice::from_raw_parts_mut(at, length) });
        }
    }
}

/// Strings as `argv` of C has them.
pub struct List {
    strings: Vec<CString>,
    places: Vec<*mut c_char>,
}

impl List {
    fn new(strings: Vec<CString>) -> Self {
        let ends = [std::ptr::null_mut()];
        let places = strings.iter().map(|string| string.as_ptr().cast_mut()).chain(ends).collect();
        Self { strings, places }
    }

    /// Strings of `length` that lie `stride` strings apart, to the first empty one or to `most`.
    ///
    /// # Safety
    /// `at` is an array of so many strings, or of one with an empty one among them.
    pub unsafe fn read(at: *const u8, length: usize, stride: usize, most: Option<usize>) -> Self {
        let mut strings = Vec::new();
        while length > 0 && most.is_none_or(|most| strings.len() < most) {
            // SAFETY: no empty one came so far.
            let string = unsafe { trimmed(at.wrapping_add(strings.len() * stride * length), length) };
            if most.is_none() && string.is_empty() {
                break;
            }
            strings.push(string);
        }
        Self::new(strings)
    }

    pub fn at(&mut self) -> *mut c_void {
        debug_assert_eq!(self.strings.len() + 1, self.places.len());
        self.places.as_mut_ptr().cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_at_the_end_of_a_string_of_fortran_are_not_part_of_it() {
        // SAFETY: a string of this length, or an array of such.
        let read = |text: &str| unsafe { c_string(text.as_ptr(), text.len()) }.into_string().unwrap();
        assert_eq!(read("  a key   "), "  a key");
        assert_eq!(read("key\0junk"), "key");
        assert_eq!(read("   "), "");
        // SAFETY: a string of this length, or an array of such.
        let trimmed = |text: &str| unsafe { trimmed(text.as_ptr(), text.len()) }.into_string().unwrap();
        assert_eq!((trimmed("  a key "), trimmed("  ")), ("a key".to_owned(), String::new()));
    }

    #[test]
    fn a_string_of_c_is_cut_or_padded() {
        let mut filled = Filled::new(0);
        filled.0[..5].copy_from_slice(b"hello");
        let back = |room: usize| {
            let mut into = vec![b'x'; room];
            // SAFETY: a string of this length, or an array of such.
            unsafe { filled.back(into.as_mut_ptr(), room) };
            String::from_utf8(into).unwrap()
        };
        assert_eq!(back(8), "hello   ");
        assert_eq!(back(3), "hel");
    }

    #[test]
    fn lists_end_at_the_first_empty_string_or_where_they_are_said_to() {
        let texts = b"ab   c      zz  ";
        // SAFETY: a string of this length, or an array of such.
        let list = unsafe { List::read(texts.as_ptr(), 4, 1, None) };
        assert_eq!(list.strings, [c"ab".to_owned(), c"c".to_owned()]);
        assert!(list.places.last().is_some_and(|last| last.is_null()));
        // SAFETY: a string of this length, or an array of such.
        let columns = unsafe { List::read(texts.as_ptr(), 4, 2, Some(2)) };
        assert_eq!(columns.strings, [c"ab".to_owned(), c"".to_owned()]);
    }
}

//! Arrays of C.

use crate::error::{Class, Error, Result};

/// The program's array of `length` elements. An empty array may have any address.
///
/// # Errors
/// A negative length (by the name `argument`), or a null pointer to elements that must exist.
///
/// # Safety
/// If both are valid, the array has `length` elements and is not written while the slice lives.
pub unsafe fn slice_of<'a, T>(at: *const T, length: i32, argument: &str) -> Result<&'a [T]> {
    match usize::try_from(length) {
        Err(_) => Err(Error::new(Class::Arg, format!("{argument} {length} is negative"))),
        Ok(0) => Ok(&[]),
        Ok(_) if at.is_null() => Err(Error::new(Class::Arg, format!("the array of {length} is a null pointer"))),
        // SAFETY: as the caller says.
        Ok(length) => Ok(unsafe { std::slice::from_raw_parts(at, length) }),
    }
}

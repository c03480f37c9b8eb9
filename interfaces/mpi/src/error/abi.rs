//! Bodies of the functions on error classes and codes.

use super::{Class, Error, Result, added, recent, text, tool};
use crate::abi::{MAX_ERROR_STRING, store_string, text_of};
use std::ffi::c_char;

pub fn add_error_class() -> Result<i32> {
    Ok(added::add_class())
}

pub fn add_error_code(class: i32) -> Result<i32> {
    added::add_code(class)
}

pub unsafe fn add_error_string(code: i32, string: *const c_char) -> Result<()> {
    // SAFETY: a C string of the program.
    let string = unsafe { text_of(string, "string")? };
    if string.len() >= MAX_ERROR_STRING as usize {
        let detail = format!("string has {} bytes, more than MPI_MAX_ERROR_STRING - 1", string.len());
        return Err(Error::new(Class::Arg, detail));
    }
    added::set_text(code, string)
}

pub unsafe fn remove_error_class(class: i32) -> Result<()> {
    added::remove(class, true)
}

pub unsafe fn remove_error_code(code: i32) -> Result<()> {
    added::remove(code, false)
}

pub unsafe fn remove_error_string(code: i32) -> Result<()> {
    added::set_text(code, String::new())
}

pub fn error_class(code: i32) -> Result<i32> {
    added::class_of(code)
}

pub unsafe fn error_string(code: i32, string: *mut c_char, length: *mut i32) -> Result<()> {
    added::class_of(code)?;
    let line = match Class::from_number(code) {
        Some(class) => recent::recall(code).unwrap_or_else(|| format!("{}: {}", class.name(), class.text())),
        // The program's own code has the program's own words (MPI 5.0, section 9.5).
        None => tool::of(code).map_or_else(|| text(code), |(name, text)| format!("{name}: {text}")),
    };
    // SAFETY: the program gave room for MPI_MAX_ERROR_STRING bytes.
    unsafe { store_string(&line, MAX_ERROR_STRING as usize, string, length) };
    Ok(())
}

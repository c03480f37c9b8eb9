//! The generated entry points.
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments, non_snake_case)]
#![allow(clippy::useless_conversion, reason = "generated for counts of either width")]

use crate::{handle, section, sentinel, special, text};
use std::ffi::c_void;

/// Stores the code, where the caller wants it.
unsafe fn answer(code: i32, ierror: *mut i32) {
    if !ierror.is_null() {
        // SAFETY: the program's place.
        unsafe { *ierror = code };
    }
}

include!(concat!(env!("OUT_DIR"), "/entries.rs"));

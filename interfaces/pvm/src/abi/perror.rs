//! Errors as programs ask for them.

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::Ordering::Relaxed;

use crate::errors;

/// # Safety
/// `what` is null, or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_perror(what: *const c_char) -> c_int {
    let what = if what.is_null() {
        "(null)".into()
    } else {
        // SAFETY: as the caller says.
        unsafe { CStr::from_ptr(what) }.to_string_lossy()
    };
    errors::say(&what);
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn pvm_strerror() -> *const c_char {
    errors::text(errors::pvm_errno.load(Relaxed)).as_ptr()
}

/// What functions beside these, such as those of groups, report their errors by.
///
/// # Safety
/// `call` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpvmerr(call: *const c_char, code: c_int) -> c_int {
    // SAFETY: as the caller says.
    let call = if call.is_null() { c"" } else { unsafe { CStr::from_ptr(call) } };
    errors::report(call, code)
}

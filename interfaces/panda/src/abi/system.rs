//! Begin and end, and who takes part.

use super::{PLACE, assert_open, me, platforms};
use crate::failure::fail;
use crate::life;
use crate::takers;
use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::Ordering;

/// Takes nothing from the arguments: places come from the launcher.
#[unsafe(no_mangle)]
pub extern "C" fn pan_init(_argc: *mut c_int, _argv: *mut *mut c_char) {
    if platforms() > 0 {
        fail("pan_init: called twice");
    }
    match life::open() {
        Ok((me, all)) => {
            PLACE[0].store(me, Ordering::Relaxed);
            PLACE[1].store(all, Ordering::Relaxed);
        }
        Err(error) => fail(&format!("pan_init: {error}")),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_start() {
    assert_open("pan_start");
    if let Err(error) = life::start() {
        fail(&format!("pan_start: the system gives no thread: {error}"));
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_end() {
    assert_open("pan_end");
    life::close("pan_end");
    PLACE[1].store(0, Ordering::Relaxed);
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_nr_platforms() -> c_int {
    platforms() as c_int
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_my_pid() -> c_int {
    me() as c_int
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_poll() {
    assert_open("pan_poll");
    takers::poll();
}

/// `pan_panic` of the header, which puts the text together.
///
/// # Safety
/// It is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_panda_panic(text: *const c_char) {
    // SAFETY: the caller's promise.
    fail(&format!("pan_panic on platform {}: {}", me(), unsafe { CStr::from_ptr(text) }.to_string_lossy()));
}

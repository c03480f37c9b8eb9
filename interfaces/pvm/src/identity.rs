//! Who this task is: its number and its context, under the names that programs know them by, too.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering};

/// This task's identifier; -1: it has not enrolled.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static pvmmytid: AtomicI32 = AtomicI32::new(-1);

/// The context in which this task sends and receives.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static pvmmyctx: AtomicI32 = AtomicI32::new(0);

pub fn my_tid() -> c_int {
    pvmmytid.load(Ordering::Relaxed)
}

pub fn my_context() -> c_int {
    pvmmyctx.load(Ordering::Relaxed)
}

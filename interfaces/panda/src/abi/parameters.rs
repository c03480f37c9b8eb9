//! What tunes the original, by names. Nothing here has an effect; who asks gets nothing, of the right kind.

use crate::failure::say;
use std::ffi::{CStr, c_char, c_int, c_void};

const REALS: [&str; 7] = [
    "PAN_GRP_hist_status",
    "PAN_GRP_hist_watch",
    "PAN_GRP_retrans_timeout",
    "PAN_GRP_send_timeout",
    "PAN_GRP_sync_timeout",
    "PAN_SYS_mcast_sweep_interval",
    "PAN_SYS_timeout",
];

const INTEGERS: [&str; 14] = [
    "PAN_GRP_Leave_attempts",
    "PAN_GRP_bb_boundary",
    "PAN_GRP_bb_large",
    "PAN_GRP_frag_buf_size",
    "PAN_GRP_hist_size",
    "PAN_GRP_leave_attempts",
    "PAN_GRP_ord_buf_size",
    "PAN_GRP_unord_buf_size",
    "PAN_GRP_watch_suicide",
    "PAN_GRP_watch_sync",
    "PAN_SYS_mcast_hist_size",
    "PAN_SYS_mcast_ord_buf_size",
    "PAN_SYS_mcast_retrans_ticks",
    "PAN_SYS_n_buffers",
];

const STATISTICS: [&str; 3] = ["PAN_GRP_statistics", "PAN_SYS_mcast_statistics", "PAN_SYS_statistics"];

/// A parameter of a module is set, or asked for, by the functions of the header that have lists. A statistic is text,
/// which the program frees. Answers 1 where the value is a real number: the header's functions go on behind it. A name
/// that the original does not know is ignored with a line, as there.
///
/// # Safety
/// The name is a string; where it is asked for, `place` is where the value goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_panda_parameter(name: *const c_char, place: *mut c_void, asked: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let is_real = REALS.contains(&&*name);
    let is_statistic = STATISTICS.contains(&&*name);
    if !is_real && !is_statistic && !INTEGERS.contains(&&*name) {
        say(&format!("Panda has no parameter '{name}', which is ignored"));
    } else if asked != 0 && !place.is_null() {
        // SAFETY: the caller's promise: each name has a value of one kind.
        unsafe {
            match (is_real, is_statistic) {
                (true, _) => place.cast::<f64>().write(0.0),
                (_, true) => place.cast::<*mut c_char>().write(libc::strdup(c"".as_ptr())),
                _ => place.cast::<c_int>().write(0),
            }
        }
    }
    is_real.into()
}

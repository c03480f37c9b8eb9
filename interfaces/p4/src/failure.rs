//! How a job ends that cannot go on: `p4_error`.

use crate::family;
use crate::place;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use weft_ports::Peer;

/// Whether what goes wrong is told to the program where P4 can, rather than ending the job.
static IS_SOFT: AtomicI32 = AtomicI32::new(0);
/// Whether the job was started by a launcher, which ends the others.
static IS_LAUNCHED: AtomicBool = AtomicBool::new(false);

pub fn set_launched() {
    IS_LAUNCHED.store(true, Ordering::Relaxed);
}

/// How it was before.
pub fn set_soft(soft: i32) -> i32 {
    IS_SOFT.swap(soft, Ordering::Relaxed)
}

/// Says what is wrong and ends all processes of the job.
#[cold]
pub fn fail(text: &str, value: i32) -> ! {
    // SAFETY: may be called at any time; output that the program has written so far is not lost.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    // In one piece, since others may write as well.
    let line = format!("{}:  p4_error: {text}: {value}\n", place::name());
    let _ = std::io::stderr().write_all(line.as_bytes());
    if IS_LAUNCHED.load(Ordering::Relaxed) {
        weft_fabric::abort(1, "");
    }
    family::end_job();
    // SAFETY: ends the process, in whatever state it is.
    unsafe { libc::_exit(1) }
}

/// -1 for the program where it has asked for soft errors; else the job ends.
#[cold]
pub fn refuse(text: &str, value: i32) -> i32 {
    if IS_SOFT.load(Ordering::Relaxed) != 0 { -1 } else { fail(text, value) }
}

/// The process of this number, which messages can go to.
///
/// # Errors
/// -1 where there is none, and the program has asked for soft errors.
#[inline]
pub fn peer(call: &str, to: i32) -> Result<Peer, i32> {
    if !place::takes_part() {
        return Err(refuse(
            &format!("{call}: this process takes no part in messages: no procgroup, or it has left"),
            to,
        ));
    }
    match u32::try_from(to) {
        Ok(peer) if peer < place::size() => Ok(Peer(peer)),
        _ => Err(refuse(&format!("{call}: there is no such process among {}", place::size()), to)),
    }
}

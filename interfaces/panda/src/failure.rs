//! How a job ends that cannot go on: Panda's calls have no errors that a program hears of.

use std::io::Write;
use weft_ports::Peer;

/// Says what is wrong, and ends the job.
#[cold]
pub fn fail(text: &str) -> ! {
    // SAFETY: may be called at any time; output that the program has written so far is not lost.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    say(text);
    weft_fabric::abort(1, "")
}

/// In one piece, since others may write as well.
#[cold]
pub fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("weft: {text}\n").as_bytes());
}

/// The platform of this number; the job ends where there is none.
#[inline]
pub fn platform(call: &str, number: i32, all: u32) -> Peer {
    match u32::try_from(number).ok().filter(|number| *number < all) {
        Some(number) => Peer(number),
        None => fail(&format!("{call}: no platform {number}, of {all}")),
    }
}

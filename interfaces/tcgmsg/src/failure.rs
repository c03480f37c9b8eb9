//! How a job ends that cannot go on: as TCGMSG's `Error` does, with a line and for all processes; and what of arguments
//! leads there.

use crate::place;
use std::io::Write;
use weft_ports::{Fault, Peer};

/// Says who has ended the job and why, and ends it. A call cannot go wrong in a way that the program hears of.
#[cold]
pub fn fail(text: &str, code: i64) -> ! {
    // SAFETY: may be called at any time; output that the program has written so far is not lost.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    // In one piece, since others may write as well.
    let line = format!("{:3}: {text} {code} ({code:#x}).\n", place::me());
    let _ = std::io::stderr().write_all(line.as_bytes());
    weft_fabric::abort(1, "")
}

/// The other process of an operation is gone.
#[cold]
pub fn lost(call: &str, node: u32, fault: Fault) -> ! {
    let why = match fault {
        Fault::NoMemory => "no shared memory for messages with node",
        _ => "this process has ended, node",
    };
    fail(&format!("{call}: {why}"), node.into())
}

/// Ends the job if `call` comes outside of `PBEGIN` and `PEND`.
#[inline]
pub fn assert_open(call: &str) {
    if !place::MESSENGER.is_open() {
        fail(&format!("{call}: called before PBEGIN or after PEND"), -1);
    }
}

/// Another process of the job; what is none ends the job.
#[inline]
pub fn other(call: &str, node: i64) -> Peer {
    match u32::try_from(node) {
        Ok(peer) if peer < place::size() && peer != place::me() => Peer(peer),
        Ok(peer) if peer < place::size() => {
            fail(&format!("{call}: no message goes from a process to itself, node"), node)
        }
        _ => fail(&format!("{call}: there is no such node among {}:", place::size()), node),
    }
}

//! The memory in which all processes of a command count together, if there is one: `weft sock --stats` has made it, and
//! tells where.
//!
//! It is opened by the number of that command, which works whatever descriptors the program was given, and else by the
//! descriptor that was inherited: by another user, or where processes have other numbers.

use std::fs::File;
use std::os::fd::AsRawFd;

use weft_fabric::stream::{Address, TALLY_VARIABLE, memory_name};

use super::meet::STREAMS;

/// To be called once, when the library is loaded. False where there is none, or none that can be had.
pub fn join() -> bool {
    let told = std::env::var(TALLY_VARIABLE).ok();
    let Some(address) = told.as_deref().and_then(Address::parse) else { return false };
    let Address { process, descriptor, number } = address;
    [format!("/proc/{process}/fd/{descriptor}"), format!("/proc/self/fd/{descriptor}")]
        .iter()
        .any(|path| is_at(path, &memory_name(number)) && open(path).is_some())
}

/// Whether that memory is there, and not what has the same number since.
fn is_at(path: &str, name: &str) -> bool {
    std::fs::read_link(path).is_ok_and(|to| {
        to.to_str()
            .is_some_and(|to| to.strip_prefix("/memfd:").is_some_and(|to| to.strip_suffix(" (deleted)") == Some(name)))
    })
}

fn open(path: &str) -> Option<()> {
    let memory = File::options().read(true).write(true).open(path).ok()?;
    STREAMS.join_tally(memory.as_raw_fd()).ok()
}

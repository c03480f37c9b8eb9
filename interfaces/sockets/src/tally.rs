//! The memory in which all processes of a command count together, if there is one: `weft sock --stats` has made it, and
//! tells where.
//!
//! It is opened by the number of that command, which needs no descriptor in any program. That does not work for another
//! user, nor where processes have other numbers. So a process of root, which may become either, keeps a descriptor,
//! closed on exec, and hands it on only to what it starts when it has become one. Who has found it so hands it on, too.

use std::ffi::{CString, c_int};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;

use weft_fabric::stream::{Address, TALLY_VARIABLE, memory_name};

use super::meet::STREAMS;
use super::raw;

static KEPT: OnceLock<KeptTally> = OnceLock::new();

/// A descriptor for those that need it.
struct KeptTally {
    descriptor: c_int,
    /// What says of the descriptor what it is, and what it said.
    path: CString,
    name: [u8; 64],
    processes: Option<[u8; 64]>,
}

/// To be called once, when the library is loaded. False where there is none, or none that can be had.
pub fn join() -> bool {
    let told = std::env::var(TALLY_VARIABLE).ok();
    let Some(address) = told.as_deref().and_then(Address::parse) else { return false };
    let Address { process, descriptor, number } = address;
    let [by_number, own] = [process.to_string(), "self".to_owned()].map(|of| format!("/proc/{of}/fd/{descriptor}"));
    let join = |path: &str| if is_at(path, &memory_name(number)) { open(path) } else { None };
    let Some(memory) = join(&by_number) else { return join(&own).is_some() };
    if is_at(&own, &memory_name(number)) {
        raw::close(descriptor as c_int);
    }
    if raw::user() == 0 {
        keep(&memory, descriptor as c_int, own);
    }
    true
}

/// Under the number that others are told, if it is free.
fn keep(memory: &File, number: c_int, path: String) {
    let Ok(kept) = raw::fcntl(memory.as_raw_fd(), libc::F_DUPFD_CLOEXEC, number as usize) else { return };
    let names = CString::new(path).ok().and_then(|path| Some((raw::read_link(&path).ok()?, path)));
    match names.filter(|_| kept as c_int == number) {
        Some((name, path)) => _ = KEPT.set(KeptTally { descriptor: number, path, name, processes: processes() }),
        None => raw::close(kept as c_int),
    }
}

/// Before another program is started: it is handed on to who can find it in no other way.
pub fn before_exec() {
    let Some(kept) = KEPT.get() else { return };
    let is_other = raw::user() != 0 || processes() != kept.processes;
    // The program may have put a file of its own in its place.
    if is_other && raw::read_link(&kept.path) == Ok(kept.name) {
        let _ = raw::fcntl(kept.descriptor, libc::F_SETFD, 0);
    }
}

/// The namespace of the processes that this one starts.
fn processes() -> Option<[u8; 64]> {
    raw::read_link(c"/proc/self/ns/pid_for_children").ok()
}

/// Whether that memory is there, and not what has the same number since.
fn is_at(path: &str, name: &str) -> bool {
    std::fs::read_link(path).is_ok_and(|to| {
        to.to_str()
            .is_some_and(|to| to.strip_prefix("/memfd:").is_some_and(|to| to.strip_suffix(" (deleted)") == Some(name)))
    })
}

fn open(path: &str) -> Option<File> {
    let memory = File::options().read(true).write(true).open(path).ok()?;
    STREAMS.join_tally(memory.as_raw_fd()).ok()?;
    Some(memory)
}

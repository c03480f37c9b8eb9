//! A file that is copied to all processes, and logs of their own.

use crate::failure::{assert_open, fail};
use crate::place::{me, size};
use crate::together;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

/// So much is sent at a time.
const CHUNK: usize = 1 << 20;

/// Copies the file that `node` has under this name to all others, each under the name that it gives.
pub fn copy(kind: i32, node: i64, name: &Path) {
    assert_open("PFCOPY");
    if !(0..i64::from(size())).contains(&node) {
        fail("PFCOPY: there is no such node:", node);
    }
    let is_source = i64::from(me()) == node;
    let opened = if is_source { File::open(name) } else { File::create(name) };
    let mut file = opened.unwrap_or_else(|error| refuse("cannot open", name, &error, node));
    let mut bytes = vec![0; CHUNK];
    loop {
        let mut length = [0; 8];
        if is_source {
            let read = fill(&mut file, &mut bytes).unwrap_or_else(|error| refuse("cannot read", name, &error, node));
            length = (read as u64).to_ne_bytes();
        }
        together::broadcast(kind, &mut length, node);
        let length = (u64::from_ne_bytes(length) as usize).min(CHUNK);
        if length == 0 {
            return;
        }
        together::broadcast(kind, &mut bytes[..length], node);
        if !is_source && let Err(error) = file.write_all(&bytes[..length]) {
            refuse("cannot write", name, &error, node);
        }
    }
}

fn refuse(what: &str, name: &Path, error: &io::Error, node: i64) -> ! {
    fail(&format!("PFCOPY: {what} {}: {error}, node", name.display()), node)
}

/// Reads as many bytes as there is room for, fewer at the end of the file only.
fn fill(file: &mut File, room: &mut [u8]) -> io::Result<usize> {
    let mut at = 0;
    while at < room.len() {
        match file.read(&mut room[at..]) {
            Ok(0) => break,
            Ok(read) => at += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(at)
}

/// What this process prints goes to the end of `log.NNN` in its directory from now on.
pub fn log() {
    let name = format!("log.{:03}", me());
    let file = OpenOptions::new().append(true).create(true).open(&name);
    let file = file.unwrap_or_else(|error| fail(&format!("LLOG: cannot open {name}: {error}, node"), me().into()));
    // SAFETY: may be called at any time; what was printed so far goes where it was meant to.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    for stream in [1, 2] {
        // SAFETY: both are descriptors of this process; what the second one was is closed, as is meant.
        if unsafe { libc::dup2(file.as_raw_fd(), stream) } < 0 {
            fail("LLOG: cannot print to the log, node", me().into());
        }
    }
}

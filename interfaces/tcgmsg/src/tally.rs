//! What has gone and come, for `STATS`, and lines about it, for `SETDBG`.

use crate::place::{me, seconds, size};
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Written by one thread only.
#[derive(Default)]
struct Traffic {
    messages: AtomicU64,
    bytes: AtomicU64,
}

impl Traffic {
    #[inline]
    fn add(&self, bytes: usize) {
        let add = |to: &AtomicU64, more: u64| to.store(to.load(Ordering::Relaxed) + more, Ordering::Relaxed);
        add(&self.messages, 1);
        add(&self.bytes, bytes as u64);
    }

    fn read(&self) -> (u64, u64) {
        (self.messages.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}

/// Of each process: what has gone there, and what has come from there.
static ALL: OnceLock<Vec<[Traffic; 2]>> = OnceLock::new();
static SHOWS: AtomicBool = AtomicBool::new(false);

pub fn begin(processes: u32) {
    let _ = ALL.set((0..processes).map(|_| Default::default()).collect());
}

#[inline]
fn add(node: u32, column: usize, bytes: usize) {
    if let Some(tally) = ALL.get().and_then(|all| all.get(node as usize)) {
        tally[column].add(bytes);
    }
}

#[inline]
pub fn sent(to: u32, bytes: usize) {
    add(to, 0, bytes);
}

#[inline]
pub fn received(from: u32, bytes: usize) {
    add(from, 1, bytes);
}

/// Prints what has gone and come so far.
pub fn print() {
    // SAFETY: may be called at any time; what the program has written comes before what we write.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    let mut text = format!(
        "Communication statistics for node {} after {:.2} s\n\
         node      sent   kbytes  received   kbytes\n",
        me(),
        seconds()
    );
    for (node, of) in ALL.get().into_iter().flatten().enumerate().filter(|(node, _)| *node as u32 != me()) {
        let [(sent, bytes_sent), (received, bytes_received)] = [of[0].read(), of[1].read()];
        text += &format!("{node:4} {sent:9} {:8} {received:9} {:8}\n", bytes_sent >> 10, bytes_received >> 10);
    }
    // A closed output is the program's own affair.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

pub fn set_shows(shows: bool) {
    SHOWS.store(shows, Ordering::Relaxed);
}

/// Says what passes, if the program has asked for it.
#[inline]
pub fn show(call: &str, kind: i32, node: u32, bytes: usize) {
    if SHOWS.load(Ordering::Relaxed) {
        say(call, kind, node, bytes);
    }
}

#[cold]
fn say(call: &str, kind: i32, node: u32, bytes: usize) {
    eprintln!("{:3} of {}: {call} node={node}, type={kind}, bytes={bytes}", me(), size());
}

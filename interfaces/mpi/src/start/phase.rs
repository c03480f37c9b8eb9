//! Where the process is between start and end, and how it ends early: what all rooms may ask.

use crate::abi::{THREAD_FUNNELED, THREAD_MULTIPLE, THREAD_SERIALIZED, THREAD_SINGLE};
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, Ordering};

pub(super) const BEFORE: u8 = 0;
pub(super) const RUNNING: u8 = 1;
pub(super) const ENDED: u8 = 2;

/// Where the world is.
pub(super) static PHASE: AtomicU8 = AtomicU8::new(BEFORE);
/// The world, while it is running, and the sessions. Changes under the lock of the membership only.
pub(super) static USERS: AtomicU32 = AtomicU32::new(0);
pub(super) static THREAD_LEVEL: AtomicI32 = AtomicI32::new(0);
pub(super) static RANK: AtomicI32 = AtomicI32::new(-1);
/// How many processes the job has, once it is joined.
static SIZE: AtomicU32 = AtomicU32::new(0);
/// The process that joined the job; a forked copy of it has another number.
pub(super) static PROCESS: AtomicU32 = AtomicU32::new(0);

/// The process has joined its job.
pub(super) fn note_joined(rank: u32, size: u32) {
    RANK.store(rank as i32, Ordering::Relaxed);
    SIZE.store(size, Ordering::Relaxed);
    PROCESS.store(std::process::id(), Ordering::Relaxed);
}

/// How many processes the job has.
pub(crate) fn size() -> u32 {
    SIZE.load(Ordering::Relaxed)
}

/// Whether there are users: between `MPI_Init` and `MPI_Finalize`, and while there are sessions.
#[inline]
pub fn is_running() -> bool {
    USERS.load(Ordering::Relaxed) != 0
}

/// The world is between `MPI_Init` and `MPI_Finalize`.
pub(super) fn has_world() -> bool {
    PHASE.load(Ordering::Relaxed) == RUNNING
}

/// Whether this is a forked copy of the process that joined the job.
pub(super) fn is_copy() -> bool {
    std::process::id() != PROCESS.load(Ordering::Relaxed)
}

/// The error handler that ends the job, as the launcher is told.
pub(crate) const FATAL: &str = "MPI_ERRORS_ARE_FATAL";

/// Prints one line that says who and why, and ends the job. The launcher is told which error handler does so, and
/// nothing of `MPI_Abort`.
#[cold]
pub fn abort_with(code: i32, line: &str, handler: &str) -> ! {
    match RANK.load(Ordering::Relaxed) {
        -1 => eprintln!("weft: {line}"),
        rank => eprintln!("weft: rank {rank}: {line}"),
    }
    abort(code, handler)
}

/// Ends this process alone, with the exit code that an abort has.
pub fn end_process(code: i32) -> ! {
    // SAFETY: may be called at any time; output that the program has written so far is not lost.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    // SAFETY: ends the process, in whatever state it is.
    unsafe { libc::_exit(status_of(code)) }
}

/// The low eight bits, 1 if those are zero.
fn status_of(code: i32) -> i32 {
    if code & 0xff == 0 { 1 } else { code & 0xff }
}

/// Ends the job with this exit code (its low eight bits, 1 if those are zero). Who started the job ends the other
/// ranks.
fn abort(code: i32, handler: &str) -> ! {
    let status = status_of(code);
    // SAFETY: may be called at any time; output that the program has written so far is not lost.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    weft_fabric::abort(status, handler)
}

/// The thread level as `MPI_INFO_ENV` names it.
pub(crate) fn thread_level_name() -> Option<&'static str> {
    has_world().then(|| level_name(THREAD_LEVEL.load(Ordering::Relaxed)))
}

/// The thread levels and their names in info objects.
const LEVELS: [(i32, &str); 4] = [
    (THREAD_SINGLE, "MPI_THREAD_SINGLE"),
    (THREAD_FUNNELED, "MPI_THREAD_FUNNELED"),
    (THREAD_SERIALIZED, "MPI_THREAD_SERIALIZED"),
    (THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE"),
];

/// The name of a thread level in info objects.
pub(crate) fn level_name(level: i32) -> &'static str {
    LEVELS.iter().find(|known| known.0 == level).map_or("MPI_THREAD_MULTIPLE", |known| known.1)
}

/// The thread level of this name.
pub(crate) fn level_of_name(name: &str) -> Option<i32> {
    LEVELS.iter().find(|known| known.1 == name).map(|known| known.0)
}

//! Whether calls are allowed now, in one word that the short way asks; and numbers of ports.

use crate::error::{ErrorKind, NativeError, Result};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use weft_ports::Peer;

/// A port's number in its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortNumber(pub u32);

/// How many processes this one knows, those of other jobs among them; 0 while no call is allowed without a closer look.
static ALLOWED: AtomicU32 = AtomicU32::new(0);
/// The same, also while a handler runs.
static KNOWN: AtomicU32 = AtomicU32::new(0);
static ME: AtomicU32 = AtomicU32::new(0);
/// Processes of the job.
static SIZE: AtomicU32 = AtomicU32::new(0);
/// The thread that runs a handler.
static HANDLING: AtomicUsize = AtomicUsize::new(0);

/// Whether calls are allowed.
///
/// # Errors
/// The process is no part of a job, or this thread is inside a handler.
#[inline]
pub fn allowed() -> Result<()> {
    if ALLOWED.load(Ordering::Relaxed) != 0 { Ok(()) } else { look().map(drop) }
}

/// Whether there is such a process.
///
/// # Errors
/// As [`allowed`], or there is none.
#[inline]
pub fn known(process: Peer) -> Result<()> {
    if process.0 < ALLOWED.load(Ordering::Relaxed) { Ok(()) } else { look_for(process) }
}

/// How many processes this one knows, which a handler may ask, too.
///
/// # Errors
/// The process is no part of a job.
pub fn joined() -> Result<u32> {
    let known = KNOWN.load(Ordering::Relaxed);
    if known == 0 {
        let text = "the process is not in a job: weft_init comes first, and nothing after weft_finish";
        return Err(NativeError::new(ErrorKind::State, text));
    }
    Ok(known)
}

#[cold]
fn look() -> Result<u32> {
    let known = joined()?;
    if HANDLING.load(Ordering::Relaxed) == thread() {
        return Err(NativeError::new(ErrorKind::State, "a handler can do nothing but weft_reply"));
    }
    Ok(known)
}

#[cold]
fn look_for(process: Peer) -> Result<()> {
    let known = look()?;
    if process.0 < known {
        return Ok(());
    }
    let text = format!("there is no process {}; they are 0 to {}", process.0 as i32, known - 1);
    Err(NativeError::new(ErrorKind::Process, text))
}

/// What tells this thread from others, without asking the system.
fn thread() -> usize {
    thread_local! {
        static PLACE: u8 = const { 0 };
    }
    PLACE.with(|place| std::ptr::from_ref(place) as usize)
}

pub fn me() -> Peer {
    Peer(ME.load(Ordering::Relaxed))
}

/// Processes of the job.
pub fn size() -> u32 {
    SIZE.load(Ordering::Relaxed)
}

/// The process is in a job: which it is there, and of how many.
pub fn begin(me: Peer, size: u32) {
    ME.store(me.0, Ordering::Relaxed);
    SIZE.store(size, Ordering::Relaxed);
    set_known(size);
}

/// The process knows so many from now on: none once it has left.
pub fn set_known(count: u32) {
    KNOWN.store(count, Ordering::Relaxed);
    ALLOWED.store(count, Ordering::Relaxed);
}

/// The process knows this one, too.
pub fn add_known(process: Peer) {
    set_known(KNOWN.load(Ordering::Relaxed).max(process.0 + 1));
}

/// As long as it lives, this thread is inside a handler.
pub struct InHandler(());

impl InHandler {
    pub fn new() -> Self {
        HANDLING.store(thread(), Ordering::Relaxed);
        ALLOWED.store(0, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for InHandler {
    fn drop(&mut self) {
        // It would unwind through receives that are under way, whose memory it frees.
        if std::thread::panicking() {
            std::process::abort();
        }
        HANDLING.store(0, Ordering::Relaxed);
        ALLOWED.store(KNOWN.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

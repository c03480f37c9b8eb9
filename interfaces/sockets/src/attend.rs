//! Answering a peer that wants its bytes back in the kernel while this program is busy with something else.
//!
//! A peer that hands its descriptor to somebody who bypasses us needs the bytes that it has not read: only their sender
//! can send them again. A sender that is inside one of our calls sees the wish. One that computes, or waits for something
//! else, is sent a signal that means nothing to programs (`SIGURG`; ignored by default, and so harmless where nobody
//! handles it). A program that handles that signal itself keeps it, and answers with its next call.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::conn::{self, ATTACHED, STALE_IN_SETS};
use super::table::{self, Entry};
use super::{epoll, raw, real, wait};

const SIGNAL: c_int = libc::SIGURG;

static INSTALLED: AtomicBool = AtomicBool::new(false);
/// How often the signal came.
static CALLS: AtomicU32 = AtomicU32::new(0);
/// A connection has gone back to the kernel, and the epoll sets do not know it yet.
static STALE: AtomicBool = AtomicBool::new(false);

/// From the first attached connection on the signal is answered, unless the program has a use for it.
pub fn begin() {
    if INSTALLED.swap(true, Ordering::Relaxed) || raw::signal_action(SIGNAL).is_none_or(|(handler, _)| handler > 1) {
        return;
    }
    // SAFETY: zeros are an action with an empty mask; the handler keeps to what a handler may do.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
        real::sigaction(SIGNAL, (&raw const action).cast(), std::ptr::null_mut());
    }
}

/// Whether this action of a signal is ours.
pub fn is_ours(signal: c_int, handler: usize) -> bool {
    signal == SIGNAL && handler == on_signal as *const () as usize
}

/// Calls a process.
pub fn call(process: c_int) {
    raw::kill(process, SIGNAL);
}

/// How often this process was called; a wait that was interrupted by nothing else goes on.
pub fn calls() -> u32 {
    CALLS.load(Ordering::SeqCst)
}

extern "C" fn on_signal(_: c_int) {
    let _errno = raw::KeepErrno::new();
    CALLS.fetch_add(1, Ordering::SeqCst);
    for (fd, entry) in table::entries(0, c_int::MAX) {
        if let Entry::Connection(_) = entry
            && let Some(held) = conn::hold(fd)
            && held.state_now() == ATTACHED
            && wait::answer(&held, fd)
        {
            // The interrupted thread may be inside a set: its locks are not for us.
            held.set_flag(STALE_IN_SETS);
            STALE.store(true, Ordering::SeqCst);
        }
    }
}

/// Tells the epoll sets what changed in a signal handler.
pub fn catch_up() {
    if !STALE.load(Ordering::Relaxed) || !STALE.swap(false, Ordering::SeqCst) {
        return;
    }
    for (fd, entry) in table::entries(0, c_int::MAX) {
        if let Entry::Connection(_) = entry
            && let Some(held) = conn::hold(fd)
            && held.take_flag(STALE_IN_SETS)
        {
            epoll::refresh(&held);
        }
    }
}

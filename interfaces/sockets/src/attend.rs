//! Answering a peer that wants its bytes back in the kernel while this program is busy with something else.
//!
//! A peer that hands its descriptor to somebody who bypasses us needs the bytes that it has not read: only their sender
//! can send them again. A sender that is inside one of our calls sees the wish. One that computes, or waits for
//! something else, is sent a signal that means nothing to programs (`SIGURG`; ignored by default, and so harmless where
//! nobody handles it). A program that handles that signal itself keeps it, and answers with its next call.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use libc::ssize_t;

use super::conn::{self, ATTACHED, STALE_IN_SETS};
use super::table::{self, Entry};
use super::{epoll, raw, real, signals, wait};

const SIGNAL: c_int = libc::SIGURG;

static INSTALLED: AtomicBool = AtomicBool::new(false);
/// A connection has gone back to the kernel, and the epoll sets do not know it yet.
static STALE: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// How often the signal has interrupted a wait of this thread. Nothing to be dropped, nothing to be initialised.
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// From the first attached connection on the signal is answered, unless the program has a use for it.
pub fn begin() {
    if INSTALLED.swap(true, Ordering::Relaxed) || raw::signal_action(SIGNAL).is_none_or(|(handler, _)| handler > 1) {
        return;
    }
    // SAFETY: zeros are a valid action; the handler keeps to what a handler may do.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        // No other handler runs on top of ours: what it interrupts would be a wait that has ended already.
        libc::sigfillset(&mut action.sa_mask);
        action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK | libc::SA_SIGINFO;
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

/// How often a wait of this thread has ended for our signal and nothing else; such a wait goes on.
pub fn calls() -> u32 {
    CALLS.with(Cell::get)
}

/// A wait of the program that concerns no connection of ours, and that every handler ends: goes on after our signal.
/// `wait` is called again with what is left of `whole` nanoseconds (`None` for ever).
pub fn undisturbed(whole: Option<u64>, mut wait: impl FnMut(Option<u64>) -> c_int) -> c_int {
    if !INSTALLED.load(Ordering::Relaxed) {
        return wait(whole);
    }
    let deadline = whole.map(|ns| raw::now_ns().saturating_add(ns));
    let mut left = whole;
    loop {
        let before = calls();
        let answer = wait(left);
        if answer != -1 || raw::errno() != libc::EINTR || calls() == before {
            return answer;
        }
        left = wait::left_ns(deadline);
    }
}

/// A data call of the program that the kernel answers: goes on after our signal, which ends those that have the time
/// limit `limit`, and only those.
#[inline]
pub fn undisturbed_call(fd: c_int, limit: c_int, call: impl Fn() -> ssize_t) -> ssize_t {
    let before = calls();
    let answer = call();
    if answer == -1 && calls() != before { call_again(fd, limit, call) } else { answer }
}

#[cold]
fn call_again(fd: c_int, limit: c_int, call: impl Fn() -> ssize_t) -> ssize_t {
    if raw::errno() != libc::EINTR {
        return -1;
    }
    let none = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let time = raw::option(fd, libc::SOL_SOCKET, limit, none).unwrap_or(none);
    let limit_ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    if limit_ns == 0 {
        raw::set_errno(libc::EINTR);
        return -1;
    }
    let end = raw::now_ns().saturating_add(limit_ns);
    loop {
        let before = calls();
        let answer = call();
        if answer != -1 || raw::errno() != libc::EINTR || calls() == before {
            return answer;
        }
        if raw::now_ns() > end {
            raw::set_errno(libc::EAGAIN);
            return -1;
        }
    }
}

/// Whether the interrupted thread was in a wait of the kernel, which answers EINTR for our signal and no other. (Where
/// the handler of another signal is about to run, that is what was interrupted; or it waits until we have returned.)
fn has_ended_a_wait(context: *const c_void) -> bool {
    const ENDED: i64 = -(libc::EINTR as i64);
    // SAFETY: the kernel hands the thread's registers, and its signal mask of 8 bytes, to a handler of this kind.
    let (answer, blocked) = unsafe {
        let context = &*context.cast::<libc::ucontext_t>();
        #[cfg(target_arch = "x86_64")]
        let answer = context.uc_mcontext.gregs[libc::REG_RAX as usize];
        #[cfg(target_arch = "aarch64")]
        let answer = context.uc_mcontext.regs[0] as i64;
        (answer, (&raw const context.uc_sigmask).cast::<u64>().read_unaligned())
    };
    answer == ENDED && !signals::has_handlers(raw::pending_signals() & !blocked)
}

extern "C" fn on_signal(_: c_int, _: *const c_void, context: *const c_void) {
    let _errno = raw::KeepErrno::new();
    if has_ended_a_wait(context) {
        CALLS.with(|calls| calls.set(calls.get().wrapping_add(1)));
    }
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

//! Whether a sleep that a signal handler interrupted goes on.
//!
//! The kernel restarts a blocking `recv` after a handler that was installed with `SA_RESTART`, but never the `ppoll` in
//! which we sleep for it, and nobody tells which handler has run. So: while all handlers of the process are of one
//! kind, that kind decides. Where both kinds are installed, the sleep is done with signals blocked and a signal
//! descriptor beside the others, so that what is pending can be looked at before it is let through.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU8, Ordering};

use libc::pollfd;

use super::raw::{self, Errno};
use super::{attend, real};

const UNKNOWN: u8 = 0;
const RESTART: u8 = 1;
const INTERRUPT: u8 = 2;
const MIXED: u8 = 3;
static PICTURE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slept {
    /// Something is ready, or it is time to look.
    Woken,
    TimedOut,
    /// A handler has run that interrupts the call.
    Interrupted,
    /// Another thread has closed the descriptor: its number may be another file's by now.
    Closed,
}

/// The program has changed how it treats a signal.
pub fn changed() {
    PICTURE.store(UNKNOWN, Ordering::SeqCst);
}

fn has_handler(signal: c_int) -> Option<bool> {
    let (handler, flags) = raw::signal_action(signal)?;
    (handler > 1 && !attend::is_ours(signal, handler)).then_some(flags & libc::SA_RESTART as u64 != 0)
}

/// Whether the program handles any of these signals, one bit each.
pub fn has_handlers(set: u64) -> bool {
    set != 0 && signals().any(|signal| set & 1 << (signal - 1) != 0 && has_handler(signal).is_some())
}

/// All signals but those that the C library keeps for itself.
fn signals() -> impl Iterator<Item = c_int> {
    (1..=64).filter(|signal| !matches!(signal, 32 | 33))
}

fn picture() -> u8 {
    let known = PICTURE.load(Ordering::SeqCst);
    if known != UNKNOWN {
        return known;
    }
    let (mut restarts, mut interrupts) = (false, false);
    for restart in signals().filter_map(has_handler) {
        restarts |= restart;
        interrupts |= !restart;
    }
    let seen = match (restarts, interrupts) {
        (_, false) => RESTART,
        (false, true) => INTERRUPT,
        (true, true) => MIXED,
    };
    PICTURE.store(seen, Ordering::SeqCst);
    seen
}

/// Sleeps on `fds` as a call that the kernel would restart. The last place of `fds` is free for our use.
pub fn sleep(fds: &mut [pollfd], timeout_ns: Option<u64>, restartable: bool) -> Slept {
    let (last, others) = match fds.split_last_mut() {
        Some(parts) => parts,
        None => return Slept::Woken,
    };
    if !restartable {
        return poll(others, timeout_ns, false);
    }
    match picture() {
        RESTART => poll(others, timeout_ns, true),
        INTERRUPT => poll(others, timeout_ns, false),
        _ => {
            // Made for this sleep: one that is kept could be the program's by now, and cannot be told from it.
            let Some(signal) = raw::signal_descriptor() else { return poll(others, timeout_ns, true) };
            let signal = SignalDescriptor(signal);
            *last = pollfd { fd: signal.0, events: libc::POLLIN, revents: 0 };
            poll_exactly(fds, timeout_ns)
        }
    }
}

fn poll(fds: &mut [pollfd], timeout_ns: Option<u64>, restart: bool) -> Slept {
    let calls = attend::calls();
    match poll_cancellable(fds, timeout_ns, std::ptr::null()) {
        Ok(0) => Slept::TimedOut,
        Err(libc::EINTR) if attend::calls() != calls => Slept::Woken,
        Err(libc::EINTR) if !restart => Slept::Interrupted,
        _ => Slept::Woken,
    }
}

/// A call that finds all in shared memory never comes to where the C library would end a cancelled thread. It ends
/// here; nothing may be held that is not given back by dropping it.
#[inline]
pub fn may_be_cancelled() {
    // SAFETY: no arguments; where it does not return it unwinds, as any call of the C library here may.
    unsafe { real::pthread_testcancel() }
}

/// The C library's own call, in which a thread can be cancelled.
pub fn poll_cancellable(
    fds: &mut [pollfd],
    timeout_ns: Option<u64>,
    mask: *const libc::sigset_t,
) -> Result<usize, Errno> {
    let _errno = raw::KeepErrno::new();
    let time = timeout_ns.map(raw::timespec_of);
    let time = time.as_ref().map_or(std::ptr::null(), |time| time as *const libc::timespec);
    // SAFETY: slice, time and mask live across the call.
    let ready = unsafe { real::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, time, mask) };
    if ready < 0 { Err(raw::errno()) } else { Ok(ready as usize) }
}

/// A descriptor of ours, closed also where the thread is cancelled.
struct SignalDescriptor(c_int);

impl Drop for SignalDescriptor {
    fn drop(&mut self) {
        raw::close(self.0);
    }
}

/// All signals are blocked until it is dropped, also where the thread is cancelled. Not those of the C library: by them
/// a thread is cancelled, and takes over the user that another thread has set.
struct BlockedSignals(u64);

impl BlockedSignals {
    fn all() -> Self {
        let all = signals().fold(0, |mask, signal| mask | 1 << (signal - 1));
        Self(raw::signal_mask(all))
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        raw::signal_mask(self.0);
    }
}

/// With signals blocked: what is pending afterwards is what will be handled when they are let through again.
fn poll_exactly(fds: &mut [pollfd], timeout_ns: Option<u64>) -> Slept {
    let blocked = BlockedSignals::all();
    let ready = poll_cancellable(fds, timeout_ns, std::ptr::null());
    let pending = raw::pending_signals() & !blocked.0;
    let due = |signal: &c_int| pending & 1 << (signal - 1) != 0;
    let interrupted = signals().filter(due).filter_map(has_handler).any(|restarts| !restarts);
    drop(blocked);
    match ready {
        _ if interrupted => Slept::Interrupted,
        Ok(0) => Slept::TimedOut,
        _ => Slept::Woken,
    }
}

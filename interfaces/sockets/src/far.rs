//! Connections to other hosts. They are the kernel's; but a thread that has sent something on one, and would sleep next,
//! looks for the answer first: a wake-up takes some ten times as long as the way of a byte from host to host.
//!
//! A look moves no byte and takes none: what the program gets, it gets by its own call, which the kernel answers. So
//! nothing has to be known of the other end, and nothing handed back.

use std::cell::Cell;
use std::ffi::c_int;

use libc::{MSG_DONTWAIT, MSG_ERRQUEUE, MSG_OOB, O_NONBLOCK, POLLIN, POLLRDHUP, pollfd};
use weft_fabric::stream::Reason;

use super::conn::{self, FAR, Held, NEVER};
use super::raw::Errno;
use super::table::{self, Entry};
use super::{pace, raw, settings, wait};

/// Longer lists are not looked at: one look would take as long as a sleep.
const FEW: usize = 16;

thread_local! {
    /// This thread has sent on such a connection, and has not waited since. Nothing to be dropped.
    static AWAITS: Cell<bool> = const { Cell::new(false) };
}

/// The connection stays with the kernel for this reason: perhaps because it leads to another host.
pub fn note(held: &Held, fd: c_int, reason: Reason) {
    if reason == Reason::NotLocal && super::kernel_counts::leads_elsewhere(fd) {
        held.set_flag(FAR);
    }
}

/// Before a sending call on a connection that is the kernel's.
#[inline]
pub fn before_send(held: &Held) {
    if held.has_flag(FAR) {
        AWAITS.with(|awaits| awaits.set(true));
    }
}

/// Whether a wait of so long is worth looking before: once after each send. Nobody is kept longer than he wants to wait,
/// and who waits too shortly leaves the looking to the next wait.
fn is_worth_it(timeout_ns: Option<u64>) -> bool {
    let longest = settings::spin_bound_ns().0;
    longest > 0 && timeout_ns.is_none_or(|ns| ns > longest) && AWAITS.with(|awaits| awaits.replace(false))
}

/// Before a receiving call on a connection that is the kernel's: looks, if the call may sleep.
#[inline]
pub fn before_receive(held: &Held, fd: c_int, flags: c_int) {
    if held.has_flag(FAR) && flags & (MSG_DONTWAIT | MSG_OOB | MSG_ERRQUEUE) == 0 {
        look_before_sleep(held, fd);
    }
}

#[cold]
fn look_before_sleep(held: &Held, fd: c_int) {
    // A call that does not wait leaves the looking to the wait that follows.
    let waits = || raw::fcntl(fd, libc::F_GETFL, 0).is_ok_and(|flags| flags & O_NONBLOCK as usize == 0);
    let there = || !wait::is_open(held, fd) || raw::poll_one(fd, POLLIN | POLLRDHUP) != 0;
    if AWAITS.with(Cell::get) && waits() && is_worth_it(None) {
        pace::spin_far(there);
    }
}

/// Before a wait for descriptors that are the kernel's: looks, if an answer is awaited on one of them, by calls of `poll`
/// that take no time and let in the signals that the wait does. What such a call has found is the answer of the wait; it is
/// not asked for again.
pub fn before_poll(
    fds: &mut [pollfd],
    timeout_ns: Option<u64>,
    mut poll: impl FnMut(&mut [pollfd]) -> Result<usize, Errno>,
) -> Option<Result<usize, Errno>> {
    let awaited = |one: &pollfd| one.events & POLLIN != 0 && is_far(one.fd);
    if fds.len() > FEW || !fds.iter().any(awaited) || !is_worth_it(timeout_ns) {
        return None;
    }
    let mut answer = Ok(0);
    pace::spin_far(|| {
        answer = poll(fds);
        answer != Ok(0)
    });
    (answer != Ok(0)).then_some(answer)
}

/// Before a wait on a set whose members are the kernel's: `look` answers whether there is something.
pub fn before_set_wait(timeout_ns: Option<u64>, look: impl FnMut() -> bool) {
    if is_worth_it(timeout_ns) {
        pace::spin_far(look);
    }
}

fn is_far(fd: c_int) -> bool {
    matches!(table::entry(fd), Some(Entry::Connection(_)))
        && conn::hold(fd).is_some_and(|held| held.has_flag(FAR) && held.state_now() == NEVER)
}

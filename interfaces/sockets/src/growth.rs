//! When a ring grows: the receiver does not read, and the kernel would take more.
//!
//! Who sends to one that reads is better off with a small ring, which stays in the caches. So a full ring is watched for as
//! long as a receiver that reads would take to make room, and grows where nothing happens. Who can sleep does so for a
//! while instead.

use std::ffi::c_int;

use libc::{SO_SNDBUF, SOL_SOCKET};
use weft_fabric::stream::{SendGuard, SendRoute, Stream, Writable};

use super::raw;

/// A receiver that is about to read takes some kilobytes in less than this.
const WATCH_NS: u64 = 20_000;
/// So long one who may sleep waits for that first.
pub const WAIT_NS: u64 = 1_000_000;

/// Whether the ring is full and could grow.
pub fn is_due(stream: &Stream) -> bool {
    !stream.is_far() && stream.writable() == Writable::Full && !stream.has_grown()
}

/// For a call that may not wait and finds the ring full. Whether there is room now.
#[cold]
pub fn at_once(guard: &mut SendGuard, stream: &Stream, fd: c_int) -> bool {
    if stream.is_far() || guard.is_nested() || stream.has_grown() {
        return false;
    }
    guard.publish();
    let (taken, end) = (stream.consumed(), raw::now_ns() + WATCH_NS);
    while raw::now_ns() < end {
        if stream.consumed() != taken {
            return false;
        }
        std::hint::spin_loop();
    }
    grow(guard, fd)
}

/// As the kernel counts: what it would keep for the sender, besides what waits at the receiver.
fn grow(guard: &mut SendGuard, fd: c_int) -> bool {
    let kept = raw::option(fd, SOL_SOCKET, SO_SNDBUF, 0 as c_int).unwrap_or(0);
    guard.grow(kept.max(0) as u64)
}

/// For one who waits for room, before a sleep and now and then during it.
#[cold]
pub fn for_waiter(stream: &Stream, fd: c_int) {
    if is_due(stream) {
        let mut guard = stream.lock_send();
        if guard.route() == SendRoute::Ring && at_once(&mut guard, stream, fd) {
            drop(guard);
            stream.rouse_senders();
        }
    }
}

/// For a call that has slept since so many bytes were taken. False: nothing was, and it could not grow.
#[cold]
pub fn after_sleep(stream: &Stream, fd: c_int, taken: u64) -> bool {
    if stream.consumed() != taken || !is_due(stream) {
        return true;
    }
    let mut guard = stream.lock_send();
    guard.is_nested() || guard.route() != SendRoute::Ring || grow(&mut guard, fd)
}

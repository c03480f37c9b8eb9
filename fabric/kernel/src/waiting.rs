//! Time, sleep and barriers.

use crate::system_call;
use std::io;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Nanoseconds of the monotonic clock: the one clock of the fabric. The C library answers without a system call.
pub fn now() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid place for the answer; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// A time as the kernel takes it.
pub fn timespec_of(time: Duration) -> libc::timespec {
    let seconds = libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX);
    libc::timespec { tv_sec: seconds, tv_nsec: time.subsec_nanos().into() }
}

/// Sleeps while the word holds `expected`, at most for `limit`. Ends early at times, and at signals.
pub fn futex_wait(word: &AtomicU32, expected: u32, limit: Option<Duration>) {
    let limit = limit.map(timespec_of);
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: word and limit live across the call; the kernel only reads both.
    let _ = unsafe { system_call!(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, expected, limit) };
}

/// Wakes at most so many of those who sleep on the word.
pub fn futex_wake(word: &AtomicU32, count: i32) {
    // SAFETY: the kernel uses the address only as a key.
    let _ = unsafe { system_call!(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, count) };
}

/// Hands the core to another runnable process, if there is one.
pub fn yield_core() {
    // SAFETY: no arguments.
    let _ = unsafe { system_call!(libc::SYS_sched_yield) };
}

/// Registers this process as one whose running threads [`barrier`]s of others must order.
///
/// # Errors
/// The kernel has no such thing, or refuses it.
pub fn register_for_barriers() -> io::Result<()> {
    const REGISTER_GLOBAL_EXPEDITED: i32 = 1 << 2;
    // SAFETY: no memory.
    unsafe { system_call!(libc::SYS_membarrier, REGISTER_GLOBAL_EXPEDITED, 0) }.map(drop)
}

/// A full barrier on every running thread of every registered process. Where registering has failed, senders fence, and
/// this is not relied upon.
pub fn barrier() {
    const GLOBAL_EXPEDITED: i32 = 1 << 1;
    // SAFETY: no memory.
    let _ = unsafe { system_call!(libc::SYS_membarrier, GLOBAL_EXPEDITED, 0) };
}

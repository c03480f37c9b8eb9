//! The first bytes of a connection: a large transfer must not be over, or lie in the kernel's buffers, before both ends
//! are attached.
//!
//! So many bytes count as a data call, and who sends more than a connection may carry before it is offered sends only that
//! much, and waits a little for the other end. The bytes that went wake that end; if it does not answer, a few more go, and
//! after some of these waits the kernel has its way. That takes some milliseconds at most, once per connection, and where it
//! was in vain on some connections of a service it is hardly tried on its next ones.
//!
//! A call that does not block pauses here for a millisecond at most, and once. Afterwards the kernel takes what it has room for: a
//! program may rely on that a first send goes at once.
//!
//! Where the other end is idle in this very process, it does not come while we wait: the thread that pauses may be the one
//! that would read.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

use weft_fabric::stream::SendRoute;

use super::conn::{self, ACCEPTED, ATTACHED, Connection, FAR, FRESH, GRANTED, Held, NEVER, OFFERED};
use super::table::{self, Entry};
use super::{kernel_counts, meet, raw, settings};

/// As many bytes count as a data call.
const BYTES_OF_A_CALL: u64 = 4 << 10;
/// Where a connection is not to be held back (any more).
pub const UNBOUNDED: u64 = u64::MAX;

/// Pauses on one connection, how long the first ones are, and how many bytes go after one in vain.
const PAUSES: u32 = 16;
const SHORT_PAUSES: u32 = 4;
const SHORT_NS: u64 = 300_000;
/// The others, and those where the other end is known to be one of us: it may be busy, or not have begun.
const LONG_NS: u64 = 1_000_000;
const KNOWN_NS: u64 = 4_000_000;
const NAP_NS: u64 = 20_000;
/// A call that does not block hardly sleeps.
const FEW_NAPS: u64 = 6;
const PROD: u64 = 4 << 10;
/// In a process with more connections its other end is not looked for everywhere.
const MOST_LOOKED_AT: usize = 256;

/// Connections of a service that paused in vain, one after the other, before its next ones do not; after so many of those,
/// and then after twice as many each time, one tries again.
const VAIN: u32 = 3;
const TRY_AFTER: u32 = 256;
/// The last connection of the service went by the ring.
const KNOWN: u32 = 1 << 31;

/// By port: for how many of its last connections nobody came, or [`KNOWN`].
static IN_VAIN: [AtomicU32; 256] = [const { AtomicU32::new(0) }; 256];

fn in_vain(held: &Connection) -> &'static AtomicU32 {
    &IN_VAIN[held.service.load(Ordering::Relaxed) as usize % IN_VAIN.len()]
}

/// A connection of this service goes by the ring.
pub fn worked(conn: &Connection) {
    if conn.has_flag(FAR) {
        return;
    }
    let word = in_vain(conn);
    if word.load(Ordering::Relaxed) != KNOWN {
        word.store(KNOWN, Ordering::Relaxed);
    }
}

/// How many bytes are worth as much as the calls after which a connection is offered.
pub fn bytes_before_offer() -> u64 {
    match settings::attach_calls() {
        u32::MAX => UNBOUNDED,
        calls => u64::from(calls) * BYTES_OF_A_CALL,
    }
}

/// Whether enough was moved, or is about to be moved, that the connection is offered.
pub fn is_much(conn: &Connection, more: usize) -> bool {
    let moved = conn.sent.load(Ordering::Relaxed).wrapping_add(conn.received.load(Ordering::Relaxed));
    moved.saturating_add(more as u64) >= bytes_before_offer()
}

/// Whether a send of `bytes` on this connection, which is not attached, is to be made in parts.
#[inline]
pub fn applies(held: &Held, bytes: usize) -> bool {
    let up_to = held.up_to.load(Ordering::Relaxed);
    up_to != UNBOUNDED && held.sent.load(Ordering::Relaxed).saturating_add(bytes as u64) > up_to && {
        let state = held.state_now();
        state != NEVER && state != ATTACHED
    }
}

/// How many of `bytes` the kernel may carry now, after it has carried `sent`; 0: [`pause`] first.
#[inline]
pub fn allowance(held: &Held, sent: u64, bytes: usize) -> usize {
    match held.up_to.load(Ordering::Relaxed) {
        UNBOUNDED => bytes,
        up_to => bytes.min(up_to.saturating_sub(sent) as usize),
    }
}

/// Gives the other end a little time to come. Afterwards the connection is attached at both ends, or the kernel may carry
/// more. No lock is held.
#[cold]
pub fn pause(held: &Held, fd: c_int, may_wait: bool) {
    let _errno = raw::KeepErrno::new();
    let busy = held.state_now() == FRESH && meet::offer_now(held, fd);
    let first = held.pauses.load(Ordering::Relaxed) == 0;
    let waits = !held.has_flag(FAR)
        && (busy || matches!(held.state_now(), OFFERED | GRANTED | ATTACHED))
        && is_worth_it(held)
        && !(first && other_end_is_idle_here(held, fd));
    if !waits || wait(held, fd, may_wait) {
        held.up_to.store(UNBOUNDED, Ordering::Relaxed);
        return;
    }
    if held.pauses.fetch_add(1, Ordering::Relaxed) + 1 >= PAUSES {
        let word = in_vain(held);
        let vain = word.load(Ordering::Relaxed) & !KNOWN;
        word.store(vain + 1, Ordering::Relaxed);
        held.up_to.store(UNBOUNDED, Ordering::Relaxed);
    } else {
        held.up_to.fetch_add(PROD, Ordering::Relaxed);
    }
}

/// Whether the other end is a descriptor of this process that nobody uses at the moment, and that would not come by itself.
fn other_end_is_idle_here(held: &Held, fd: c_int) -> bool {
    let Some((here, there)) = kernel_counts::ends(fd) else { return false };
    let accepted = held.has_flag(ACCEPTED);
    let others = table::entries(0, c_int::MAX).filter_map(|(fd, entry)| match entry {
        Entry::Connection(index) if conn::at(index).has_flag(ACCEPTED) != accepted => Some((fd, index)),
        _ => None,
    });
    let other = others.take(MOST_LOOKED_AT).find(|(fd, _)| {
        kernel_counts::ends(*fd).is_some_and(|(its_here, its_there)| its_here == there && its_there == here)
    });
    other.is_some_and(|(_, index)| conn::at(index).is_idle() && conn::at(index).state_now() != ATTACHED)
}

/// Whether others of this service have come lately, or it is time to see.
fn is_worth_it(held: &Held) -> bool {
    let word = in_vain(held);
    let vain = word.load(Ordering::Relaxed);
    if !(VAIN..KNOWN).contains(&vain) || held.pauses.load(Ordering::Relaxed) > 0 {
        return true;
    }
    word.store((vain + 1).min(KNOWN - 1), Ordering::Relaxed);
    vain >= TRY_AFTER && vain.is_power_of_two()
}

fn pause_ns(held: &Held, may_wait: bool) -> u64 {
    if !may_wait {
        LONG_NS
    } else if held.pauses.load(Ordering::Relaxed) < SHORT_PAUSES {
        SHORT_NS
    } else if held.state_now() == OFFERED && in_vain(held).load(Ordering::Relaxed) != KNOWN {
        LONG_NS
    } else {
        KNOWN_NS
    }
}

/// Whether both ends were attached in time.
fn wait(held: &Held, fd: c_int, may_wait: bool) -> bool {
    // What the kernel holds back to fill a packet would not wake anybody.
    kernel_counts::push(fd);
    let start = raw::now_ns();
    let nap = if may_wait { NAP_NS } else { LONG_NS / FEW_NAPS };
    loop {
        if meet::before_call(held, fd) && may_switch(held) {
            return true;
        }
        if raw::now_ns() >= start + pause_ns(held, may_wait) {
            return false;
        }
        let aside = held.step_aside();
        let slept = raw::poll(&mut [], Some(nap), None);
        drop(aside);
        if slept.is_err() {
            // A signal: its handler may have been waited for.
            return false;
        }
    }
}

fn may_switch(held: &Held) -> bool {
    let mut guard = held.stream().lock_send();
    guard.is_nested() || guard.route() != SendRoute::Kernel
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(up_to: u64) -> &'static Connection {
        use std::sync::Once;
        static START: Once = Once::new();
        START.call_once(|| assert!(crate::conn::start()));
        let conn = crate::conn::at(1000);
        conn.up_to.store(up_to, Ordering::Relaxed);
        conn
    }

    #[test]
    fn the_kernel_carries_the_first_bytes_only() {
        with(100);
        let held = crate::conn::hold_index(1000);
        assert_eq!([0, 60, 100, 200].map(|sent| allowance(&held, sent, 70)), [70, 40, 0, 0]);
        with(UNBOUNDED);
        assert_eq!(allowance(&held, 1 << 40, 70), 70);
        std::mem::forget(held);
    }

    #[test]
    fn a_service_whose_peers_never_come_is_tried_seldom() {
        with(0).service.store(77, Ordering::Relaxed);
        let held = crate::conn::hold_index(1000);
        in_vain(&held).store(VAIN, Ordering::Relaxed);
        let tried = (0..3 * TRY_AFTER).filter(|_| is_worth_it(&held)).count();
        assert_eq!(tried, 2);
        worked(&held);
        assert!(is_worth_it(&held));
        std::mem::forget(held);
    }
}

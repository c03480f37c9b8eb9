//! The first bytes of a connection: a large transfer must not be over, or lie in the kernel's buffers, before both ends
//! are attached; and what is over soon must not be moved at all, for that takes longer than the kernel does.
//!
//! So many bytes count as a data call, and who sends more than a connection may carry before it is offered sends only
//! that much, and waits a little for the other end. The bytes that went wake that end; if it does not answer, a few
//! more go, and after some of these waits the kernel has its way. That takes a millisecond or so, once per connection;
//! only where the other end is known to be one of us, longer. A call that must not block pauses once, and shortly:
//! then the kernel takes what it has room for, since a program may rely on that a first send goes at once.
//!
//! Each service (a port) keeps how many more of its connections were not worth it than were: nobody came, or the
//! connection ended before it had gone by the ring for as long as it had taken to come there. Each doubles what the
//! next ones have to move before they are offered, up to a limit, and after some they do not wait any more. Each that
//! was worth it takes one doubling back.
//!
//! Where the other end is idle in this very process, it does not come while we wait: the thread that pauses may be the
//! one that would read.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

use weft_fabric::stream::SendRoute;

use super::conn::{self, ACCEPTED, ATTACHED, Connection, FAR, FRESH, GRANTED, Hold, NEVER, OFFERED};
use super::table::{self, Entry};
use super::{kernel_counts, meet, raw, settings};

/// As many bytes count as a data call.
const BYTES_OF_A_CALL: u64 = 4 << 10;
/// Where a connection is not to be held back (any more).
pub const UNBOUNDED: u64 = u64::MAX;

// None of the times below decides what is right, only what a connection pays at most before it has its way, and which
// share of its first bytes the kernel carries. So they hold on any machine: a slower one moves more by the kernel, and
// pays no more.

/// Pauses on one connection: those for an end that may never come, and how many bytes go after one in vain. Together
/// 1.2 ms once in its life, which only one pays that is about to move much.
const PAUSES: u32 = 4;
const PAUSE_NS: u64 = 300_000;
/// Those where the other end is one of us for sure (it may be busy, or not have begun), or the calls must not block.
/// Each is no shorter than a slice of the kernel's scheduler, at most some 3 ms by default: where all cores are taken,
/// the other end may have had one by then. All of them are 64 ms, which a person does not notice.
const MOST_PAUSES: u32 = 16;
const SURE_NS: u64 = 4_000_000;
const NAP_NS: u64 = 20_000;
/// The one of a call that must not block, which hardly sleeps meanwhile. The least that a program can tell from no time
/// by the time-outs of `poll` and `epoll_wait`, which are whole milliseconds.
const BRIEF_NS: u64 = 1_000_000;
const BRIEF_NAPS: u64 = 6;
const PROD: u64 = 4 << 10;
/// In a process with more connections its other end is not looked for everywhere.
const MOST_LOOKED_AT: usize = 256;

/// So many connections of a service that were not worth it, and its next ones do not wait.
const VAIN: u32 = 3;
/// What a connection has to move is doubled so often at most: one that goes on for long comes to its ring all the same.
const MOST_DOUBLINGS: u32 = 4;

/// By port: how many more of its connections were not worth it than were.
static IN_VAIN: [AtomicU32; 256] = [const { AtomicU32::new(0) }; 256];

fn in_vain(held: &Connection) -> &'static AtomicU32 {
    &IN_VAIN[held.service.load(Ordering::Relaxed) as usize % IN_VAIN.len()]
}

/// A connection that was offered has ended; `by_ring`: it went by the ring for as long as it had taken to come there.
pub fn judge(conn: &Connection, by_ring: bool) {
    if conn.has_flag(FAR) {
        return;
    }
    let word = in_vain(conn);
    let vain = word.load(Ordering::Relaxed);
    word.store(if by_ring { vain.saturating_sub(1) } else { (vain + 1).min(MOST_DOUBLINGS) }, Ordering::Relaxed);
}

/// How many bytes are worth as much as the calls after which a connection is offered.
pub fn bytes_before_offer() -> u64 {
    match settings::attach_calls() {
        u32::MAX => UNBOUNDED,
        calls => u64::from(calls) * BYTES_OF_A_CALL,
    }
}

/// The same where the service is known.
fn bytes_of_service(conn: &Connection) -> u64 {
    bytes_before_offer().saturating_mul(1 << in_vain(conn).load(Ordering::Relaxed))
}

/// Whether this connection, which would be offered if nothing were known of its service, has moved enough, or is about
/// to.
#[cold]
pub fn is_enough(held: &Hold, fd: c_int, more: usize) -> bool {
    find_service(held, fd);
    let calls = settings::attach_calls().saturating_mul(1 << in_vain(held).load(Ordering::Relaxed));
    held.calls.load(Ordering::Relaxed) >= calls || moved(held).saturating_add(more as u64) >= bytes_of_service(held)
}

fn find_service(held: &Hold, fd: c_int) {
    if held.service.load(Ordering::Relaxed) == 0
        && let Some([ours, others]) = held.ports(fd)
    {
        let service = if held.has_flag(ACCEPTED) { ours } else { others };
        held.service.store(u32::from(service), Ordering::Relaxed);
    }
}

fn moved(conn: &Connection) -> u64 {
    conn.sent.load(Ordering::Relaxed).wrapping_add(conn.received.load(Ordering::Relaxed))
}

/// Whether so much was moved that the connection is offered where nothing is known of its service.
pub fn is_much(conn: &Connection) -> bool {
    moved(conn) >= bytes_before_offer()
}

/// Whether a send of `bytes` on this connection, which is not attached, is to be made in parts.
#[inline]
pub fn applies(held: &Hold, bytes: usize) -> bool {
    let up_to = held.up_to.load(Ordering::Relaxed);
    up_to != UNBOUNDED && held.sent.load(Ordering::Relaxed).saturating_add(bytes as u64) > up_to && {
        let state = held.state_now();
        state != NEVER && state != ATTACHED
    }
}

/// How many of `bytes` the kernel may carry now, after it has carried `sent`; 0: [`pause`] first.
#[inline]
pub fn allowance(held: &Hold, sent: u64, bytes: usize) -> usize {
    match held.up_to.load(Ordering::Relaxed) {
        UNBOUNDED => bytes,
        up_to => bytes.min(up_to.saturating_sub(sent) as usize),
    }
}

/// Gives the other end a little time to come before `more` bytes are sent. Afterwards the connection is attached at
/// both ends, or the kernel may carry more. No lock is held.
#[cold]
pub fn pause(held: &Hold, fd: c_int, more: usize, may_wait: bool) {
    let _errno = raw::KeepErrno::new();
    let mut busy = false;
    if held.state_now() == FRESH {
        if !is_enough(held, fd, more) {
            let left = bytes_of_service(held).saturating_sub(moved(held));
            held.up_to.store(held.sent.load(Ordering::Relaxed).saturating_add(left), Ordering::Relaxed);
            return;
        }
        busy = meet::offer_now(held, fd);
    }
    let first = held.pauses.load(Ordering::Relaxed) == 0;
    let waits = !held.has_flag(FAR)
        && (busy || matches!(held.state_now(), OFFERED | GRANTED | ATTACHED))
        && in_vain(held).load(Ordering::Relaxed) < VAIN
        && !(first && other_end_is_idle_here(held, fd));
    let is_over = !waits || wait(held, fd, may_wait);
    if is_over || held.pauses.fetch_add(1, Ordering::Relaxed) + 1 >= most_pauses(held, may_wait) {
        held.up_to.store(UNBOUNDED, Ordering::Relaxed);
    } else {
        held.up_to.fetch_add(if may_wait { PROD } else { more as u64 }, Ordering::Relaxed);
    }
}

/// Whether the rendezvous has been shown the other end, so that somebody will come.
fn is_sure(held: &Hold) -> bool {
    matches!(held.state_now(), GRANTED | ATTACHED)
}

fn most_pauses(held: &Hold, may_wait: bool) -> u32 {
    if !may_wait || is_sure(held) { MOST_PAUSES } else { PAUSES }
}

/// Whether the other end is a descriptor of this process that nobody uses at the moment, and that would not come by
/// itself.
fn other_end_is_idle_here(held: &Hold, fd: c_int) -> bool {
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

/// Whether both ends were attached in time.
fn wait(held: &Hold, fd: c_int, may_wait: bool) -> bool {
    // What the kernel holds back to fill a packet would not wake anybody.
    kernel_counts::push(fd);
    let start = raw::now_ns();
    let nap_ns = if may_wait { NAP_NS } else { BRIEF_NS / BRIEF_NAPS };
    loop {
        if meet::before_call(held, fd) && may_switch(held) {
            return true;
        }
        let pause_ns = match may_wait {
            false => BRIEF_NS,
            true if is_sure(held) => SURE_NS,
            true => PAUSE_NS,
        };
        if raw::now_ns() >= start + pause_ns {
            return false;
        }
        let aside = held.step_aside();
        let slept = raw::poll(&mut [], Some(nap_ns), None);
        drop(aside);
        if slept.is_err() {
            // A signal: its handler may have been waited for.
            return false;
        }
    }
}

fn may_switch(held: &Hold) -> bool {
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
    fn connections_of_a_service_move_more_before_they_are_offered_the_more_were_not_worth_it() {
        with(0).service.store(77, Ordering::Relaxed);
        let held = crate::conn::hold_index(1000);
        let needed = || bytes_of_service(&held) / bytes_before_offer();
        let not_worth_it: Vec<u64> = (0..6).map(|_| (needed(), judge(&held, false)).0).collect();
        assert_eq!(not_worth_it, [1, 2, 4, 8, 16, 16]);
        let worth_it: Vec<u64> = (0..5).map(|_| (judge(&held, true), needed()).1).collect();
        assert_eq!(worth_it, [8, 4, 2, 1, 1]);
        std::mem::forget(held);
    }
}

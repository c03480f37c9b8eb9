//! Connections to other hosts. They are the kernel's until the two rendezvous have brought the two ends together, which
//! most never do; but a thread that has sent something on one, and would sleep next, looks for the answer first: a
//! wake-up takes some ten times as long as the way of a byte from host to host.
//!
//! A look moves no byte and takes none: what the program gets, it gets by its own call, which the kernel answers. So
//! nothing has to be known of the other end, and nothing handed back.
//!
//! One that carries short messages is shown to the rendezvous as one within the host is, and is attached like that.
//! What differs from then on: somebody has to take what comes by the lane ([`Streams::drive`]) wherever data is waited
//! for, and to say what is new ([`tell`]); what is long, or much, goes by the kernel.
//!
//! [`Streams::drive`]: weft_fabric::stream::Streams::drive
//!
//! A send of more than 2 KiB, or one that would leave the other program more than 16 KiB behind, goes by the kernel,
//! and so does all that follows it. Before the kernel shuts a direction down, the library waits until the other host
//! knows what was sent before. A process hands all such connections back before it forks, because only one can have the
//! lane. A process whose last connections were shown in vain shows no more of them for a while (decisions 16 and 24).

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use libc::{MSG_DONTWAIT, MSG_ERRQUEUE, MSG_OOB, O_NONBLOCK, POLLIN, POLLRDHUP, pollfd};
use weft_fabric::stream::{Readable, Reason, Stream};

use super::conn::{self, ATTACHED, Connection, FAR, Hold, OFFERED};
use super::meet::{self, STREAMS};
use super::raw::Errno;
use super::table::{self, Entry};
use super::{cookies, early, ends, kernel_counts, pace, raw, settings, wait};

/// Longer lists are not looked at: one look would take as long as a sleep.
const FEW: usize = 16;

/// Messages are short where a call moves fewer bytes than this, on the average.
const SHORT_BYTES: u64 = 1 << 10;
/// So many ticks the rendezvous may take to answer: some seconds.
const PATIENCE_TICKS: u64 = 1 << 34;
/// After so many connections in a row that ended or gave up without one no more are shown.
const VAIN: u32 = 8;
/// But for one in so many, which are the same at both ends: a connection goes by a lane only if both show it.
const TRY_EVERY: u32 = 16;

/// A call that sends more than this goes by the kernel, and all that follow it; so do they where the other side would
/// be so far behind.
const LONG_BYTES: u64 = 2 << 10;
const BEHIND_BYTES: u64 = 16 << 10;

/// What waits for the other host without a sleep says so often how its end stands.
const TELL_EVERY_NS: u64 = 200_000;
/// So long it sleeps between two looks, if nothing comes by the lane.
const NAP_NS: u64 = 20_000;
/// How long a program that shuts a direction down waits until the other host knows what was sent on it.
const TOLD_NS: u64 = 10_000_000_000;

/// Who sleeps for another host looks after so long whether the rendezvous is there.
pub const WATCH_NS: u64 = 1_000_000_000;
/// And who does not sleep, not before so many ticks are over: some milliseconds.
const WATCH_TICKS: u64 = 1 << 24;

/// Connections that were shown in vain, one after the other.
static IN_VAIN: AtomicU32 = AtomicU32::new(0);

/// Clock of the last look after the rendezvous.
static WATCHED_AT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// This thread has sent on such a connection, and has not waited since. Nothing to be dropped.
    static AWAITS: Cell<bool> = const { Cell::new(false) };
}

/// The connection cannot go by a ring of this host for this reason: perhaps because it leads to another one. Its
/// cookie, if it is to be shown for that.
pub fn note(held: &Hold, fd: c_int, reason: Reason) -> Option<u64> {
    if reason != Reason::NotLocal || !kernel_counts::leads_elsewhere(fd) {
        return None;
    }
    held.set_flag(FAR);
    // The other end comes late or never: it is not waited for.
    held.up_to.store(early::UNBOUNDED, Ordering::Relaxed);
    held.looked_at.store(raw::ticks(), Ordering::Relaxed);
    let moved = held.sent.load(Ordering::Relaxed).saturating_add(held.received.load(Ordering::Relaxed));
    if !is_short(moved, held.calls.load(Ordering::Relaxed)) || !is_worth_showing(fd) {
        return None;
    }
    // It makes the program's own calls meanwhile.
    held.patience.store(0, Ordering::Relaxed);
    raw::cookie(fd).ok()
}

/// Whether the rendezvous may answer, and has answered others lately, or this one is to try.
fn is_worth_showing(fd: c_int) -> bool {
    let ports = || kernel_counts::ends(fd).map(|(here, there)| [here.port, there.port]);
    (IN_VAIN.load(Ordering::Relaxed) < VAIN && !STREAMS.is_host_only(false))
        || (ports().is_some_and(is_tried) && !STREAMS.is_host_only(true))
}

/// Whether a connection between these ports is one of those that are shown nevertheless, seen from either end.
fn is_tried([one, other]: [u16; 2]) -> bool {
    // Kernels choose ports that are only even, or only odd.
    let mixed = (u32::from(one) + u32::from(other)).wrapping_mul(0x9e37_79b9);
    mixed / (u32::MAX / TRY_EVERY) == 0
}

/// Whether a connection whose `calls` have moved so many bytes carries short messages.
fn is_short(moved: u64, calls: u32) -> bool {
    moved < SHORT_BYTES * u64::from(calls)
}

/// The rendezvous has answered: others are worth showing, too.
pub fn answered(conn: &Connection) {
    if conn.has_flag(FAR) {
        IN_VAIN.store(0, Ordering::Relaxed);
    }
}

/// No mail is awaited any more for one that was shown: the rendezvous, which holds open what leads to another host, is
/// to let it go, and of one of this host the next connection between the same ports is not to meet what is left of it.
pub fn withdraw(conn: &Connection) {
    if conn.has_flag(FAR) {
        IN_VAIN.fetch_add(1, Ordering::Relaxed);
    }
    STREAMS.withdraw(conn.cookie.load(Ordering::Relaxed));
}

/// A connection that was shown: after some time without an answer it stays with the kernel.
#[cold]
pub fn look_at_patience(held: &Hold, fd: c_int) {
    if raw::ticks().wrapping_sub(held.looked_at.load(Ordering::Relaxed)) > PATIENCE_TICKS {
        cookies::remove(held.cookie.load(Ordering::Relaxed), held.index);
        if meet::refuse(held, OFFERED, Reason::NotLocal, fd) {
            withdraw(held);
        }
    }
}

/// Before a sending call.
#[inline]
pub fn before_send(held: &Hold) {
    if held.has_flag(FAR) {
        AWAITS.with(|awaits| awaits.set(true));
    }
}

/// After a receiving call on one of these that has brought so much: more of it is to be awaited, as an answer is.
#[inline]
pub fn after_receive(bytes: usize) {
    if bytes as u64 > LONG_BYTES {
        AWAITS.with(|awaits| awaits.set(true));
    }
}

/// Whether a wait of so long is worth looking before: once after each send. Nobody is kept longer than he wants to
/// wait, and who waits too shortly leaves the looking to the next wait.
fn is_worth_it(timeout_ns: Option<u64>) -> bool {
    let longest = settings::spin_bound_ns().0;
    longest > 0 && timeout_ns.is_none_or(|ns| ns > longest) && AWAITS.with(|awaits| awaits.replace(false))
}

/// Before a receiving call on a connection that is the kernel's: looks, if the call may sleep.
#[inline]
pub fn before_receive(held: &Hold, fd: c_int, flags: c_int) {
    if held.has_flag(FAR) && flags & (MSG_DONTWAIT | MSG_OOB | MSG_ERRQUEUE) == 0 {
        look_before_sleep(held, fd);
    }
}

#[cold]
fn look_before_sleep(held: &Hold, fd: c_int) {
    // A call that does not wait leaves the looking to the wait that follows.
    let waits = || raw::fcntl(fd, libc::F_GETFL, 0).is_ok_and(|flags| flags & O_NONBLOCK as usize == 0);
    let there = || !wait::is_open(held, fd) || raw::poll_one(fd, POLLIN | POLLRDHUP) != 0;
    if AWAITS.with(Cell::get) && waits() && is_worth_it(None) {
        pace::spin_far(there);
    }
}

/// Before a sleep of a receiver on an attached connection whose next bytes come by the kernel: looks as for one that is
/// not. True if there is something.
#[inline]
pub fn look_at_kernel(held: &Hold, fd: c_int) -> bool {
    held.stream().is_far() && is_worth_it(None) && pace::spin_far(|| has_come(held, fd))
}

fn has_come(held: &Hold, fd: c_int) -> bool {
    STREAMS.drive();
    held.readable() != Readable::Kernel || raw::poll_one(fd, POLLIN | POLLRDHUP) != 0
}

/// Before a wait for descriptors that are the kernel's: looks, if an answer is awaited on one of them, by calls of
/// `poll` that take no time and let in the signals that the wait does. What such a call has found is the answer of the
/// wait; it is not asked for again.
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
        && conn::hold(fd).is_some_and(|held| held.has_flag(FAR) && held.state_now() != ATTACHED)
}

/// Whether what is sent next, so many bytes, is to go by the kernel, with all that follows.
#[inline]
pub fn is_for_kernel(stream: &Stream, bytes: impl FnOnce() -> usize) -> bool {
    stream.is_far() && is_much(bytes() as u64, stream.unread_by_peer())
}

fn is_much(bytes: u64, behind: u64) -> bool {
    bytes > LONG_BYTES || behind.saturating_add(bytes) > BEHIND_BYTES
}

/// Something is new at this end.
#[inline]
pub fn tell(stream: &Stream) {
    if stream.is_far() {
        stream.tell();
    }
}

/// What one does between two looks who waits for the other side, and does not sleep on the lane.
pub struct Urging {
    tell_at: u64,
}

impl Urging {
    pub const fn new() -> Self {
        Self { tell_at: 0 }
    }

    /// Takes what has come, and says now and then how this end stands. The caller has no lock.
    pub fn urge(&mut self, stream: &Stream) {
        STREAMS.drive();
        if stream.is_far() && self.is_due() {
            stream.tell();
            look_after();
        }
    }

    /// The same, and leaves the core to others.
    pub fn urge_and_yield(&mut self, stream: &Stream) {
        self.urge(stream);
        if stream.is_far() {
            nap(NAP_NS);
        } else {
            raw::yield_core();
        }
    }

    /// Whether it is time to say it.
    pub fn is_due(&mut self) -> bool {
        let now = raw::now_ns();
        let due = now >= self.tell_at;
        if due {
            self.tell_at = now + TELL_EVERY_NS;
        }
        due
    }
}

/// The descriptor on which a sleep for this stream is waked by what comes from its other host; -1 for none.
#[inline]
pub fn lane_of(stream: &Stream) -> c_int {
    if stream.is_far() { STREAMS.lane().unwrap_or(-1) } else { -1 }
}

/// Now and then: whether the rendezvous is there. Where it is not, what others send by lane does not come, what is sent
/// does not arrive, and nobody says so: these connections are reset. The caller has no lock. Few loads without such
/// connections.
#[inline]
pub fn look_after() {
    if STREAMS.has_far() {
        look_after_them();
    }
}

fn look_after_them() {
    let now = raw::ticks();
    if now.wrapping_sub(WATCHED_AT.load(Ordering::Relaxed)) > WATCH_TICKS {
        WATCHED_AT.store(now, Ordering::Relaxed);
        if STREAMS.is_deserted() {
            ends::reset_deserted();
        }
    }
}

/// How long at most who may wait for another host sleeps until it looks.
pub fn watch_ns() -> Option<u64> {
    STREAMS.has_far().then_some(WATCH_NS)
}

/// Sleeps for so long, or until something comes by the lane.
pub fn nap(ns: u64) {
    let mut lane = [pollfd { fd: STREAMS.lane().unwrap_or(-1), events: POLLIN, revents: 0 }];
    let _ = raw::poll(&mut lane, Some(ns), None);
}

/// Before the kernel ends a direction, which the other host may learn sooner than what was sent before by the lane.
/// False where it cannot be told: then bytes may be missing there, and it must not see an end.
pub fn await_told(stream: &Stream) -> bool {
    if !stream.is_far() {
        return true;
    }
    let (mut urging, end) = (Urging::new(), raw::now_ns() + TOLD_NS);
    loop {
        urging.urge(stream);
        if stream.is_told() {
            return true;
        }
        if raw::now_ns() > end {
            return false;
        }
        nap(TELL_EVERY_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_messages_are_short_on_the_average() {
        assert!(is_short(4 * 64, 4) && is_short(3000 + 64 + 3 * 64, 5));
        assert!(!is_short(4 * SHORT_BYTES, 4));
        assert!(!is_short(0, 0), "nothing is known of one that has not begun");
    }

    #[test]
    fn who_has_received_much_looks_for_more_once() {
        after_receive(LONG_BYTES as usize);
        assert!(!is_worth_it(None), "a short message is no stream");
        after_receive(LONG_BYTES as usize + 1);
        assert!(is_worth_it(None) && !is_worth_it(None));
    }

    #[test]
    fn both_ends_try_the_same_connections_one_in_so_many() {
        for service in [80, 7319] {
            let ports = (32768..61000).step_by(2);
            let tried = ports.clone().filter(|port| is_tried([*port, service])).count() as u32;
            let each = ports.len() as u32 / TRY_EVERY;
            assert!(tried > each / 2 && tried < each * 2, "{tried}, not {each}");
            assert!(ports.clone().all(|port| is_tried([port, service]) == is_tried([service, port])));
            // Those that follow each other are not left out for long.
            let most = ports
                .collect::<Vec<_>>()
                .chunks(200)
                .filter(|some| !some.iter().any(|port| is_tried([*port, service])))
                .count();
            assert_eq!(most, 0);
        }
    }

    #[test]
    fn what_is_long_or_leaves_the_other_side_behind_goes_by_the_kernel() {
        assert!(!is_much(LONG_BYTES, 0) && is_much(LONG_BYTES + 1, 0));
        assert!(!is_much(64, BEHIND_BYTES - 64) && is_much(64, BEHIND_BYTES - 63));
        assert!(is_much(u64::MAX, u64::MAX));
    }

    #[test]
    fn who_urges_tells_now_and_then_only() {
        let mut urging = Urging::new();
        assert!(urging.is_due());
        urging.tell_at = u64::MAX;
        assert!(!urging.is_due());
    }
}

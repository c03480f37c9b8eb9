//! The one place where a data call waits for its peer: a short spin, then a sleep on the anchor and a bell.
//!
//! The sleep is in the kernel and on the real descriptor, so that an end, an error, a shutdown by another thread and
//! signals wake it. No lock is held meanwhile.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::Ordering;

use libc::{POLLIN, POLLOUT, POLLRDHUP, pollfd};
use weft_fabric::stream::{BellAddress, PooledBell, Readable, SendRoute, Stream, Waiter, Writable, sleep_barrier};

use super::conn::{ASK_KERNEL, Hold};
use super::meet::STREAMS;
use super::signals::{self, Slept};
use super::table::{self, Entry};
use super::{epoll, far, pace, raw};

/// Sleep no longer than this when nobody can ring us (no bell left, or another thread is the one who is rung).
const SLICE_NS: u64 = 5_000_000;

/// The kernel does not wake a sender whose peer has shut its own sending direction and is killed afterwards.
pub const LOOK_NS: u64 = 50_000_000;

/// More bytes than this are not waited for at once: the ring must be able to hold them.
pub const MOST_BYTES: usize = 64 << 10;

/// What a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// So many bytes to read, or an end.
    Data { bytes: usize },
    /// Room to send.
    Room,
}

/// What is there now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Now {
    Ready,
    Nothing,
    /// Only the kernel can tell.
    Kernel,
}

impl Want {
    #[inline]
    fn now(self, held: &Hold, stream: &Stream) -> Now {
        match self {
            Want::Data { bytes } => match held.readable() {
                Readable::Ring(there) if there >= bytes.min(MOST_BYTES) => Now::Ready,
                Readable::Ring(_) | Readable::Empty => Now::Nothing,
                Readable::Kernel => Now::Kernel,
                Readable::Broken => Now::Ready,
            },
            Want::Room => match stream.writable() {
                Writable::Ring(_) | Writable::Broken => Now::Ready,
                Writable::Full => Now::Nothing,
                Writable::Kernel => Now::Kernel,
            },
        }
    }

    /// What is asked of the kernel meanwhile. An end of the other side's sending matters to a sender, too: it may be
    /// that nobody makes room any more.
    fn events(self, now: Now, stream: &Stream) -> i16 {
        match self {
            Want::Data { .. } => POLLIN,
            Want::Room if now == Now::Kernel => POLLOUT,
            // That end is known, and looked at now and then.
            Want::Room if stream.peer_half_closed() => 0,
            Want::Room => POLLRDHUP,
        }
    }

    fn arm(self, stream: &Stream, bell: BellAddress) -> bool {
        match self {
            Want::Data { .. } => stream.arm_receive(bell, Waiter::Wait),
            Want::Room => stream.arm_space(bell, Waiter::Wait),
        }
    }

    fn disarm(self, stream: &Stream, bell: BellAddress) -> bool {
        match self {
            Want::Data { .. } => stream.disarm_receive(bell, Waiter::Wait),
            Want::Room => stream.disarm_space(bell, Waiter::Wait),
        }
    }
}

/// When a call that may wait for `timeout_ns` (0: for ever) must end.
pub fn deadline(timeout_ns: u64) -> Option<u64> {
    (timeout_ns > 0).then(|| raw::now_ns().saturating_add(timeout_ns))
}

/// What is left of the time until `deadline`.
pub fn left_ns(deadline: Option<u64>) -> Option<u64> {
    deadline.map(|deadline| deadline.saturating_sub(raw::now_ns()))
}

/// Waits until what is wanted may be there. [`Slept::Woken`] means: look.
pub fn wait(held: &Hold, fd: c_int, want: Want, deadline: Option<u64>) -> Slept {
    if !is_open(held, fd) {
        return Slept::Closed;
    }
    let stream = held.stream();
    let closing = stream.peer_closing();
    let came = || {
        STREAMS.drive();
        want.now(held, &stream) != Now::Nothing || stream.peer_closing() != closing || stream.asked_back()
    };
    match want.now(held, &stream) {
        Now::Kernel if want != Want::Room && far::look_at_kernel(held, fd) => {
            held.set_flag(ASK_KERNEL);
            return look_around(held, fd, Slept::Woken);
        }
        Now::Kernel => {}
        _ if pace::spin(came) => {
            if stream.peer_closing() {
                held.set_flag(ASK_KERNEL);
            }
            return look_around(held, fd, Slept::Woken);
        }
        _ => {}
    }
    let slept = sleep(held, fd, &stream, want, deadline);
    far::look_after();
    look_around(held, fd, slept)
}

/// What happened to the descriptor meanwhile; answers the peer that wants something.
fn look_around(held: &Hold, fd: c_int, slept: Slept) -> Slept {
    if !is_open(held, fd) {
        return Slept::Closed;
    }
    serve(held, fd);
    slept
}

/// Whether the number still is this connection's: another thread may have closed it, and got it for another file.
pub fn is_open(held: &Hold, fd: c_int) -> bool {
    table::entry(fd) == Some(Entry::Connection(held.index))
}

fn sleep(held: &Hold, fd: c_int, stream: &Stream, want: Want, deadline: Option<u64>) -> Slept {
    let slept = sleep_with_wish(held, fd, stream, want, deadline);
    // Once nobody rings us for it any more.
    STREAMS.drive();
    slept
}

fn sleep_with_wish(held: &Hold, fd: c_int, stream: &Stream, want: Want, deadline: Option<u64>) -> Slept {
    let wish = WakeWish::new(want, stream);
    sleep_barrier();
    let now = want.now(held, stream);
    match now == Now::Ready || STREAMS.lane_has_arrived() || stream.asked_back() || !is_open(held, fd) {
        true => Slept::Woken,
        false => sleep_armed(held, fd, &wish, want.events(now, stream), deadline),
    }
}

/// A wish to be woken. Taken back when dropped: a thread may be cancelled while it sleeps.
struct WakeWish<'a> {
    want: Want,
    stream: &'a Stream,
    bell: Option<PooledBell>,
    armed: bool,
    /// It was answered, and the bell is silent again.
    answered: Cell<bool>,
}

impl<'a> WakeWish<'a> {
    fn new(want: Want, stream: &'a Stream) -> Self {
        let bell = PooledBell::take().ok();
        let armed = bell.as_ref().is_some_and(|bell| want.arm(stream, bell.address()));
        Self { want, stream, bell, armed, answered: Cell::new(false) }
    }

    /// The bell that will be rung; `None` when nobody can ring us.
    fn armed_bell(&self) -> Option<&PooledBell> {
        self.bell.as_ref().filter(|_| self.armed)
    }

    fn answered(&self) {
        if let Some(bell) = self.armed_bell() {
            bell.drain();
            self.answered.set(true);
        }
    }
}

impl Drop for WakeWish<'_> {
    fn drop(&mut self) {
        let Some(bell) = self.bell.take() else { return };
        let silent = !self.armed || self.want.disarm(self.stream, bell.address()) || self.answered.get();
        bell.give_back(silent);
    }
}

fn sleep_armed(held: &Hold, fd: c_int, wish: &WakeWish<'_>, events: i16, deadline: Option<u64>) -> Slept {
    let bell = wish.armed_bell();
    let mut fds = [
        pollfd { fd, events, revents: 0 },
        pollfd { fd: bell.map_or(-1, PooledBell::fd), events: POLLIN, revents: 0 },
        pollfd { fd: far::lane_of(wish.stream), events: POLLIN, revents: 0 },
        pollfd { fd: -1, events: 0, revents: 0 },
    ];
    let left = left_ns(deadline);
    let slice = match (bell, events) {
        (None, _) => SLICE_NS,
        (_, 0) => LOOK_NS,
        // A peer that has written nonsense rings nobody; on another host, the rendezvous may be gone.
        _ => far::WATCH_NS,
    };
    let slice = Some(left.map_or(slice, |left| left.min(slice)));
    STREAMS.counters().sleeps.fetch_add(1, Ordering::Relaxed);
    // As the kernel has it: a call with a time limit is interrupted by every handler.
    let slept = signals::sleep(&mut fds, slice, deadline.is_none());
    if fds[0].revents != 0 {
        held.set_flag(ASK_KERNEL);
    }
    if fds[1].revents != 0 {
        wish.answered();
    }
    match slept {
        Slept::TimedOut if left_ns(deadline) != Some(0) => Slept::Woken,
        other => other,
    }
}

/// Does what the peer asks for: it wants its incoming direction back in the kernel, or its outgoing one.
pub fn serve(held: &Hold, fd: c_int) {
    if answer(held, fd) {
        far::tell(&held.stream());
        epoll::refresh(held);
    }
}

/// The same without a word to the epoll sets, nor to another host, whose locks a handler may have interrupted; whether
/// there was something to do.
pub fn answer(held: &Hold, fd: c_int) -> bool {
    let stream = held.stream();
    if !stream.asked_back() {
        return false;
    }
    let mut guard = stream.lock_send();
    if guard.route() == SendRoute::GiveBack {
        // What does not go now goes with the next call, or when the peer has read.
        let _ = guard.give_back(|bytes| raw::send_now(fd, bytes).map_err(std::io::Error::from_raw_os_error));
    }
    drop(guard);
    stream.let_leave();
    true
}

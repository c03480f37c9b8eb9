//! Data calls on a connection that was shown to the rendezvous and is not attached yet.
//!
//! A thread that blocks inside the kernel's call keeps all others from attaching, and may do so for ever: one thread of
//! a program receives while another one sends. So calls wait beside the kernel's call here, in slices, and look again;
//! the bytes themselves are moved by calls that do not block. After some waits without an answer the kernel has its
//! way.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use libc::{MSG_DONTWAIT, MSG_NOSIGNAL, MSG_PEEK, MSG_WAITALL, POLLIN, POLLOUT, pollfd};

use super::conn::{ATTACHED, GRANTED, Hold, OFFERED};
use super::meet::{self, STREAMS};
use super::pieces::{NO_PIECE, Pieces};
use super::poll::NOTHING;
use super::raw::{self, Errno};
use super::signals::{self, Slept};
use super::wait::left_ns;
use super::{early, incoming, kernel_counts, outgoing, wait};

/// Nobody wakes a call whose connection another thread has attached.
pub const SLICE_NS: u64 = 5_000_000;

/// Whether calls on this connection are made here.
pub fn applies(held: &Hold) -> bool {
    matches!(held.state_now(), OFFERED | GRANTED) && held.patience.load(Ordering::Relaxed) > 0
}

/// What a call does after it has waited.
enum AfterWait {
    /// The kernel may have something.
    Look,
    /// The rings have the rest.
    Attached,
    /// The program's own call is to be made.
    Plain,
    Failed(Errno),
}

/// A receiving call; `None`: nothing was done, the program's own call shall do it.
pub fn receive(held: &Hold, fd: c_int, mut pieces: Pieces<'_>, flags: c_int) -> Option<Result<usize, Errno>> {
    let all = pieces.left();
    let may_block = flags & MSG_DONTWAIT == 0;
    let mut waiting = WaitingCall { option: libc::SO_RCVTIMEO, events: POLLIN, deadline: None };
    if all == 0 {
        return None;
    }
    loop {
        let mut list = [NO_PIECE; 16];
        let now = flags & !MSG_WAITALL | MSG_DONTWAIT;
        match raw::receive_pieces(fd, pieces.list(usize::MAX, &mut list), now) {
            Ok(came) if came == 0 || flags & MSG_PEEK != 0 => return Some(Ok(all - pieces.left() + came)),
            Ok(came) => {
                held.received.fetch_add(came as u64, Ordering::Relaxed);
                STREAMS.counters().bytes_kernel_in.fetch_add(came as u64, Ordering::Relaxed);
                pieces.advance(came);
                if pieces.left() == 0 || flags & MSG_WAITALL == 0 {
                    return Some(Ok(all - pieces.left()));
                }
                continue;
            }
            Err(libc::EAGAIN) => {}
            Err(error) if pieces.left() < all => {
                held.owe(error);
                return Some(Ok(all - pieces.left()));
            }
            Err(error) => return Some(Err(error)),
        }
        let done = all - pieces.left();
        match waiting.wait(held, fd, may_block, done) {
            AfterWait::Plain => return None,
            AfterWait::Look => {}
            AfterWait::Attached => return Some(sum(done, incoming::receive(held, fd, pieces, flags), Some(held))),
            AfterWait::Failed(error) => return Some(sum(done, Err(error), None)),
        }
    }
}

/// A sending call; `None`: nothing was done, the program's own call shall do it.
pub fn send(held: &Hold, fd: c_int, mut pieces: Pieces<'_>, flags: c_int) -> Option<Result<usize, Errno>> {
    let all = pieces.left();
    let may_block = flags & MSG_DONTWAIT == 0;
    let mut waiting = WaitingCall { option: libc::SO_SNDTIMEO, events: POLLOUT, deadline: None };
    let mut may_wait = None;
    if all == 0 {
        return None;
    }
    loop {
        let limit = early::allowance(held, held.sent.load(Ordering::Relaxed), pieces.left());
        if limit == 0 {
            let may_wait = *may_wait.get_or_insert_with(|| may_block && !is_nonblocking(fd));
            early::pause(held, fd, pieces.left(), may_wait);
            if held.state() == ATTACHED {
                return Some(sum(all - pieces.left(), outgoing::send(held, fd, pieces, flags), None));
            }
            continue;
        }
        let mut list = [NO_PIECE; 16];
        let now = flags | MSG_DONTWAIT | MSG_NOSIGNAL;
        match raw::send_pieces(fd, pieces.list(limit, &mut list), now) {
            Ok(went) => {
                held.sent.fetch_add(went as u64, Ordering::Relaxed);
                STREAMS.counters().bytes_kernel_out.fetch_add(went as u64, Ordering::Relaxed);
                pieces.advance(went);
                if pieces.left() == 0 {
                    return Some(Ok(all));
                }
                continue;
            }
            Err(libc::EAGAIN) => {}
            Err(_) if pieces.left() < all => return Some(Ok(all - pieces.left())),
            Err(error) => return Some(Err(outgoing::fail(error, flags))),
        }
        let done = all - pieces.left();
        match waiting.wait(held, fd, may_block, done) {
            AfterWait::Plain => return None,
            AfterWait::Look => {}
            AfterWait::Attached => return Some(sum(done, outgoing::send(held, fd, pieces, flags), None)),
            AfterWait::Failed(error) => return Some(sum(done, Err(error), None)),
        }
    }
}

/// What a call answers whose first part has moved `done` bytes; an error of the rest is owed by `held`.
fn sum(done: usize, rest: Result<usize, Errno>, owes: Option<&Hold>) -> Result<usize, Errno> {
    match rest {
        Ok(more) => Ok(done + more),
        Err(error) if done == 0 => Err(error),
        Err(error) => {
            if let Some(held) = owes.filter(|_| !matches!(error, libc::EAGAIN | libc::EINTR)) {
                held.owe(error);
            }
            Ok(done)
        }
    }
}

fn is_nonblocking(fd: c_int) -> bool {
    raw::fcntl(fd, libc::F_GETFL, 0).is_ok_and(|flags| flags & libc::O_NONBLOCK as usize != 0)
}

/// How one call waits.
struct WaitingCall {
    option: c_int,
    events: i16,
    /// Of the whole call; the outer `None`: not known yet.
    deadline: Option<Option<u64>>,
}

impl WaitingCall {
    #[cold]
    fn wait(&mut self, held: &Hold, fd: c_int, may_block: bool, done: usize) -> AfterWait {
        if !may_block || (self.deadline.is_none() && is_nonblocking(fd)) {
            return AfterWait::Failed(libc::EAGAIN);
        }
        let option = self.option;
        let deadline = *self.deadline.get_or_insert_with(|| wait::deadline(kernel_counts::timeout_ns(fd, option)));
        // A call that has moved something can only go on here.
        if !held.take_patience() && done == 0 {
            return AfterWait::Plain;
        }
        let left = left_ns(deadline).map_or(SLICE_NS, |left| left.min(SLICE_NS));
        let mut fds = [pollfd { fd, events: self.events, revents: 0 }, NOTHING];
        let aside = held.step_aside();
        let slept = signals::sleep(&mut fds, Some(left), deadline.is_none());
        drop(aside);
        match slept {
            Slept::Interrupted => AfterWait::Failed(libc::EINTR),
            Slept::TimedOut if left_ns(deadline) == Some(0) => AfterWait::Failed(libc::EAGAIN),
            _ if meet::before_call(held, fd) => AfterWait::Attached,
            _ => AfterWait::Look,
        }
    }
}

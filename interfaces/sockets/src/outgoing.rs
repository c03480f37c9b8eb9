//! Sending on an attached connection.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use libc::{MSG_DONTWAIT, MSG_NOSIGNAL, POLLERR, POLLHUP, POLLRDHUP, SHUT_RDWR};
use weft_fabric::stream::{SendGuard, SendRoute, Stream};

use super::conn::{Hold, WAS_FULL};
use super::far::{self, Urging};
use super::meet::STREAMS;
use super::pieces::{NO_PIECE, Pieces};
use super::raw::{self, Errno};
use super::signals::Slept;
use super::wait::{self, Want};
use super::{early, ends, epoll, kernel_counts, life};

/// A sender looks whether the kernel knows of an end after this many ticks: some milliseconds.
const LOOK_TICKS: u64 = 1 << 24;

/// How long a call waits for a receiver that must let go of the kernel: one that may wait, and one that may not. It
/// takes an instant unless the receiver lost its core in that instant, is stopped, or is hostile.
const LET_GO_NS: u64 = 2_000_000_000;
const LET_GO_NOW_NS: u64 = 200_000;
/// On another host it takes as long as the network does, which may be away for a while.
const FAR_LET_GO_NS: u64 = 60_000_000_000;

/// A receiver that computes may leave its ring full for so long.
pub const PATIENCE_NS: u64 = 1_000_000_000;

/// How long giving back may wait for the kernel: so often, so long.
const GIVE_TRIES: u32 = 300;
const GIVE_WAIT_NS: u64 = 10_000_000;

/// What one turn with the lock came to.
enum SendTurn {
    /// Some bytes went.
    Went,
    /// What fits went, or nothing does: the kernel or the ring is full.
    Full,
    /// None: the other end is given time to come.
    Early,
    /// None; the receiver must let go of the kernel first.
    NotYet,
    Failed(Errno),
}

/// Sends as the kernel would with these flags: all bytes when it may block, what fits when not.
#[inline]
pub fn send(held: &Hold, fd: c_int, mut pieces: Pieces<'_>, flags: c_int) -> Result<usize, Errno> {
    let stream = held.stream();
    let all = pieces.left();
    let mut deadline = None;
    let mut patience = None;
    let mut urging = Urging::new();
    look_for_end(held, fd, &stream);
    loop {
        match turn(held, fd, &stream, &mut pieces, flags) {
            SendTurn::Went if pieces.left() == 0 => return Ok(all),
            SendTurn::Went => continue,
            // Another thread has closed the descriptor: what the kernel says about its number is not about us.
            SendTurn::Failed(_) if pieces.left() == all && !wait::is_open(held, fd) => {
                return Err(fail(libc::EPIPE, flags));
            }
            SendTurn::Failed(error) if pieces.left() == all => return Err(fail(error, flags)),
            SendTurn::Failed(_) => return Ok(all - pieces.left()),
            SendTurn::Early => {
                let may_wait = flags & MSG_DONTWAIT == 0 && !stream.nonblocking();
                early::pause(held, fd, pieces.left(), may_wait);
                continue;
            }
            SendTurn::Full => {}
            SendTurn::NotYet => {
                let may_wait = flags & MSG_DONTWAIT == 0 && !stream.nonblocking();
                let end = *patience.get_or_insert_with(|| raw::now_ns() + let_go_ns(&stream, may_wait));
                match raw::now_ns() > end {
                    false => urging.urge_and_yield(&stream),
                    true if may_wait => {
                        let _ = raw::shutdown(fd, SHUT_RDWR);
                        return some_or(all - pieces.left(), libc::EPIPE).map_err(|error| fail(error, flags));
                    }
                    true => {
                        // Who waits for an edge of the kernel's room has seen it: another one.
                        epoll::refresh(held);
                        return some_or(all - pieces.left(), libc::EAGAIN);
                    }
                }
                continue;
            }
        }
        if flags & MSG_DONTWAIT != 0 || stream.nonblocking() {
            held.set_flag(WAS_FULL);
            epoll::watch(held);
            leave_a_stuck_ring(held, fd, &stream);
            return some_or(all - pieces.left(), libc::EAGAIN);
        }
        if deadline.is_none() {
            deadline = wait::deadline(stream.options().send_timeout.load(Ordering::Relaxed));
        }
        match wait::wait(held, fd, Want::Room, deadline) {
            Slept::Woken => leave_a_ring_in_vain(held, fd, &stream),
            Slept::TimedOut => return some_or(all - pieces.left(), libc::EAGAIN),
            Slept::Interrupted => return some_or(all - pieces.left(), libc::EINTR),
            Slept::Closed => return some_or(all - pieces.left(), libc::EPIPE).map_err(|error| fail(error, flags)),
        }
    }
}

fn let_go_ns(stream: &Stream, may_wait: bool) -> u64 {
    match may_wait {
        false => LET_GO_NOW_NS,
        true if stream.is_far() => FAR_LET_GO_NS,
        true => LET_GO_NS,
    }
}

fn some_or(done: usize, error: Errno) -> Result<usize, Errno> {
    if done > 0 { Ok(done) } else { Err(error) }
}

/// The kernel was asked not to raise the signal while we held the lock.
pub fn fail(error: Errno, flags: c_int) -> Errno {
    if error == libc::EPIPE && flags & MSG_NOSIGNAL == 0 {
        raw::raise(libc::SIGPIPE);
    }
    error
}

#[inline]
fn turn(held: &Hold, fd: c_int, stream: &Stream, pieces: &mut Pieces<'_>, flags: c_int) -> SendTurn {
    let mut guard = stream.lock_send();
    match guard.route() {
        SendRoute::Ring if far::is_for_kernel(stream, || pieces.left()) => {
            guard.ask_to_leave();
            by_ring(guard, stream, pieces)
        }
        SendRoute::Ring => by_ring(guard, stream, pieces),
        SendRoute::MaySwitch if far::is_for_kernel(stream, || pieces.left()) => {
            // Nothing is in the ring: there is nobody to wait for, and room is the kernel's to tell.
            guard.switch_to_kernel();
            by_kernel(held, stream, fd, pieces, flags)
        }
        SendRoute::MaySwitch => {
            let before = stream.kernel_counts().0.load(Ordering::Relaxed);
            guard.switch_to_ring(before);
            if before > 0 {
                // The other side reads what the kernel has first.
                kernel_counts::push(fd);
            }
            by_ring(guard, stream, pieces)
        }
        SendRoute::Kernel => by_kernel(held, stream, fd, pieces, flags),
        SendRoute::GiveBack => give_back(guard, held, fd),
        // The kernel, which ends last, takes nothing more: it says why.
        SendRoute::NotYet if stream.is_far() && is_over(fd, stream) => by_kernel(held, stream, fd, pieces, flags),
        SendRoute::NotYet => SendTurn::NotYet,
        SendRoute::Broken => {
            drop(guard);
            broken(held, fd)
        }
    }
}

/// Whether the receiver need not let go: there is none, or it has taken what comes before and nobody will say that any
/// more.
#[cold]
fn is_over(fd: c_int, stream: &Stream) -> bool {
    let said = raw::poll_one(fd, POLLRDHUP);
    said & (POLLHUP | POLLERR) != 0 || (said & POLLRDHUP != 0 && stream.left_unread() == 0)
}

#[inline]
fn by_ring(mut guard: SendGuard, stream: &Stream, pieces: &mut Pieces<'_>) -> SendTurn {
    let went = push(&mut guard, pieces);
    drop(guard);
    far::tell(stream);
    went
}

#[inline]
fn push(guard: &mut SendGuard, pieces: &mut Pieces<'_>) -> SendTurn {
    let (mut went, mut cut) = (0, false);
    while let Some((at, length)) = pieces.first() {
        // SAFETY: the program promises that its buffer is readable for this call.
        let pushed = guard.push(unsafe { std::slice::from_raw_parts(at, length) });
        pieces.advance(pushed);
        went += pushed;
        cut = pushed < length;
        if cut {
            break;
        }
    }
    guard.publish();
    STREAMS.counters().bytes_ring_out.fetch_add(went as u64, Ordering::Relaxed);
    match went {
        // We are a signal handler, and what it interrupted goes on only when we return: no waiting.
        0 if guard.is_nested() => SendTurn::Failed(libc::EAGAIN),
        _ if cut => SendTurn::Full,
        _ => SendTurn::Went,
    }
}

fn by_kernel(held: &Hold, stream: &Stream, fd: c_int, pieces: &mut Pieces<'_>, flags: c_int) -> SendTurn {
    if stream.sends_by_kernel() {
        // There is nobody to wait for.
        held.up_to.store(early::UNBOUNDED, Ordering::Relaxed);
    }
    let limit = early::allowance(held, stream.kernel_counts().0.load(Ordering::Relaxed), pieces.left());
    if limit == 0 {
        return SendTurn::Early;
    }
    let _noted = held.note_by_kernel(fd);
    let mut list = [NO_PIECE; 16];
    match raw::send_pieces(fd, pieces.list(limit, &mut list), flags | MSG_DONTWAIT | MSG_NOSIGNAL) {
        Ok(went) => {
            stream.kernel_counts().0.fetch_add(went as u64, Ordering::Relaxed);
            STREAMS.counters().bytes_kernel_out.fetch_add(went as u64, Ordering::Relaxed);
            pieces.advance(went);
            SendTurn::Went
        }
        Err(libc::EAGAIN) => SendTurn::Full,
        Err(error) => SendTurn::Failed(error),
    }
}

#[cold]
fn give_back(mut guard: SendGuard, held: &Hold, fd: c_int) -> SendTurn {
    let answer = guard.give_back(|bytes| raw::send_now(fd, bytes).map_err(std::io::Error::from_raw_os_error));
    drop(guard);
    far::tell(&held.stream());
    epoll::refresh(held);
    match answer.map_err(|error| error.raw_os_error().unwrap_or(libc::EIO)) {
        Ok(()) => SendTurn::Went,
        Err(libc::EAGAIN) => SendTurn::Full,
        Err(error) => SendTurn::Failed(error),
    }
}

/// The peer wrote nonsense into the shared memory: the connection is reset, nothing else.
#[cold]
fn broken(held: &Hold, fd: c_int) -> SendTurn {
    life::reset(held, fd);
    SendTurn::Failed(libc::ECONNRESET)
}

/// Now and then, and when the peer hints at it: whether the other side is gone. Then the kernel decides what a sender
/// is told, from here on.
#[inline]
fn look_for_end(held: &Hold, fd: c_int, stream: &Stream) {
    let now = raw::ticks();
    let hint = stream.peer_closing() && !stream.peer_half_closed();
    if hint || now.wrapping_sub(held.looked_at.load(Ordering::Relaxed)) > LOOK_TICKS {
        held.looked_at.store(now, Ordering::Relaxed);
        far::look_after();
        leave_a_dead_ring(held, fd, stream);
    }
}

/// For who waits for room: leaves a ring that nobody reads any more, or not for long.
#[cold]
pub fn leave_a_ring_in_vain(held: &Hold, fd: c_int, stream: &Stream) {
    leave_a_dead_ring(held, fd, stream);
    leave_a_stuck_ring(held, fd, stream);
}

/// To the kernel for good, if the receiver has taken nothing of a full ring for [`PATIENCE_NS`]. The kernel takes some
/// megabytes more than the ring: two programs that both send them before they read would wait for each other for ever.
#[cold]
fn leave_a_stuck_ring(held: &Hold, fd: c_int, stream: &Stream) {
    if !stream.is_far() && stream.is_stuck(raw::now_ns(), PATIENCE_NS) {
        to_kernel(held, fd, stream);
    }
}

/// To the kernel for good, if the other side has ended its direction or is gone: perhaps nobody reads the ring.
#[cold]
pub fn leave_a_dead_ring(held: &Hold, fd: c_int, stream: &Stream) {
    let said = raw::poll_one(fd, POLLRDHUP) & (POLLRDHUP | POLLHUP | POLLERR);
    if said == 0 || (said == POLLRDHUP && stream.peer_reads_on()) {
        return;
    }
    ends::notice(held, fd, said);
    to_kernel(held, fd, stream);
}

/// The kernel's own call on a connection that is not attached, counted.
#[cold]
pub fn plainly(held: &Hold, fd: c_int, pieces: Pieces<'_>) -> Result<usize, Errno> {
    let _noted = held.note_by_kernel(fd);
    let mut list = [NO_PIECE; 16];
    let went = raw::send_pieces(fd, pieces.list(usize::MAX, &mut list), 0)?;
    held.sent.fetch_add(went as u64, Ordering::Relaxed);
    STREAMS.counters().bytes_kernel_out.fetch_add(went as u64, Ordering::Relaxed);
    Ok(went)
}

/// Everything that is sent from now on goes by the kernel, also where the ring was never used: others may send by the
/// kernel uncounted. They must wait until the receiver has let go: [`await_kernel`].
pub fn to_kernel(held: &Hold, fd: c_int, stream: &Stream) {
    let mut tries = 0;
    let there = loop {
        let mut guard = stream.lock_send();
        if guard.is_nested() {
            // A signal handler: the interrupted sender will look itself.
            return;
        }
        if guard.route() != SendRoute::GiveBack {
            guard.switch_to_kernel();
            break true;
        }
        // What the peer wants back comes first.
        match guard.give_back(|bytes| raw::send_now(fd, bytes).map_err(std::io::Error::from_raw_os_error)) {
            Ok(()) => break true,
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) && tries < GIVE_TRIES => tries += 1,
            Err(_) => break false,
        }
        drop(guard);
        let mut room = [libc::pollfd { fd, events: libc::POLLOUT, revents: 0 }];
        let _ = raw::poll(&mut room, Some(GIVE_WAIT_NS), None);
    };
    if !there {
        let _ = raw::shutdown(fd, SHUT_RDWR);
    }
    far::tell(stream);
    // Room is the kernel's to tell from now on, also to those who share the socket.
    stream.rouse_senders();
    epoll::refresh(held);
}

/// After [`to_kernel`]: waits until anybody may send by the kernel. A receiver that does not let go costs the
/// connection.
pub fn await_kernel(fd: c_int, stream: &Stream) {
    let end = raw::now_ns() + LET_GO_NS;
    let mut urging = Urging::new();
    loop {
        let mut guard = stream.lock_send();
        if guard.is_nested() || guard.route() != SendRoute::NotYet {
            return;
        }
        drop(guard);
        if raw::now_ns() > end {
            let _ = raw::shutdown(fd, SHUT_RDWR);
            return;
        }
        urging.urge_and_yield(stream);
    }
}

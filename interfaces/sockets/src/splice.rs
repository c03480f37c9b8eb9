//! `splice` between a pipe and a connection: bytes of a ring are copied through a buffer.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use libc::{MSG_DONTWAIT, O_NONBLOCK, POLLERR, POLLHUP, POLLIN, POLLOUT, SPLICE_F_NONBLOCK, c_uint, iovec, ssize_t};
use weft_fabric::stream::Writable;

use super::conn::{self, Hold, NEVER, WAS_FULL};
use super::pieces::Pieces;
use super::raw::{self, Errno};
use super::{epoll, incoming, life, meet, outgoing, route};

/// A pipe that is writable has room for so much, and a piece takes one of its places.
const PIECE: usize = 4096;
/// How long a call that may not wait goes on to send what it has taken out of the pipe.
const PATIENCE_NS: u64 = 10_000_000_000;

/// `splice` without positions; `real` is the program's own call.
pub fn splice(from: c_int, to: c_int, length: usize, flags: c_uint, real: impl FnOnce() -> ssize_t) -> ssize_t {
    if conn::hold(from).is_none() && conn::hold(to).is_none() {
        return real();
    }
    // Only the kernel knows what a number is: the C library closes files of its own without a word to us, and a pipe
    // may have the number that a connection had.
    let outward = is_pipe(from);
    let (fd, pipe) = if outward { (to, from) } else { (from, to) };
    let Some(held) = conn::hold(fd) else { return real() };
    // The kernel refuses what is no pipe, and knows pipes at both ends.
    if length == 0 || !is_pipe(pipe) || is_pipe(fd) {
        return real();
    }
    if !meet::before_call(&held, fd) {
        return counted(&held, fd, outward, real);
    }
    let patient = flags & SPLICE_F_NONBLOCK == 0 && !is_nonblocking(pipe);
    let mut done = 0;
    let end = loop {
        let step =
            if outward { send(&held, fd, pipe, length - done) } else { receive(&held, fd, pipe, length - done, done) };
        match step {
            Ok(SpliceStep::Moved(bytes)) if bytes > 0 && done + bytes < length => done += bytes,
            Ok(SpliceStep::Moved(bytes)) => break Ok(done + bytes),
            Ok(SpliceStep::PipeNotReady) if done == 0 && patient => {
                if let Err(error) = raw::poll(&mut [asked(pipe, if outward { POLLIN } else { POLLOUT })], None, None) {
                    break Err(error);
                }
            }
            Ok(SpliceStep::PipeNotReady) => break Err(libc::EAGAIN),
            Err(error) => break Err(error),
        }
    };
    route::answer(if done > 0 { Ok(end.unwrap_or(done)) } else { end })
}

/// The kernel's, for now.
fn counted(held: &Hold, fd: c_int, outward: bool, real: impl FnOnce() -> ssize_t) -> ssize_t {
    let moved = real();
    if moved > 0 && held.state_now() != NEVER {
        let counter = if outward { &held.sent } else { &held.received };
        counter.fetch_add(moved as u64, Ordering::Relaxed);
        meet::after_call(held, fd);
    }
    moved
}

fn is_pipe(fd: c_int) -> bool {
    raw::fcntl(fd, libc::F_GETPIPE_SZ, 0).is_ok()
}

enum SpliceStep {
    /// 0: the end.
    Moved(usize),
    PipeNotReady,
}

fn asked(fd: c_int, events: i16) -> libc::pollfd {
    libc::pollfd { fd, events, revents: 0 }
}

fn is_nonblocking(fd: c_int) -> bool {
    raw::fcntl(fd, libc::F_GETFL, 0).is_ok_and(|flags| flags & O_NONBLOCK as usize != 0)
}

/// One piece from the connection into the pipe. What was taken is written, whatever happens.
fn receive(held: &Hold, fd: c_int, pipe: c_int, wanted: usize, done: usize) -> Result<SpliceStep, Errno> {
    if raw::poll_one(pipe, POLLOUT) & (POLLOUT | POLLERR) == 0 {
        return Ok(SpliceStep::PipeNotReady);
    }
    let mut buffer = [0u8; PIECE];
    let piece = [iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: wanted.min(PIECE) }];
    let flags = if done > 0 { MSG_DONTWAIT } else { 0 };
    let came = match incoming::receive(held, fd, Pieces::new(&piece), flags) {
        Err(error) if done > 0 && error != libc::EAGAIN => {
            // The bytes before it are told first.
            held.owe(error);
            return Err(error);
        }
        answer => answer?,
    };
    let mut written = 0;
    while written < came {
        match raw::write_some(pipe, &buffer[written..came]) {
            Ok(bytes) => written += bytes,
            // Another writer was faster.
            Err(libc::EAGAIN | libc::EINTR) => drop(raw::poll(&mut [asked(pipe, POLLOUT)], None, None)),
            Err(error) => return Err(error),
        }
    }
    Ok(SpliceStep::Moved(came))
}

/// One piece from the pipe into the connection, not more than has room where the program does not want to wait. What
/// was taken is sent, or the connection has failed.
fn send(held: &Hold, fd: c_int, pipe: c_int, wanted: usize) -> Result<SpliceStep, Errno> {
    let stream = held.stream();
    let room = match stream.writable() {
        _ if !stream.nonblocking() => PIECE,
        Writable::Ring(room) => room.min(PIECE),
        Writable::Kernel if raw::poll_one(fd, POLLOUT) == 0 => 0,
        Writable::Full => 0,
        _ => PIECE,
    };
    if room == 0 {
        held.set_flag(WAS_FULL);
        epoll::watch(held);
        return Err(libc::EAGAIN);
    }
    if raw::poll_one(pipe, POLLIN) & (POLLIN | POLLHUP) == 0 {
        return Ok(SpliceStep::PipeNotReady);
    }
    let mut buffer = [0u8; PIECE];
    let read = raw::read_some(pipe, &mut buffer[..wanted.min(room)])?;
    let mut sent = 0;
    let end = raw::now_ns() + PATIENCE_NS;
    while sent < read {
        let piece = [iovec { iov_base: buffer[sent..].as_mut_ptr().cast(), iov_len: read - sent }];
        match outgoing::send(held, fd, Pieces::new(&piece), 0) {
            Ok(bytes) => sent += bytes,
            // Another sender was faster, or a signal came. A peer that makes room seem to be there, and never to come,
            // is not waited for for ever; what was taken cannot be put back.
            Err(libc::EAGAIN | libc::EINTR) if raw::now_ns() < end || !stream.nonblocking() => {
                let _ = raw::poll(&mut [], Some(1_000_000), None);
            }
            Err(libc::EAGAIN | libc::EINTR) => {
                life::reset(held, fd);
                return Err(libc::ECONNRESET);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(SpliceStep::Moved(read))
}

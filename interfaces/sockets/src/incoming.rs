//! Receiving on an attached connection.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use libc::{MSG_DONTWAIT, MSG_PEEK, MSG_TRUNC, MSG_WAITALL};
use weft_fabric::stream::{ReceiveGuard, ReceiveRoute, Stream};

use super::conn::{ASK_KERNEL, Held};
use super::life;
use super::meet::STREAMS;
use super::pieces::{NO_PIECE, Pieces};
use super::raw::{self, Errno};
use super::signals::Slept;
use super::wait::{self, Want};

/// An empty ring is no end of the stream; every so many looks the kernel is asked.
const LOOKS: u32 = 16;

/// What one turn with the lock came to.
enum Turn {
    Came,
    /// So many bytes were looked at and not taken.
    Seen(usize),
    /// The ring is empty, or the kernel has nothing.
    Nothing,
    End,
    Failed(Errno),
}

/// Receives as the kernel would with these flags.
#[inline]
pub fn receive(held: &Held, fd: c_int, mut pieces: Pieces<'_>, flags: c_int) -> Result<usize, Errno> {
    let stream = held.stream();
    let all = pieces.left();
    let wanted = wanted(held, all, flags);
    let mut deadline = None;
    let mut asked = false;
    loop {
        match turn(held, fd, &stream, &mut pieces, flags) {
            Turn::Came if all - pieces.left() >= wanted => return Ok(all - pieces.left()),
            Turn::Came => continue,
            Turn::Seen(seen) => return Ok(seen),
            Turn::Nothing => {}
            end => return ended(held, all - pieces.left(), &end),
        }
        let may_wait = flags & MSG_DONTWAIT == 0 && !stream.nonblocking();
        if !asked && must_ask(held, &stream, may_wait) {
            asked = true;
            match ask_kernel(held, fd, &stream) {
                Turn::Nothing => {}
                Turn::Came | Turn::Seen(_) => continue,
                end => return ended(held, all - pieces.left(), &end),
            }
        }
        let done = all - pieces.left();
        if !may_wait {
            return some_or(done, libc::EAGAIN);
        }
        if deadline.is_none() {
            deadline = wait::deadline(held.receive_timeout.load(Ordering::Relaxed));
        }
        match wait::wait(held, fd, Want::Data { bytes: wanted - done }, deadline) {
            Slept::Woken => asked = false,
            Slept::TimedOut => return some_or(done, libc::EAGAIN),
            Slept::Interrupted => return some_or(done, libc::EINTR),
            Slept::Closed => return Ok(done + last(held, &stream, &mut pieces, flags)),
        }
    }
}

/// A receiving call without room for bytes waits as any other, and takes none.
#[cold]
pub fn await_byte(held: &Held, fd: c_int, flags: c_int) -> Result<usize, Errno> {
    let mut byte = 0u8;
    let piece = [libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 }];
    receive(held, fd, Pieces::new(&piece), flags & MSG_DONTWAIT | MSG_PEEK).map(|_| 0)
}

/// How many bytes a blocking call waits for.
#[inline]
fn wanted(held: &Held, all: usize, flags: c_int) -> usize {
    if flags & MSG_WAITALL != 0 && flags & MSG_PEEK == 0 {
        return all;
    }
    all.min(held.low_water.load(Ordering::Relaxed) as usize)
}

fn some_or(done: usize, error: Errno) -> Result<usize, Errno> {
    if done > 0 { Ok(done) } else { Err(error) }
}

/// The answer of a call when the stream has ended or failed after `done` bytes.
#[cold]
fn ended(held: &Held, done: usize, end: &Turn) -> Result<usize, Errno> {
    match *end {
        Turn::Failed(error) if done == 0 => Err(error),
        Turn::Failed(error) => {
            held.owed_error.store(error, Ordering::Relaxed);
            Ok(done)
        }
        _ => Ok(done),
    }
}

/// What is in the ring, when the descriptor is not ours to ask any more: the end follows.
#[cold]
fn last(held: &Held, stream: &Stream, pieces: &mut Pieces<'_>, flags: c_int) -> usize {
    let left = pieces.left();
    let mut guard = stream.lock_receive();
    match guard.route(received(held)) {
        ReceiveRoute::Ring => match from_ring(&mut guard, pieces, flags) {
            Turn::Seen(seen) => seen,
            _ => left - pieces.left(),
        },
        _ => 0,
    }
}

/// Whether the kernel is to be asked before a call says that there is nothing.
#[inline]
fn must_ask(held: &Held, stream: &Stream, may_wait: bool) -> bool {
    held.has_flag(ASK_KERNEL)
        || stream.peer_closing()
        || held.owed_error.load(Ordering::Relaxed) != 0
        || (!may_wait && held.empty_looks.fetch_add(1, Ordering::Relaxed) % LOOKS == LOOKS - 1)
}

#[inline]
fn turn(held: &Held, fd: c_int, stream: &Stream, pieces: &mut Pieces<'_>, flags: c_int) -> Turn {
    let mut guard = stream.lock_receive();
    match guard.route(received(held)) {
        ReceiveRoute::Ring => from_ring(&mut guard, pieces, flags),
        ReceiveRoute::Kernel { at_most } => from_kernel(&mut guard, held, fd, at_most, pieces, flags),
        ReceiveRoute::Broken => {
            drop(guard);
            life::reset(held, fd);
            Turn::Failed(libc::ECONNRESET)
        }
    }
}

#[inline]
fn from_ring(guard: &mut ReceiveGuard, pieces: &mut Pieces<'_>, flags: c_int) -> Turn {
    if flags & (MSG_PEEK | MSG_TRUNC) != 0 {
        return from_ring_oddly(guard, *pieces, pieces, flags);
    }
    let mut came = 0;
    while let Some((at, length)) = pieces.first() {
        // SAFETY: the program promises that its buffer is writable for this call.
        let pulled = guard.pull(unsafe { std::slice::from_raw_parts_mut(at, length) });
        pieces.advance(pulled);
        came += pulled;
        if pulled < length {
            break;
        }
    }
    guard.publish();
    count(came);
    match came {
        // We are a signal handler, and what it interrupted goes on only when we return: no waiting.
        0 if guard.is_nested() => Turn::Failed(libc::EAGAIN),
        0 => Turn::Nothing,
        _ => Turn::Came,
    }
}

#[inline]
fn received(held: &Held) -> u64 {
    held.stream().kernel_counts().1.load(Ordering::Relaxed)
}

#[inline]
fn count(bytes: usize) {
    STREAMS.counters().bytes_ring_in.fetch_add(bytes as u64, Ordering::Relaxed);
}

/// A look ahead (PEEK), or throwing away (TRUNC; nothing is written to the program's buffer).
#[cold]
fn from_ring_oddly(guard: &mut ReceiveGuard, mut ahead: Pieces<'_>, pieces: &mut Pieces<'_>, flags: c_int) -> Turn {
    let available = guard.available().min(pieces.left());
    if available == 0 {
        return if guard.is_nested() { Turn::Failed(libc::EAGAIN) } else { Turn::Nothing };
    }
    if flags & MSG_PEEK == 0 {
        let skipped = guard.skip(available);
        guard.publish();
        count(skipped);
        pieces.advance(skipped);
        return Turn::Came;
    }
    let mut seen = 0;
    while let Some((at, length)) = ahead.first() {
        let length = length.min(available - seen);
        if length == 0 {
            break;
        }
        if flags & MSG_TRUNC == 0 {
            // SAFETY: the program promises that its buffer is writable for this call.
            guard.peek(seen as u64, unsafe { std::slice::from_raw_parts_mut(at, length) });
        }
        ahead.advance(length);
        seen += length;
    }
    Turn::Seen(seen)
}

/// What is still to be read from the kernel, or is read from there for good. The lock is held: that makes the switch
/// safe, and this does not block.
fn from_kernel(
    guard: &mut ReceiveGuard,
    held: &Held,
    fd: c_int,
    at_most: Option<u64>,
    pieces: &mut Pieces<'_>,
    flags: c_int,
) -> Turn {
    let mut list = [NO_PIECE; 16];
    let limit = at_most.map_or(usize::MAX, |bytes| bytes as usize);
    let flags = flags & !MSG_WAITALL | MSG_DONTWAIT;
    match raw::receive_pieces(fd, pieces.list(limit, &mut list), flags) {
        Ok(0) => end_of_kernel(guard, held, pieces, flags, Turn::End),
        Ok(came) if flags & MSG_PEEK != 0 => Turn::Seen(came),
        Ok(came) => {
            held.stream().kernel_counts().1.fetch_add(came as u64, Ordering::Relaxed);
            STREAMS.counters().bytes_kernel_in.fetch_add(came as u64, Ordering::Relaxed);
            pieces.advance(came);
            Turn::Came
        }
        Err(libc::EAGAIN) => {
            held.take_flag(ASK_KERNEL);
            Turn::Nothing
        }
        Err(error) => end_of_kernel(guard, held, pieces, flags, Turn::Failed(error)),
    }
}

/// The kernel's stream has ended; the peer may have sent into the ring before.
fn end_of_kernel(guard: &mut ReceiveGuard, held: &Held, pieces: &mut Pieces<'_>, flags: c_int, end: Turn) -> Turn {
    match guard.route(received(held)) {
        ReceiveRoute::Ring => match from_ring(guard, pieces, flags) {
            Turn::Nothing => end,
            other => other,
        },
        _ => end,
    }
}

/// The ring is empty: what the kernel knows. `Came`: look again, there is something.
#[cold]
fn ask_kernel(held: &Held, fd: c_int, stream: &Stream) -> Turn {
    let owed = held.owed_error.swap(0, Ordering::Relaxed);
    if owed != 0 {
        return Turn::Failed(owed);
    }
    let answer = raw::look(fd);
    if answer == Err(libc::EAGAIN) {
        held.take_flag(ASK_KERNEL);
        return Turn::Nothing;
    }
    // What the peer sent before it ended is there by now.
    let mut guard = stream.lock_receive();
    match (guard.route(received(held)), answer) {
        (ReceiveRoute::Ring, _) if guard.available() > 0 => {
            held.owed_error.store(answer.err().unwrap_or(0), Ordering::Relaxed);
            Turn::Came
        }
        (ReceiveRoute::Kernel { .. }, Ok(bytes)) if bytes > 0 => Turn::Came,
        (_, Ok(0)) => Turn::End,
        (_, Ok(_)) => Turn::Came,
        (_, Err(error)) => Turn::Failed(error),
    }
}

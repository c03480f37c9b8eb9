//! Receiving on an attached connection.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use libc::{MSG_DONTWAIT, MSG_PEEK, MSG_TRUNC, MSG_WAITALL};
use weft_fabric::stream::{Readable, ReceiveGuard, ReceiveRoute, Stream};

use super::conn::{ASK_KERNEL, Hold, SHUT};
use super::ends;
use super::far;
use super::kernel_counts;
use super::life;
use super::meet::STREAMS;
use super::pieces::{NO_PIECE, Pieces};
use super::poll::NOTHING;
use super::raw::{self, Errno};
use super::signals::{self, Slept};
use super::wait::{self, Want};

/// An empty ring is no end of the stream; every so many looks the kernel is asked.
const LOOKS: u32 = 16;
/// Between two looks of a call that waits for more bytes than the kernel has, and must not take them.
const LOOK_NS: u64 = 1_000_000;
/// Only the ring may be asked.
const NO_DESCRIPTOR: c_int = -1;

/// What one turn with the lock came to.
enum Turn {
    Came,
    /// So many bytes were looked at and not taken.
    Seen(usize),
    /// The ring is empty, or the kernel has nothing.
    Nothing,
    End,
    Failed(Errno),
    /// The peer broke the rules of the ring.
    Broken,
}

/// Receives as the kernel would with these flags.
#[inline]
pub fn receive(held: &Hold, fd: c_int, mut pieces: Pieces<'_>, flags: c_int) -> Result<usize, Errno> {
    let stream = held.stream();
    let all = pieces.left();
    let wanted = wanted(&stream, all, flags);
    let mut deadline = None;
    let (mut asked, mut driven) = (false, false);
    let mut seen = 0;
    loop {
        match turn(held, fd, &stream, &mut pieces, flags) {
            Turn::Came if all - pieces.left() >= wanted => return Ok(all - pieces.left()),
            Turn::Came => continue,
            Turn::Seen(enough) if enough >= wanted => return Ok(enough),
            Turn::Seen(some) => seen = some,
            Turn::Nothing => {}
            _ if !wait::is_open(held, fd) => return closed(held, all, &stream, &mut pieces, flags),
            end => return ended(held, seen.max(all - pieces.left()), &end),
        }
        // Once: what comes for others may never end.
        if !driven && STREAMS.drive() {
            driven = true;
            continue;
        }
        let may_wait = flags & MSG_DONTWAIT == 0 && !stream.nonblocking();
        if !asked && must_ask(held, &stream, may_wait) {
            asked = true;
            match ask_kernel(held, fd, &stream) {
                Turn::Nothing => {}
                Turn::Came | Turn::Seen(_) => continue,
                _ if !wait::is_open(held, fd) => return closed(held, all, &stream, &mut pieces, flags),
                end => return ended(held, seen.max(all - pieces.left()), &end),
            }
        }
        // What a look ahead has seen is not done, and is there with the next look again.
        let done = seen.max(all - pieces.left());
        if !may_wait {
            // A program with a use of its own for the signal that calls it may do nothing but this.
            if wait::is_open(held, fd) {
                wait::serve(held, fd);
            }
            return some_or(done, libc::EAGAIN);
        }
        if deadline.is_none() {
            deadline = wait::deadline(stream.options().receive_timeout.load(Ordering::Relaxed));
        }
        let missing = wanted - (all - pieces.left());
        let slept = if seen > 0 && matches!(held.readable(), Readable::Kernel) {
            pause(deadline)
        } else {
            wait::wait(held, fd, Want::Data { bytes: missing }, deadline)
        };
        match slept {
            Slept::Woken => (asked, driven) = (false, false),
            Slept::TimedOut => return some_or(done, libc::EAGAIN),
            Slept::Interrupted => return some_or(done, libc::EINTR),
            Slept::Closed => return closed(held, all, &stream, &mut pieces, flags),
        }
    }
}

/// A receiving call without room for bytes waits as any other, and takes none.
#[cold]
pub fn await_byte(held: &Hold, fd: c_int, flags: c_int) -> Result<usize, Errno> {
    let mut byte = 0u8;
    let piece = [libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 }];
    receive(held, fd, Pieces::new(&piece), flags & MSG_DONTWAIT | MSG_PEEK).map(|_| 0)
}

/// The kernel would wake us at once for bytes that we have only looked at: a look now and then.
#[cold]
fn pause(deadline: Option<u64>) -> Slept {
    let left = wait::left_ns(deadline).map_or(LOOK_NS, |left| left.min(LOOK_NS));
    match signals::sleep(&mut [NOTHING, NOTHING], Some(left), deadline.is_none()) {
        Slept::TimedOut if wait::left_ns(deadline) != Some(0) => Slept::Woken,
        other => other,
    }
}

/// How many bytes a blocking call waits for. One that only looks cannot have more than a ring holds.
#[inline]
fn wanted(stream: &Stream, all: usize, flags: c_int) -> usize {
    if flags & MSG_WAITALL != 0 {
        return if flags & MSG_PEEK == 0 { all } else { all.min(wait::MOST_BYTES) };
    }
    all.min(stream.options().low_water.load(Ordering::Relaxed) as usize)
}

fn some_or(done: usize, error: Errno) -> Result<usize, Errno> {
    if done > 0 { Ok(done) } else { Err(error) }
}

/// The answer of a call when the stream has ended or failed after `done` bytes.
#[cold]
fn ended(held: &Hold, done: usize, end: &Turn) -> Result<usize, Errno> {
    match *end {
        Turn::Failed(error) if done == 0 => Err(error),
        // The kernel tells an error once, and then an end.
        Turn::End if done == 0 && held.owes() => Err(held.take_owed()),
        _ => {
            owe(held, end);
            Ok(done)
        }
    }
}

/// Another thread has closed the descriptor: what the kernel says about its number is not about us.
#[cold]
fn closed(held: &Hold, all: usize, stream: &Stream, pieces: &mut Pieces<'_>, flags: c_int) -> Result<usize, Errno> {
    let done = all - pieces.left();
    Ok(done + last(held, stream, pieces, flags))
}

/// What is in the ring, when the descriptor is not ours to ask any more: the end follows.
#[cold]
fn last(held: &Hold, stream: &Stream, pieces: &mut Pieces<'_>, flags: c_int) -> usize {
    let left = pieces.left();
    let mut guard = stream.lock_receive();
    match guard.route(received(held)) {
        ReceiveRoute::Ring => match from_ring(&mut guard, held, NO_DESCRIPTOR, pieces, flags) {
            Turn::Seen(seen) => seen,
            _ => left - pieces.left(),
        },
        _ => 0,
    }
}

/// Whether the kernel is to be asked before a call says that there is nothing.
#[inline]
fn must_ask(held: &Hold, stream: &Stream, may_wait: bool) -> bool {
    held.has_flag(ASK_KERNEL | SHUT)
        || stream.peer_closing()
        || held.owes()
        || (!may_wait && held.empty_looks.fetch_add(1, Ordering::Relaxed) % LOOKS == LOOKS - 1)
}

#[inline]
fn turn(held: &Hold, fd: c_int, stream: &Stream, pieces: &mut Pieces<'_>, flags: c_int) -> Turn {
    let mut guard = stream.lock_receive();
    match turn_held(&mut guard, held, fd, pieces, flags) {
        Turn::Broken => {
            drop(guard);
            life::reset(held, fd);
            Turn::Failed(libc::ECONNRESET)
        }
        other => other,
    }
}

#[inline]
fn turn_held(guard: &mut ReceiveGuard, held: &Hold, fd: c_int, pieces: &mut Pieces<'_>, flags: c_int) -> Turn {
    match guard.route(received(held)) {
        ReceiveRoute::Ring => from_ring(guard, held, fd, pieces, flags),
        ReceiveRoute::Kernel(at_most) => from_kernel(guard, held, fd, at_most, pieces, flags),
        ReceiveRoute::Broken => Turn::Broken,
    }
}

/// Receives what is there, for one who keeps the direction: nobody else takes anything out of it between two of these.
#[cold]
pub fn receive_held(guard: &mut ReceiveGuard, held: &Hold, fd: c_int, mut pieces: Pieces<'_>) -> Result<usize, Errno> {
    let all = pieces.left();
    let mut asked = false;
    loop {
        let found = match turn_held(guard, held, fd, &mut pieces, MSG_DONTWAIT) {
            Turn::Came => return Ok(all - pieces.left()),
            Turn::Nothing if asked => return Err(libc::EAGAIN),
            Turn::Nothing => match held.take_owed() {
                0 => ask_held(guard, held, fd, raw::look(fd)),
                owed => Turn::Failed(owed),
            },
            other => other,
        };
        match found {
            Turn::Came | Turn::Nothing => asked = true,
            Turn::Broken => return Err(libc::ECONNRESET),
            end => return ended(held, 0, &end),
        }
    }
}

#[inline]
fn from_ring(guard: &mut ReceiveGuard, held: &Hold, fd: c_int, pieces: &mut Pieces<'_>, flags: c_int) -> Turn {
    if flags & MSG_PEEK != 0 {
        return look_ahead(guard, held, fd, 0, *pieces, flags);
    }
    if flags & MSG_TRUNC != 0 {
        return skip_in_ring(guard, pieces);
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
    if came > 0 { Turn::Came } else { nothing(guard) }
}

fn nothing(guard: &ReceiveGuard) -> Turn {
    // A signal handler: what it interrupted goes on only when it returns, so there is no waiting.
    if guard.is_nested() { Turn::Failed(libc::EAGAIN) } else { Turn::Nothing }
}

#[inline]
fn received(held: &Hold) -> u64 {
    held.stream().kernel_counts().1.load(Ordering::Relaxed)
}

#[inline]
fn count(bytes: usize) {
    STREAMS.counters().bytes_ring_in.fetch_add(bytes as u64, Ordering::Relaxed);
}

/// Throws away (TRUNC; nothing is written to the program's buffer).
#[cold]
fn skip_in_ring(guard: &mut ReceiveGuard, pieces: &mut Pieces<'_>) -> Turn {
    let skipped = guard.skip(pieces.left());
    guard.publish();
    count(skipped);
    pieces.advance(skipped);
    if skipped > 0 { Turn::Came } else { nothing(guard) }
}

/// A look at all that is there, without taking it: `first` bytes that the kernel still has from before the switch, then
/// the ring's, then what the kernel has behind those.
#[cold]
fn look_ahead(
    guard: &mut ReceiveGuard,
    held: &Hold,
    fd: c_int,
    first: u64,
    mut pieces: Pieces<'_>,
    flags: c_int,
) -> Turn {
    let all = pieces.left();
    let first = usize::try_from(first).unwrap_or(usize::MAX).min(all);
    let (ring, more) = guard.ahead();
    let ring = ring.min(all - first);
    let mut list = [NO_PIECE; 16];
    let list = if more { pieces.list_around(first, ring, &mut list) } else { pieces.list(first, &mut list) };
    let by_kernel = match list.is_empty() {
        true => Err(libc::EAGAIN),
        false => raw::receive_pieces(fd, list, flags & !MSG_WAITALL | MSG_DONTWAIT),
    };
    let behind = match by_kernel {
        Ok(bytes) if bytes >= first => bytes - first,
        // The end, or an error, stands behind bytes of the ring: it is told when it is reached.
        Err(libc::EAGAIN) if first == 0 => 0,
        Err(error) if first == 0 => {
            held.owe(error);
            0
        }
        Ok(0) => return end_of_kernel(guard, held, fd, &mut pieces, flags, Turn::End),
        Ok(seen) => return Turn::Seen(seen),
        Err(libc::EAGAIN) => return Turn::Nothing,
        Err(error) => return end_of_kernel(guard, held, fd, &mut pieces, flags, Turn::Failed(error)),
    };
    if flags & MSG_TRUNC == 0 {
        pieces.advance(first);
        copy_ahead(guard, pieces, ring);
    }
    match first + ring + behind {
        0 => nothing(guard),
        seen => Turn::Seen(seen),
    }
}

/// Copies `bytes` of the ring without taking them.
fn copy_ahead(guard: &mut ReceiveGuard, mut pieces: Pieces<'_>, bytes: usize) {
    let mut copied = 0;
    while let Some((at, length)) = pieces.first().filter(|_| copied < bytes) {
        let length = length.min(bytes - copied);
        // SAFETY: the program promises that its buffer is writable for this call.
        guard.peek(copied as u64, unsafe { std::slice::from_raw_parts_mut(at, length) });
        pieces.advance(length);
        copied += length;
    }
}

/// How many bytes a receiver could take now, on both ways together (`FIONREAD`).
#[cold]
pub fn pending(held: &Hold, fd: c_int) -> usize {
    let stream = held.stream();
    let mut guard = stream.lock_receive();
    let in_kernel = || raw::ioctl_number(fd, libc::FIONREAD).unwrap_or(0) as u64;
    let first = match guard.route(received(held)) {
        ReceiveRoute::Ring if guard.is_nested() => {
            return if let Readable::Ring(bytes) = stream.readable(received(held)) { bytes } else { 0 };
        }
        ReceiveRoute::Ring => 0,
        ReceiveRoute::Kernel(Some(first)) => first,
        _ => return in_kernel() as usize,
    };
    let in_kernel = if first > 0 || guard.ahead().1 { in_kernel() } else { 0 };
    match guard.ahead() {
        _ if in_kernel < first => in_kernel as usize,
        (ring, true) => ring + in_kernel as usize,
        (ring, false) => ring + first as usize,
    }
}

/// What is still to be read from the kernel, or is read from there for good. The lock is held: that makes the switch
/// safe, and this does not block.
fn from_kernel(
    guard: &mut ReceiveGuard,
    held: &Hold,
    fd: c_int,
    at_most: Option<u64>,
    pieces: &mut Pieces<'_>,
    flags: c_int,
) -> Turn {
    if let Some(first) = at_most
        && flags & MSG_PEEK != 0
    {
        return look_ahead(guard, held, fd, first, *pieces, flags);
    }
    let mut list = [NO_PIECE; 16];
    let limit = at_most.map_or(usize::MAX, |bytes| bytes as usize);
    let flags = flags & !MSG_WAITALL | MSG_DONTWAIT;
    match raw::receive_pieces(fd, pieces.list(limit, &mut list), flags) {
        Ok(0) => end_of_kernel(guard, held, fd, pieces, flags, Turn::End),
        Ok(came) if flags & MSG_PEEK != 0 => Turn::Seen(came),
        Ok(came) => {
            held.stream().kernel_counts().1.fetch_add(came as u64, Ordering::Relaxed);
            STREAMS.counters().bytes_kernel_in.fetch_add(came as u64, Ordering::Relaxed);
            if held.stream().is_far() {
                far::after_receive(came);
            }
            pieces.advance(came);
            // What follows in the ring came before the program asked: it belongs to the same answer.
            if limit == came && guard.route(received(held)) == ReceiveRoute::Ring {
                if pieces.left() > 0 {
                    from_ring(guard, held, fd, pieces, flags);
                }
                // Another one who looked before, and sleeps since, was to be woken by what we have taken; the ring may
                // have more, of which nobody else tells it. Once in the life of a connection.
                held.stream().rouse_receivers();
            }
            Turn::Came
        }
        Err(libc::EAGAIN) => {
            held.take_flag(ASK_KERNEL);
            Turn::Nothing
        }
        Err(error) => end_of_kernel(guard, held, fd, pieces, flags, Turn::Failed(error)),
    }
}

/// The kernel's stream has ended; the peer may have sent into the ring before, or was to give back what it had sent
/// there when it died.
#[cold]
fn end_of_kernel(
    guard: &mut ReceiveGuard,
    held: &Hold,
    fd: c_int,
    pieces: &mut Pieces<'_>,
    flags: c_int,
    end: Turn,
) -> Turn {
    // An end that this side has made itself says nothing about the other one.
    if kernel_counts::has_ended(fd) {
        guard.kernel_ended(received(held));
    }
    let reset = match end {
        Turn::End => ends::judge_locked(held, fd),
        Turn::Failed(error) => {
            ends::told(held, fd, error);
            false
        }
        _ => false,
    };
    match guard.route(received(held)) {
        ReceiveRoute::Ring => match from_ring(guard, held, fd, pieces, flags) {
            Turn::Nothing => end_now(held, fd, end, reset),
            other => {
                owe(held, &end);
                other
            }
        },
        _ => end_now(held, fd, end, reset),
    }
}

/// The end as the kernel tells of it by now, if it became a reset meanwhile.
fn end_now(held: &Hold, fd: c_int, end: Turn, reset: bool) -> Turn {
    if !reset {
        return end;
    }
    match (held.take_owed(), raw::look(fd)) {
        (0, Err(error)) => Turn::Failed(error),
        (0, Ok(_)) => Turn::End,
        (error, _) => Turn::Failed(error),
    }
}

/// What the kernel says once only is told behind the bytes that came before it.
fn owe(held: &Hold, end: &Turn) {
    if let Turn::Failed(error) = *end {
        held.owe(error);
    }
}

/// The ring is empty: what the kernel knows. `Came`: look again, there is something.
#[cold]
fn ask_kernel(held: &Hold, fd: c_int, stream: &Stream) -> Turn {
    far::look_after();
    let owed = held.take_owed();
    if owed != 0 {
        return Turn::Failed(owed);
    }
    let answer = raw::look(fd);
    if answer == Err(libc::EAGAIN) {
        held.take_flag(ASK_KERNEL);
        return Turn::Nothing;
    }
    ask_held(&mut stream.lock_receive(), held, fd, answer)
}

/// The same, after the kernel's answer to a look.
#[cold]
fn ask_held(guard: &mut ReceiveGuard, held: &Hold, fd: c_int, answer: Result<usize, Errno>) -> Turn {
    if answer == Err(libc::EAGAIN) {
        return Turn::Nothing;
    }
    // What the peer sent before it ended is there by now.
    if !matches!(answer, Ok(1..)) && kernel_counts::has_ended(fd) {
        guard.kernel_ended(received(held));
    }
    let reset = answer == Ok(0) && ends::judge_locked(held, fd);
    if let Err(error) = answer {
        ends::told(held, fd, error);
    }
    match (guard.route(received(held)), answer) {
        (ReceiveRoute::Ring, _) if guard.available() > 0 => {
            if let Err(error) = answer {
                held.owe(error);
            }
            Turn::Came
        }
        (ReceiveRoute::Kernel(_), Ok(bytes)) if bytes > 0 => Turn::Came,
        (_, Ok(0)) => end_now(held, fd, Turn::End, reset),
        (_, Ok(_)) => Turn::Came,
        (_, Err(error)) => Turn::Failed(error),
    }
}

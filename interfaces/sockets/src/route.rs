//! Where a data call goes: to the C library (what is none of our business, or the kernel's for good), there and counted
//! (what may be accelerated one day), or to the rings.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use libc::{MSG_DONTWAIT, MSG_ERRQUEUE, MSG_FASTOPEN, MSG_OOB, MSG_PEEK, MSG_ZEROCOPY, iovec, off_t, ssize_t};
use weft_fabric::stream::KernelOnly;

use super::conn::{self, ATTACHED, FAR, Hold, NEVER, RECEIVED, SENT};
use super::meet::{self, STREAMS};
use super::pieces::Pieces;
use super::raw::{self, Errno};
use super::{attend, early, expect, far, incoming, life, outgoing, passed, signals};

/// Sends with these flags only the kernel can do; the connection is the kernel's from then on.
const KERNEL_SENDS: c_int = MSG_OOB | MSG_FASTOPEN | MSG_ZEROCOPY;
const KERNEL_RECEIVES: c_int = MSG_OOB | MSG_ERRQUEUE;
/// A file is sent in pieces of this size.
const FILE_PIECE: usize = 16 << 10;

/// What a C function answers.
pub fn answer(result: Result<usize, Errno>) -> ssize_t {
    match result {
        Ok(count) => count as ssize_t,
        Err(error) => {
            raw::set_errno(error);
            -1
        }
    }
}

/// `read` and its kin: as [`receive`], but without room for bytes they do not wait for any.
#[inline]
pub fn read(fd: c_int, pieces: &[iovec], flags: c_int, real: impl Fn() -> ssize_t) -> ssize_t {
    if pieces.iter().all(|piece| piece.iov_len == 0) { real() } else { receive(fd, pieces, flags, real) }
}

/// A receiving call; `real` is the program's own call in the C library.
#[inline]
pub fn receive(fd: c_int, pieces: &[iovec], flags: c_int, real: impl Fn() -> ssize_t) -> ssize_t {
    let real = || attend::undisturbed_call(fd, libc::SO_RCVTIMEO, &real);
    let Some(held) = conn::hold(fd) else { return real() };
    if meet::before_call(&held, fd) {
        signals::may_be_cancelled();
        let pieces = Pieces::new(pieces);
        if flags & KERNEL_RECEIVES != 0 {
            return real();
        }
        if pieces.left() == 0 {
            return answer(incoming::await_byte(&held, fd, flags));
        }
        return answer(incoming::receive(&held, fd, pieces, flags));
    }
    receive_counted(held, fd, pieces, flags, real)
}

#[cold]
fn receive_counted(held: Hold, fd: c_int, pieces: &[iovec], flags: c_int, real: impl FnOnce() -> ssize_t) -> ssize_t {
    if held.owes() {
        let owed = held.take_owed();
        if owed != 0 {
            return answer(Err(owed));
        }
    }
    far::before_receive(&held, fd, flags);
    if flags & KERNEL_RECEIVES == 0
        && expect::applies(&held)
        && let Some(result) = expect::receive(&held, fd, Pieces::new(pieces), flags)
    {
        return answer(result);
    }
    if held.state_now() == NEVER {
        let came = real();
        if held.has_flag(FAR) {
            far::after_receive(came.max(0) as usize);
        }
        if flags & (MSG_PEEK | KERNEL_RECEIVES) == 0 {
            held.count_carried(RECEIVED, came.max(0) as u64);
        }
        return came;
    }
    if flags & KERNEL_RECEIVES != 0 {
        meet::give_up(&held, fd, KernelOnly::Flag(flags & KERNEL_RECEIVES).into());
    }
    let came = real();
    if came > 0 && flags & MSG_PEEK == 0 {
        held.received.fetch_add(came as u64, Ordering::Relaxed);
        STREAMS.counters().bytes_kernel_in.fetch_add(came as u64, Ordering::Relaxed);
        meet::after_call(&held, fd);
    }
    came
}

/// What a call with these buffers asks for.
pub fn bytes_of(pieces: &[iovec]) -> usize {
    Pieces::new(pieces).left()
}

/// A sending call; `real` is the program's own call in the C library.
#[inline]
pub fn send(fd: c_int, pieces: &[iovec], flags: c_int, real: impl Fn() -> ssize_t) -> ssize_t {
    let real = || attend::undisturbed_call(fd, libc::SO_SNDTIMEO, &real);
    let Some(held) = conn::hold(fd) else { return real() };
    far::before_send(&held);
    if flags & KERNEL_SENDS == 0 && meet::before_call(&held, fd) {
        signals::may_be_cancelled();
        let pieces = Pieces::new(pieces);
        if pieces.left() == 0 {
            return real();
        }
        return answer(outgoing::send(&held, fd, pieces, flags));
    }
    let _noted = held.note_by_kernel(fd);
    if flags & KERNEL_SENDS == 0
        && (expect::applies(&held) || early::applies(&held, bytes_of(pieces)))
        && let Some(result) = expect::send(&held, fd, Pieces::new(pieces), flags)
    {
        return answer(result);
    }
    send_counted(held, fd, flags, real)
}

#[cold]
fn send_counted(held: Hold, fd: c_int, flags: c_int, real: impl FnOnce() -> ssize_t) -> ssize_t {
    if flags & KERNEL_SENDS != 0 {
        life::hand_back(fd, KernelOnly::Flag(flags & KERNEL_SENDS));
    }
    let went = real();
    if held.state_now() == NEVER {
        held.count_carried(SENT, went.max(0) as u64);
        return went;
    }
    if went > 0 {
        held.sent.fetch_add(went as u64, Ordering::Relaxed);
        STREAMS.counters().bytes_kernel_out.fetch_add(went as u64, Ordering::Relaxed);
        meet::after_call(&held, fd);
    }
    went
}

/// `sendfile`: on an attached connection the file is read and sent piece by piece; its position moves by what was sent.
///
/// # Safety
/// `offset` is null or a place that may be read and written.
pub unsafe fn send_file(
    fd: c_int,
    file: c_int,
    offset: *mut off_t,
    count: usize,
    real: impl FnOnce() -> ssize_t,
) -> ssize_t {
    let Some(held) = conn::hold(fd) else { return real() };
    far::before_send(&held);
    if !meet::before_call(&held, fd) && !early::applies(&held, count) {
        let _noted = held.note_by_kernel(fd);
        return send_counted(held, fd, 0, real);
    }
    // SAFETY: the caller's promise.
    let given = (!offset.is_null()).then(|| unsafe { *offset });
    let result = given.map_or_else(|| raw::seek(file, 0, libc::SEEK_CUR).map(|at| at as i64), Ok);
    let start = match result {
        Ok(start) => start,
        Err(error) => return answer(Err(error)),
    };
    let sent = send_file_from(&held, fd, file, start, count);
    if let Ok(sent) = sent {
        match given {
            // SAFETY: the caller's promise.
            Some(_) => unsafe { *offset = start + sent as i64 },
            None => drop(raw::seek(file, sent as i64, libc::SEEK_CUR)),
        }
    }
    answer(sent)
}

fn send_file_from(held: &Hold, fd: c_int, file: c_int, start: i64, count: usize) -> Result<usize, Errno> {
    let mut buffer = [0u8; FILE_PIECE];
    let mut sent = 0;
    while sent < count {
        if held.state() != ATTACHED && !early::applies(held, count - sent) {
            return rest_of_file(held, fd, file, start, (sent, count));
        }
        let wanted = (count - sent).min(FILE_PIECE);
        let read = match raw::read_at(file, &mut buffer[..wanted], start + sent as i64) {
            Ok(0) => break,
            Ok(read) => read,
            Err(_) if sent > 0 => break,
            Err(error) => return Err(error),
        };
        let piece = [iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: read }];
        let pieces = Pieces::new(&piece);
        let result = if held.state() == ATTACHED {
            outgoing::send(held, fd, pieces, 0)
        } else {
            expect::send(held, fd, pieces, 0).unwrap_or_else(|| outgoing::plainly(held, fd, pieces))
        };
        match result {
            Ok(went) => {
                sent += went;
                if went < read {
                    break;
                }
            }
            Err(_) if sent > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}

/// The other end did not come: the kernel sends what is left from `sent`.
#[cold]
fn rest_of_file(
    held: &Hold,
    fd: c_int,
    file: c_int,
    start: i64,
    (sent, count): (usize, usize),
) -> Result<usize, Errno> {
    match raw::send_file(fd, file, start + sent as i64, count - sent) {
        Ok(went) => {
            held.sent.fetch_add(went as u64, Ordering::Relaxed);
            STREAMS.counters().bytes_kernel_out.fetch_add(went as u64, Ordering::Relaxed);
            Ok(sent + went)
        }
        Err(_) if sent > 0 => Ok(sent),
        Err(error) => Err(error),
    }
}

/// The flags of `preadv2` and `pwritev2` that a socket knows.
pub fn flags_of_vector_call(flags: c_int) -> c_int {
    const RWF_NOWAIT: c_int = 8;
    if flags & RWF_NOWAIT != 0 { MSG_DONTWAIT } else { 0 }
}

/// The program is about to pass descriptors to another process: connections among them that were used become the
/// kernel's.
///
/// # Safety
/// `header` is a valid message header.
pub unsafe fn before_passing(header: &libc::msghdr) {
    if header.msg_controllen == 0 || header.msg_control.is_null() {
        return;
    }
    // SAFETY: the caller's header describes its control messages; the macros walk inside of them.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while !message.is_null() {
            if (*message).cmsg_level == libc::SOL_SOCKET && (*message).cmsg_type == libc::SCM_RIGHTS {
                let bytes = (*message).cmsg_len.saturating_sub(libc::CMSG_LEN(0) as usize);
                let fds = libc::CMSG_DATA(message).cast::<c_int>();
                for at in 0..bytes / size_of::<c_int>() {
                    passed::before(fds.add(at).read_unaligned());
                }
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
}

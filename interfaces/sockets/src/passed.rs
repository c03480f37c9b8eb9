//! Connections that are passed to another process before anybody has used them: servers that accept in one process and
//! serve in others.
//!
//! Two processes that move bytes of one connection each know only their own. So who passes one *vouches* for it, by a
//! mark that the kernel keeps with the open socket, and *holds* it, by a lock of the kernel's on the socket that ends
//! when he closes it or dies; to him it is the kernel's. Who is passed it counts from its beginning, and may show it to
//! the rendezvous once the lock is his and the mark still there. Who passes one a second time, copies it or forks takes
//! the mark away: then it stays the kernel's for everybody. So it does where it comes back to who has it still.
//!
//! The mark is the signal that tells of input (`F_SETSIG`), set to the one that it is anyway; it means nothing to
//! anybody else.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use libc::{F_SETLK, SCM_RIGHTS, SOL_SOCKET, msghdr};
use weft_fabric::stream::Reason;

use super::conn::{self, Connection, FRESH, Hold, NEVER, PASSED, TAKEN};
use super::table::{self, Entry};
use super::{family, kernel_counts, life, raw};

const F_SETSIG: c_int = 10;
const F_GETSIG: c_int = 11;
const MARK: usize = libc::SIGIO as usize;

/// Whether this process has the lock, from now on.
fn hold(fd: c_int) -> bool {
    // SAFETY: zero is a valid one.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as i16;
    lock.l_len = 1;
    raw::fcntl(fd, F_SETLK, &raw mut lock as usize).is_ok()
}

/// Nobody is to take it up any more.
fn revoke(fd: c_int) {
    // Another signal is the program's own.
    if raw::fcntl(fd, F_GETSIG, 0) == Ok(MARK) {
        let _ = raw::fcntl(fd, F_SETSIG, 0);
    }
}

/// More than one may have it from now on, in this process or in a child.
pub fn spread(conn: &Connection, fd: c_int) {
    if conn.has_flag(PASSED | TAKEN) {
        revoke(fd);
    }
}

/// Before `fd` is passed to another process.
pub fn before(fd: c_int) {
    let _errno = raw::KeepErrno::new();
    if let Some(held) = conn::hold(fd) {
        if is_unused(&held) && hold(fd) && held.change(FRESH, NEVER) {
            held.set_flag(PASSED);
            let _ = raw::fcntl(fd, F_SETSIG, MARK);
            return;
        }
        spread(&held, fd);
    }
    life::hand_back(fd, Reason::Passed);
}

/// Whether nobody has moved bytes of it, is about to, or could by another descriptor.
fn is_unused(held: &Hold) -> bool {
    let moved = [&held.sent, &held.received].map(|count| count.load(Ordering::Relaxed));
    moved == [0, 0] && held.is_last_descriptor() && family::alone(held) && !held.has_flag(TAKEN)
}

/// Descriptors that came with a message, which stays where it is if it was only `peeked` at.
///
/// # Safety
/// `header` is the program's, as the kernel has filled it.
pub unsafe fn after_message(header: &msghdr, peeked: bool) {
    if header.msg_controllen == 0 || header.msg_control.is_null() {
        return;
    }
    // SAFETY: the caller's: the kernel has written these control messages; the macros walk inside of them.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while !message.is_null() {
            if (*message).cmsg_level == SOL_SOCKET && (*message).cmsg_type == SCM_RIGHTS {
                let bytes = ((*message).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
                let came = libc::CMSG_DATA(message).cast::<c_int>();
                (0..bytes / size_of::<c_int>()).for_each(|at| take_up(came.add(at).read_unaligned(), peeked));
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
}

fn take_up(fd: c_int, peeked: bool) {
    let _errno = raw::KeepErrno::new();
    if peeked {
        // Who looks first gets another descriptor of it with the message.
        revoke(fd);
    } else if raw::fcntl(fd, F_GETSIG, 0) == Ok(MARK) && kernel_counts::is_connection(fd) {
        if let Some(ours) = held_here(fd) {
            // It has come back to who still has it: one more descriptor of the same socket, which is the kernel's here.
            return conn::duplicate(ours, fd);
        }
        conn::note_accepted(fd);
        if let Some(held) = conn::hold(fd) {
            held.set_flag(TAKEN);
        }
    }
}

/// The descriptor by which this process holds the socket that came as `fd`, which it has passed itself.
fn held_here(fd: c_int) -> Option<c_int> {
    let cookie = raw::cookie(fd).ok()?;
    let is_it = |(ours, entry): &(c_int, Entry)| {
        *ours != fd
            && matches!(entry, Entry::Connection(index) if conn::at(*index).has_flag(PASSED))
            && raw::cookie(*ours).is_ok_and(|its| its == cookie)
    };
    table::entries(0, c_int::MAX).find(is_it).map(|(ours, _)| ours)
}

/// Whether nobody else uses the socket that this process was passed, nor can any more. Any other one is its own.
pub fn is_ours(held: &Hold, fd: c_int) -> bool {
    !held.has_flag(TAKEN) || (raw::fcntl(fd, F_GETSIG, 0) == Ok(MARK) && hold(fd))
}

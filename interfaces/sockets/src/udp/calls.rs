//! What the calls of C come to on a datagram socket of ours; on anything else they are handed on.

use std::ffi::{c_int, c_uint};

use libc::{SOL_SOCKET, iovec, mmsghdr, msghdr, sockaddr, socklen_t, ssize_t, timespec};
use weft_fabric::stream::Reason;

use crate::real;

use super::socket::{self, Held};
use super::{gate, incoming, names, outgoing};

fn header_of(pieces: &[iovec]) -> msghdr {
    // SAFETY: zeros are an empty header.
    let mut header: msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = pieces.as_ptr().cast_mut();
    header.msg_iovlen = pieces.len() as _;
    header
}

/// A receiving call with buffers and, where `size` is not null, room for a name.
///
/// # Safety
/// The program's own arguments.
pub unsafe fn receive(
    fd: c_int,
    pieces: &[iovec],
    flags: c_int,
    (name, size): (*mut sockaddr, *mut socklen_t),
    plain: impl FnOnce() -> ssize_t,
) -> ssize_t {
    let Some(held) = socket::hold(fd) else { return plain() };
    let mut header = header_of(pieces);
    if !name.is_null() {
        if size.is_null() {
            return plain();
        }
        header.msg_name = name.cast();
        // SAFETY: the program's own argument. A negative one is the kernel's to refuse.
        header.msg_namelen = unsafe { *size };
    }
    // SAFETY: the caller's promise.
    unsafe {
        let came = incoming::receive(held, fd, &mut header, flags);
        if came >= 0 && !name.is_null() {
            *size = header.msg_namelen;
        }
        came
    }
}

/// `recvmsg`.
///
/// # Safety
/// The program's own arguments.
pub unsafe fn receive_header(fd: c_int, header: *mut msghdr, flags: c_int, plain: impl FnOnce() -> ssize_t) -> ssize_t {
    match socket::hold(fd) {
        // SAFETY: the caller's promise.
        Some(held) if !header.is_null() => unsafe { incoming::receive(held, fd, &mut *header, flags) },
        _ => plain(),
    }
}

/// `recvmmsg`.
///
/// # Safety
/// The program's own arguments.
pub unsafe fn receive_headers(
    fd: c_int,
    headers: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    // SAFETY: the caller's promise.
    let plain = || unsafe { real::recvmmsg(fd, headers, count, flags, timeout) };
    if socket::hold(fd).is_none() || headers.is_null() || count == 0 {
        return plain();
    }
    let mut now = flags & !libc::MSG_WAITFORONE;
    if !timeout.is_null() {
        // The time limit is the kernel's: what is there already, or its own call.
        now |= libc::MSG_DONTWAIT;
    }
    for at in 0..count as usize {
        let Some(held) = socket::hold(fd) else { return at as c_int };
        // SAFETY: the program promises `count` headers.
        unsafe {
            let one = headers.add(at);
            let came = incoming::receive(held, fd, &mut (*one).msg_hdr, now);
            if came < 0 && at == 0 && !timeout.is_null() && crate::raw::errno() == libc::EAGAIN {
                let Some(held) = socket::hold(fd) else { return plain() };
                let rest = gate::rest(held, fd);
                return if rest.waiting() {
                    drop(rest);
                    receive_headers(fd, headers, count, flags, timeout)
                } else {
                    plain()
                };
            }
            if came < 0 {
                return if at > 0 { at as c_int } else { -1 };
            }
            (*one).msg_len = came as c_uint;
        }
        if flags & libc::MSG_WAITFORONE != 0 {
            now |= libc::MSG_DONTWAIT;
        }
    }
    count as c_int
}

/// A sending call with buffers and, where `name` is not null, a name.
///
/// # Safety
/// The program's own arguments.
pub unsafe fn send(
    fd: c_int,
    pieces: &[iovec],
    flags: c_int,
    (name, size): (*const sockaddr, socklen_t),
    plain: impl FnOnce() -> ssize_t,
) -> ssize_t {
    let Some(held) = socket::hold(fd) else { return plain() };
    let mut header = header_of(pieces);
    if !name.is_null() {
        header.msg_name = name.cast_mut().cast();
        header.msg_namelen = size;
    }
    // SAFETY: the caller's promise.
    unsafe { outgoing::send(&held, fd, &header, flags) }
}

/// `sendmsg`.
///
/// # Safety
/// The program's own arguments.
pub unsafe fn send_header(fd: c_int, header: *const msghdr, flags: c_int, plain: impl FnOnce() -> ssize_t) -> ssize_t {
    match socket::hold(fd) {
        // SAFETY: the caller's promise.
        Some(held) if !header.is_null() => unsafe { outgoing::send(&held, fd, &*header, flags) },
        _ => plain(),
    }
}

/// `sendmmsg`.
///
/// # Safety
/// The program's own arguments.
pub unsafe fn send_headers(
    fd: c_int,
    headers: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    plain: impl FnOnce() -> c_int,
) -> c_int {
    let Some(held) = socket::hold(fd).filter(|_| !headers.is_null()) else { return plain() };
    for at in 0..count as usize {
        // SAFETY: the program promises `count` headers.
        unsafe {
            let one = headers.add(at);
            let went = outgoing::send(&held, fd, &(*one).msg_hdr, flags);
            if went < 0 {
                return if at > 0 { at as c_int } else { -1 };
            }
            (*one).msg_len = went as c_uint;
        }
    }
    count as c_int
}

/// Before `connect`: from then on only one peer is heard, or again all.
pub fn before_connect(fd: c_int) -> Option<Held> {
    let held = socket::hold(fd)?;
    held.connect(None);
    gate::leave_all(&held);
    Some(held)
}

/// After it has answered 0.
///
/// # Safety
/// The program's address.
pub unsafe fn after_connect(held: &Held, name: *const sockaddr, size: socklen_t) {
    // SAFETY: the caller's promise.
    held.connect(unsafe { names::read(name.cast(), size as usize, held.family()) });
}

/// Before `setsockopt`: options that change nothing about what is received, or from whom, leave a socket to us.
pub fn before_set(fd: c_int, level: c_int, name: c_int) {
    const SO_RCVTIMEO_NEW: c_int = 66;
    const SO_SNDTIMEO_NEW: c_int = 67;
    let harmless = match level {
        SOL_SOCKET => matches!(
            name,
            libc::SO_RCVBUF
                | libc::SO_SNDBUF
                | libc::SO_RCVBUFFORCE
                | libc::SO_SNDBUFFORCE
                | libc::SO_RCVTIMEO
                | libc::SO_SNDTIMEO
                | SO_RCVTIMEO_NEW
                | SO_SNDTIMEO_NEW
                | libc::SO_BROADCAST
                | libc::SO_PRIORITY
        ),
        libc::IPPROTO_IP => matches!(name, libc::IP_TOS | libc::IP_MTU_DISCOVER | libc::IP_RECVERR),
        libc::IPPROTO_IPV6 => matches!(name, libc::IPV6_V6ONLY | libc::IPV6_MTU_DISCOVER | libc::IPV6_RECVERR),
        _ => false,
    };
    if !harmless {
        gate::withdraw(fd, Reason::Option);
    }
}

/// The length of the datagram that comes next, if it comes by a ring.
pub fn first_length(fd: c_int) -> Option<usize> {
    let held = socket::hold(fd)?;
    held.live_channels().find_map(|(_, channel)| channel.lock_receive()?.first().map(|(length, _)| length))
}

//! What the calls of C come to on a datagram socket of ours; on anything else they are handed on.

use std::ffi::{c_int, c_uint};
use std::sync::atomic::Ordering;

use libc::{MSG_DONTWAIT, MSG_WAITFORONE, SOL_SOCKET, iovec, mmsghdr, msghdr, sockaddr, socklen_t, ssize_t, timespec};
use weft_fabric::stream::KernelOnly;

use crate::{raw, real};

use super::incoming::ReceiveWay;
use super::socket::{self, OFFERED, SocketHold};
use super::{gate, incoming, names, outgoing, pairs};

/// The kernel's own limit of buffers, and of datagrams in one call.
const MOST_PIECES: usize = 1024;

fn header_of(pieces: &[iovec]) -> msghdr {
    // SAFETY: zeros are an empty header.
    let mut header: msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = pieces.as_ptr().cast_mut();
    header.msg_iovlen = pieces.len() as _;
    header
}

/// Whether the kernel refuses or cuts such arguments.
fn is_odd(header: &msghdr) -> bool {
    header.msg_iovlen > MOST_PIECES || header.msg_namelen.cast_signed() < 0
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
    if !name.is_null() && !size.is_null() {
        header.msg_name = name.cast();
        // SAFETY: the program's own argument.
        header.msg_namelen = unsafe { *size };
    }
    let odd = is_odd(&header) || (!name.is_null() && size.is_null());
    // SAFETY: the caller's promise.
    unsafe {
        match incoming::way(held, fd, flags, odd) {
            ReceiveWay::Kernel => plain(),
            // Who has sent it nobody would know.
            ReceiveWay::Counted(rest) if name.is_null() && rest.connected().is_none() => {
                incoming::by_kernel(&rest, fd, &mut header, flags)
            }
            ReceiveWay::Counted(rest) => {
                let came = plain();
                let length = if size.is_null() { 0 } else { header.msg_namelen.min(*size) };
                incoming::count(&rest, fd, (came, flags), name.cast(), length as usize);
                came
            }
            ReceiveWay::Rings(held) => {
                let came = incoming::receive(held, fd, &mut header, flags);
                if came >= 0 && !name.is_null() {
                    *size = header.msg_namelen;
                }
                came
            }
        }
    }
}

/// `recvmsg`.
///
/// # Safety
/// The program's own arguments.
pub unsafe fn receive_header(fd: c_int, header: *mut msghdr, flags: c_int, plain: impl FnOnce() -> ssize_t) -> ssize_t {
    let Some(held) = socket::hold(fd).filter(|_| !header.is_null()) else { return plain() };
    // SAFETY: the caller's promise.
    unsafe {
        match incoming::way(held, fd, flags, is_odd(&*header)) {
            ReceiveWay::Kernel => plain(),
            ReceiveWay::Counted(rest) if (*header).msg_name.is_null() && rest.connected().is_none() => {
                with_copy(header, |own| incoming::by_kernel(&rest, fd, own, flags))
            }
            ReceiveWay::Counted(rest) => {
                let room = (*header).msg_namelen;
                let came = plain();
                let length = room.min((*header).msg_namelen) as usize;
                incoming::count(&rest, fd, (came, flags), (*header).msg_name.cast(), length);
                came
            }
            ReceiveWay::Rings(held) => with_copy(header, |own| incoming::receive(held, fd, own, flags)),
        }
    }
}

/// Receives with a copy of the program's header, which is not to change while the call waits or where it fails: other
/// threads may use it, and a thread that is cancelled, or jumps out of a handler, leaves it is then. Afterwards it
/// gets what the kernel writes.
///
/// # Safety
/// The program's header.
unsafe fn with_copy(header: *mut msghdr, receive: impl FnOnce(&mut msghdr) -> ssize_t) -> ssize_t {
    // SAFETY: the caller's promise.
    let mut own = unsafe { header.read() };
    let came = receive(&mut own);
    if came >= 0 {
        // SAFETY: as above.
        let theirs = unsafe { &mut *header };
        if !theirs.msg_name.is_null() {
            theirs.msg_namelen = own.msg_namelen;
        }
        (theirs.msg_controllen, theirs.msg_flags) = (own.msg_controllen, own.msg_flags);
    }
    came
}

/// `recvmmsg`; `plain` is the program's own call, of `count` headers from `at` on.
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
    // SAFETY: the caller's promise; `at` is below `count`.
    let plain = |at: usize| unsafe { real::recvmmsg(fd, headers.add(at), count - at as c_uint, flags, timeout) };
    let Some(held) = socket::hold(fd).filter(|_| !headers.is_null() && count > 0) else { return plain(0) };
    match incoming::way(held, fd, flags & !MSG_WAITFORONE, false) {
        ReceiveWay::Kernel => plain(0),
        // SAFETY: the caller's promise.
        ReceiveWay::Counted(rest) => unsafe {
            let rooms =
                [0, 1, 2, 3].map(|at| if at < count { (*headers.add(at as usize)).msg_hdr.msg_namelen } else { 0 });
            let came = plain(0);
            for (at, room) in rooms.into_iter().enumerate().take(usize::try_from(came).unwrap_or(0)) {
                let mmsghdr { msg_hdr, msg_len } = headers.add(at).read();
                let length = room.min(msg_hdr.msg_namelen) as usize;
                incoming::count(&rest, fd, (msg_len as ssize_t, flags), msg_hdr.msg_name.cast(), length);
            }
            came
        },
        // SAFETY: the caller's promise.
        ReceiveWay::Rings(held) => unsafe {
            drop(held);
            by_rings(fd, headers, count as usize, flags, (!timeout.is_null()).then_some(&plain))
        },
    }
}

/// One after the other. `limited`: how to wait for the others where there is a time limit.
unsafe fn by_rings(
    fd: c_int,
    headers: *mut mmsghdr,
    count: usize,
    flags: c_int,
    limited: Option<&dyn Fn(usize) -> c_int>,
) -> c_int {
    let mut now = flags & !MSG_WAITFORONE;
    if limited.is_some() {
        now |= MSG_DONTWAIT;
    }
    let some = |at: usize| if at > 0 { at as c_int } else { -1 };
    let mut at = 0;
    while at < count {
        let Some(held) = socket::hold(fd) else { return some(at) };
        // What has come is told before an error, which the kernel keeps for the next call.
        if at > 0 && !held.waiting() && raw::poll_one(fd, libc::POLLIN) & libc::POLLERR != 0 {
            return some(at);
        }
        // SAFETY: the program promises `count` headers.
        let came =
            unsafe { with_copy(&raw mut (*headers.add(at)).msg_hdr, |own| incoming::receive(held, fd, own, now)) };
        if came >= 0 {
            // SAFETY: as above.
            unsafe { (*headers.add(at)).msg_len = came as c_uint };
            at += 1;
            if flags & MSG_WAITFORONE != 0 {
                now |= MSG_DONTWAIT;
            }
            continue;
        }
        let may_wait =
            raw::errno() == libc::EAGAIN && flags & MSG_DONTWAIT == 0 && (at == 0 || flags & MSG_WAITFORONE == 0);
        let (Some(limited), true) = (limited, may_wait) else { return some(at) };
        let Some(held) = socket::hold(fd) else { return some(at) };
        let rest = gate::rest(held, fd);
        if !rest.waiting() {
            let more = limited(at);
            return if more >= 0 { at as c_int + more } else { some(at) };
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
    unsafe { outgoing::send(&held, fd, &header, flags, plain) }
}

/// `sendmsg`.
///
/// # Safety
/// The program's own arguments.
pub unsafe fn send_header(fd: c_int, header: *const msghdr, flags: c_int, plain: impl FnOnce() -> ssize_t) -> ssize_t {
    match socket::hold(fd) {
        // SAFETY: the caller's promise.
        Some(held) if !header.is_null() => unsafe { outgoing::send(&held, fd, &*header, flags, plain) },
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
    if held.is_kernel_s() {
        return plain();
    }
    // As many as the kernel takes at once.
    let count = (count as usize).min(MOST_PIECES);
    if !held.has_rings() && flags & libc::MSG_MORE == 0 {
        pairs::look_for_mail();
        let went = plain();
        for at in 0..usize::try_from(went).unwrap_or(0).min(count) {
            // SAFETY: the program promises `count` headers.
            let one = unsafe { headers.add(at).read() };
            // SAFETY: the program's header and name.
            let peer = unsafe { outgoing::destination(&held, &one.msg_hdr) };
            outgoing::sent_by_kernel(&held, fd, peer.as_ref(), one.msg_len as usize);
        }
        return went;
    }
    for at in 0..count {
        // SAFETY: the program promises `count` headers.
        unsafe {
            let one = headers.add(at);
            let header = &raw const (*one).msg_hdr;
            let went = outgoing::send(&held, fd, &*header, flags, || real::sendmsg(fd, header, flags));
            if went < 0 {
                return if at > 0 { at as c_int } else { -1 };
            }
            (*one).msg_len = went as c_uint;
        }
    }
    count as c_int
}

/// Before `connect`: from then on only one peer is heard, or again all.
pub fn before_connect(fd: c_int) -> Option<SocketHold> {
    let held = socket::hold(fd)?;
    if held.known().iter().any(|pairing| pairing.state.load(Ordering::Acquire) == OFFERED) {
        // The answer to what was shown may come when the socket has another address.
        gate::withdraw(fd, KernelOnly::Disconnect);
    }
    held.connect(None);
    gate::leave_all(&held);
    Some(held)
}

/// After it has answered 0.
///
/// # Safety
/// The program's address.
pub unsafe fn after_connect(held: &SocketHold, name: *const sockaddr, size: socklen_t) {
    // SAFETY: the caller's promise.
    held.connect(unsafe { names::read(name.cast(), size as usize, held.family()) });
}

/// Before `setsockopt`: options that change nothing about what is received, or from whom, leave a socket to us.
pub fn before_set(fd: c_int, level: c_int, name: c_int, number: Option<c_int>) {
    const SO_RCVTIMEO_NEW: c_int = 66;
    const SO_SNDTIMEO_NEW: c_int = 67;
    const IP_MULTICAST_ALL: c_int = 49;
    const IPV6_MULTICAST_ALL: c_int = 29;
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
        // What is about multicast concerns no ring, and the JDK sets it on every socket.
        libc::IPPROTO_IP => matches!(
            name,
            libc::IP_TOS
                | libc::IP_RECVERR
                | libc::IP_MULTICAST_IF
                | libc::IP_MULTICAST_TTL
                | libc::IP_MULTICAST_LOOP
                | IP_MULTICAST_ALL
        ),
        libc::IPPROTO_IPV6 => matches!(
            name,
            libc::IPV6_V6ONLY
                | libc::IPV6_RECVERR
                | libc::IPV6_MULTICAST_IF
                | libc::IPV6_MULTICAST_HOPS
                | libc::IPV6_MULTICAST_LOOP
                | IPV6_MULTICAST_ALL
        ),
        _ => false,
    };
    // What was on had its effect when it was turned on. The JDK turns the last one off on every socket.
    let switches = [
        (SOL_SOCKET, libc::SO_REUSEADDR),
        (SOL_SOCKET, libc::SO_REUSEPORT),
        (libc::IPPROTO_IP, libc::IP_PKTINFO),
        (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
    ];
    let off = number == Some(0) && switches.contains(&(level, name));
    if !harmless && !off {
        gate::withdraw(fd, KernelOnly::Socket { level, name });
    }
}

/// Before `fcntl`: who wants signals gets them from the kernel only.
pub fn before_fcntl(fd: c_int, command: c_int, argument: usize) {
    if command == libc::F_SETFL && argument & libc::O_ASYNC as usize != 0 {
        gate::withdraw(fd, KernelOnly::Async);
    }
}

/// Before `ioctl`: signals, as above, and the time at which the last datagram came.
pub fn before_ioctl(fd: c_int, request: usize) {
    const TIMES: [u32; 4] = [0x8906, 0x8907, 0x8010_8906, 0x8010_8907];
    let request = request as u32;
    if u64::from(request) == libc::FIOASYNC {
        gate::withdraw(fd, KernelOnly::Async);
    } else if TIMES.contains(&request) {
        gate::withdraw(fd, KernelOnly::Times);
    }
}

/// The length of the datagram that comes next, if it comes by a ring.
pub fn first_length(fd: c_int) -> Option<usize> {
    let held = socket::hold(fd)?;
    if held.is_kernel_s() { None } else { incoming::next_length(&held, fd) }
}

//! Options of sockets and flags of descriptors that data calls must know of.

use std::ffi::c_int;

use libc::{FIOASYNC, FIONBIO, FIONREAD, IPPROTO_TCP, O_ASYNC, O_NONBLOCK, SOL_SOCKET, sockaddr, socklen_t};
use weft_fabric::stream::KernelOnly;

use super::conn::{self, ATTACHED};
use super::{ends, incoming, kernel_counts, life, raw, rest, udp};

const SO_RCVTIMEO_NEW: c_int = 66;
const SO_SNDTIMEO_NEW: c_int = 67;
const TCP_ZEROCOPY_RECEIVE: c_int = 35;

/// Before `setsockopt`: an option that changes what the bytes of the stream are makes the connection the kernel's.
/// `number`: its value, if it may be one.
pub fn before_set(fd: c_int, level: c_int, name: c_int, number: Option<c_int>) {
    udp::before_set(fd, level, name, number);
    let kernels = match level {
        SOL_SOCKET => name == libc::SO_ZEROCOPY,
        IPPROTO_TCP => matches!(name, libc::TCP_ULP | libc::TCP_REPAIR),
        _ => false,
    };
    if kernels {
        life::hand_back(fd, KernelOnly::Socket { level, name });
    }
}

/// Before `getsockopt`, one of which reads data.
pub fn before_get(fd: c_int, level: c_int, name: c_int) {
    if level == IPPROTO_TCP && name == TCP_ZEROCOPY_RECEIVE {
        life::hand_back(fd, KernelOnly::Socket { level, name });
    }
    if level == SOL_SOCKET
        && name == libc::SO_ERROR
        && let Some(held) = conn::hold(fd)
        && held.state_now() == ATTACHED
    {
        ends::notice(&held, fd, raw::poll_one(fd, libc::POLLRDHUP));
    }
}

/// After `setsockopt`: what calls on an attached connection follow. (Of others it is read when they are attached.)
pub fn after_set(fd: c_int, level: c_int, name: c_int) {
    let ours = [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO, SO_RCVTIMEO_NEW, SO_SNDTIMEO_NEW, libc::SO_RCVLOWAT];
    let is_ours = (level == SOL_SOCKET && ours.contains(&name)) || (level == IPPROTO_TCP && name == rest::TCP_INQ);
    if !is_ours {
        return;
    }
    if let Some(held) = conn::hold(fd)
        && held.state() == ATTACHED
    {
        kernel_counts::read_options(&held, fd);
    }
}

/// Before `connect`: with an address of no family it undoes the connection.
pub fn before_connect(fd: c_int, address: *const sockaddr, length: socklen_t) {
    if address.is_null() || (length as usize) < size_of::<libc::sa_family_t>() {
        return;
    }
    // SAFETY: the program promises `length` bytes.
    let family = unsafe { address.cast::<libc::sa_family_t>().read_unaligned() };
    if c_int::from(family) == libc::AF_UNSPEC {
        life::hand_back(fd, KernelOnly::Disconnect);
    }
}

/// Before `listen`: a listener carries no data.
pub fn before_listen(fd: c_int) {
    if let Some(held) = conn::hold(fd)
        && held.state() == conn::FRESH
    {
        held.change(conn::FRESH, conn::NEVER);
    }
}

/// After `fcntl` answered `answer`.
pub fn after_fcntl(fd: c_int, command: c_int, argument: usize, answer: c_int) {
    match command {
        _ if answer < 0 => {}
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => conn::duplicate(fd, answer),
        libc::F_SETFL => {
            set_nonblocking(fd, argument as c_int & O_NONBLOCK != 0);
            if argument as c_int & O_ASYNC != 0 {
                life::hand_back(fd, KernelOnly::Async);
            }
        }
        _ => {}
    }
}

fn set_nonblocking(fd: c_int, on: bool) {
    if let Some(held) = conn::hold(fd)
        && held.state() == ATTACHED
    {
        held.stream().set_nonblocking(on);
    }
}

/// After a successful `ioctl`.
///
/// # Safety
/// `argument` is what the request takes.
pub unsafe fn after_ioctl(fd: c_int, request: usize, argument: usize) {
    // SAFETY: these requests take a pointer to an int, and the kernel has used it.
    let number = || unsafe { (argument as *const c_int).read_unaligned() };
    // The upper half of the word is not part of a request.
    match u64::from(request as u32) {
        FIONBIO => set_nonblocking(fd, number() != 0),
        FIOASYNC if number() != 0 => life::hand_back(fd, KernelOnly::Async),
        FIONREAD => {
            if let Some(length) = udp::first_length(fd) {
                // SAFETY: as above.
                unsafe { (argument as *mut c_int).write_unaligned(length as c_int) };
            }
            if let Some(held) = conn::hold(fd)
                && held.state() == ATTACHED
            {
                let all = incoming::pending(&held, fd).min(c_int::MAX as usize) as c_int;
                // SAFETY: as above.
                unsafe { (argument as *mut c_int).write_unaligned(all) };
            }
        }
        _ => {}
    }
}

//! What is left to be read, told beside what came (`TCP_INQ`). A program that is told 0 may not read again before the
//! next edge: too little would make it wait for bytes that are there.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use libc::{IPPROTO_TCP, MSG_CTRUNC, POLLERR, POLLHUP, POLLRDHUP, cmsghdr, msghdr};

use super::conn::{self, ATTACHED, Hold};
use super::{incoming, raw};

/// The option, and the kind of the control message.
pub const TCP_INQ: c_int = 36;

/// Whether the program asked to be told. Of an attached connection it is known; others ask the kernel.
fn is_asked_for(held: &Hold, fd: c_int) -> bool {
    match held.state() {
        ATTACHED => held.stream().options().tells_left.load(Ordering::Relaxed) != 0,
        _ => raw::option(fd, IPPROTO_TCP, TCP_INQ, 0 as c_int).is_ok_and(|on| on != 0),
    }
}

/// As the kernel counts: its end, or an error, is one more byte where nothing stands before it.
fn count(held: &Hold, fd: c_int) -> c_int {
    let bytes = match held.state() {
        ATTACHED => incoming::pending(held, fd),
        _ => raw::ioctl_number(fd, libc::FIONREAD).unwrap_or(0).max(0) as usize,
    };
    if bytes == 0 && raw::poll_one(fd, POLLRDHUP) & (POLLRDHUP | POLLHUP | POLLERR) != 0 {
        return 1;
    }
    bytes.min(c_int::MAX as usize) as c_int
}

/// After a receiving call that was not the kernel's own: the control data of the program's header.
///
/// # Safety
/// The header is one of the program, with its place for control data.
pub unsafe fn tell(fd: c_int, header: &mut msghdr) {
    let room = std::mem::replace(&mut header.msg_controllen, 0) as usize;
    let Some(held) = conn::hold(fd).filter(|held| is_asked_for(held, fd)) else { return };
    let bytes = size_of::<c_int>() as u32;
    // SAFETY: sizes only.
    let (length, space) = unsafe { (libc::CMSG_LEN(bytes) as usize, libc::CMSG_SPACE(bytes) as usize) };
    if header.msg_control.is_null() || room < length {
        header.msg_flags |= MSG_CTRUNC;
        return;
    }
    let message = header.msg_control.cast::<cmsghdr>();
    // SAFETY: the room was looked at; the place need not be aligned.
    unsafe {
        (&raw mut (*message).cmsg_len).write_unaligned(length as _);
        (&raw mut (*message).cmsg_level).write_unaligned(IPPROTO_TCP);
        (&raw mut (*message).cmsg_type).write_unaligned(TCP_INQ);
        libc::CMSG_DATA(message).cast::<c_int>().write_unaligned(count(&held, fd));
    }
    header.msg_controllen = space.min(room) as _;
}

//! The system calls of the socket where calls in distress come.

use std::io;
use std::os::fd::RawFd;
use weft_kernel::system_call;

/// Has the kernel say of each datagram who has sent it.
pub fn ask_for_senders(socket: RawFd) -> io::Result<()> {
    weft_kernel::set_option(socket, libc::SOL_SOCKET, libc::SO_PASSCRED, 1i32)
}

/// Room for the kernel's word on the sender.
const CONTROL_BYTES: usize = 64;

#[repr(align(8))]
struct SenderRoom([u8; CONTROL_BYTES]);

/// The next datagram, without waiting: its bytes, and the process that has sent it, if that is one of our user.
pub fn receive_with_sender(socket: RawFd, bytes: &mut [u8]) -> io::Result<(usize, Option<u32>)> {
    let mut control = SenderRoom([0; CONTROL_BYTES]);
    let mut piece = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: plain data.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut piece;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = CONTROL_BYTES as _;
    let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
    // SAFETY: the header leads to places that are valid and ours across the call.
    let count = unsafe { system_call!(libc::SYS_recvmsg, socket, &raw mut header, flags) }?;
    let mut sender = None;
    // SAFETY: the header is as the kernel has left it, with its own lengths.
    let mut at = unsafe { libc::CMSG_FIRSTHDR(&header) };
    while !at.is_null() {
        // SAFETY: inside the room, as the kernel has filled it.
        let (level, kind) = unsafe { ((*at).cmsg_level, (*at).cmsg_type) };
        if (level, kind) == (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) {
            // SAFETY: of this kind the kernel writes this structure.
            let who = unsafe { libc::CMSG_DATA(at).cast::<libc::ucred>().read_unaligned() };
            sender = (who.uid == weft_kernel::user()).then_some(who.pid as u32);
        }
        // SAFETY: as above.
        at = unsafe { libc::CMSG_NXTHDR(&header, at) };
    }
    Ok((count, sender))
}

//! Unix sockets with names that are in no file system, packets with descriptors, and what the kernel says of sockets.

use crate::{Descriptor, system_call};
use std::io;
use std::os::fd::RawFd;

pub fn socket(domain: i32, kind: i32) -> io::Result<Descriptor> {
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no memory.
    unsafe { system_call!(libc::SYS_socket, domain, kind) }.map(|fd| Descriptor::own(fd as RawFd))
}

/// A Unix socket's abstract address.
pub struct Abstract {
    address: libc::sockaddr_un,
    length: u32,
}

impl Abstract {
    /// `name` without the leading zero byte; cut to what fits.
    pub fn new(name: &[u8]) -> Self {
        let mut address = libc::sockaddr_un { sun_family: libc::AF_UNIX as libc::sa_family_t, sun_path: [0; 108] };
        let length = name.len().min(address.sun_path.len() - 1);
        for (to, from) in address.sun_path[1..].iter_mut().zip(name) {
            *to = *from as libc::c_char;
        }
        Self { address, length: (size_of::<libc::sa_family_t>() + 1 + length) as u32 }
    }

    fn at(&self) -> usize {
        (&raw const self.address) as usize
    }
}

pub fn bind(socket: RawFd, name: &Abstract) -> io::Result<()> {
    // SAFETY: the address lives across the call.
    unsafe { system_call!(libc::SYS_bind, socket, name.at(), name.length) }.map(drop)
}

pub fn connect(socket: RawFd, name: &Abstract) -> io::Result<()> {
    // SAFETY: the address lives across the call.
    unsafe { system_call!(libc::SYS_connect, socket, name.at(), name.length) }.map(drop)
}

/// Sends a datagram to a name, without waiting. A socket of TCP, should the descriptor have become one, refuses it: a
/// connected one would not look at the name, but for the third flag, which means nothing to others.
pub fn send_to(socket: RawFd, bytes: &[u8], name: &Abstract) -> io::Result<usize> {
    let flags = (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | libc::MSG_FASTOPEN) as usize;
    let (at, length) = (bytes.as_ptr() as usize, bytes.len());
    // SAFETY: bytes and address live across the call.
    unsafe { system_call!(libc::SYS_sendto, socket, at, length, flags, name.at(), name.length) }
}

/// Receives without waiting.
pub fn receive(socket: RawFd, bytes: &mut [u8]) -> io::Result<usize> {
    let (at, length) = (bytes.as_mut_ptr() as usize, bytes.len());
    // SAFETY: the place is valid and ours across the call.
    unsafe { system_call!(libc::SYS_recvfrom, socket, at, length, libc::MSG_DONTWAIT) }
}

/// Takes all datagrams that are there, up to so many in one call, and looks at none. Answers whether there may be more.
pub fn discard(socket: RawFd) -> bool {
    const AT_ONCE: usize = 8;
    // SAFETY: zeros are headers of nothing.
    let mut headers: [libc::mmsghdr; AT_ONCE] = unsafe { std::mem::zeroed() };
    let (at, flags) = (headers.as_mut_ptr() as usize, libc::MSG_DONTWAIT as usize);
    // SAFETY: the headers live across the call and point nowhere.
    let taken = unsafe { system_call!(libc::SYS_recvmmsg, socket, at, AT_ONCE, flags) };
    taken.is_ok_and(|taken| taken == AT_ONCE)
}

/// A socket option that is a plain value, for a place of the size that the option has.
pub fn option<T: Copy>(socket: RawFd, level: i32, name: i32, mut value: T) -> io::Result<T> {
    let mut bytes = size_of::<T>() as u32;
    // SAFETY: place and length are valid; callers ask with types for which any bytes are a value.
    unsafe { system_call!(libc::SYS_getsockopt, socket, level, name, &raw mut value, &raw mut bytes) }?;
    Ok(value)
}

/// Sets a socket option to a plain value.
///
/// # Errors
/// The socket has none of this name, or refuses the value.
pub fn set_option<T: Copy>(socket: RawFd, level: i32, name: i32, value: T) -> io::Result<()> {
    // SAFETY: the value lives across the call.
    unsafe { system_call!(libc::SYS_setsockopt, socket, level, name, &raw const value, size_of::<T>()) }.map(drop)
}

/// The number that the kernel gives a socket, the same for all its descriptors and no other socket's.
pub fn cookie(socket: RawFd) -> io::Result<u64> {
    option(socket, libc::SOL_SOCKET, libc::SO_COOKIE, 0u64)
}

/// Lets the kernel drop every datagram for this socket that does not begin with `word`, highest byte first.
pub fn admit_only(socket: RawFd, word: u32) -> io::Result<()> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const COMPARE: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const ANSWER: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    // One that is too short to be looked at is dropped by the first step.
    let mut steps = [
        libc::sock_filter { code: LOAD, jt: 0, jf: 0, k: 0 },
        libc::sock_filter { code: COMPARE, jt: 0, jf: 1, k: word },
        libc::sock_filter { code: ANSWER, jt: 0, jf: 0, k: u32::MAX },
        libc::sock_filter { code: ANSWER, jt: 0, jf: 0, k: 0 },
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // The call copies the program with its steps.
    set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, program)
}

/// Who is at the other end of a Unix socket; process 0 where it has no number among ours.
pub fn peer(socket: RawFd) -> io::Result<libc::ucred> {
    let nobody = libc::ucred { pid: 0, uid: u32::MAX, gid: 0 };
    option(socket, libc::SOL_SOCKET, libc::SO_PEERCRED, nobody)
}

/// Room for a control message with one descriptor. To the byte: of more descriptors than that the kernel would put a
/// second one into the padding.
#[repr(C)]
struct DescriptorMessage {
    header: libc::cmsghdr,
    descriptor: RawFd,
}

const CONTROL_BYTES: usize = std::mem::offset_of!(DescriptorMessage, descriptor) + size_of::<RawFd>();

impl DescriptorMessage {
    fn new(descriptor: RawFd) -> Self {
        // SAFETY: plain data, for which zero is a value.
        let mut header: libc::cmsghdr = unsafe { std::mem::zeroed() };
        header.cmsg_len = CONTROL_BYTES as _;
        header.cmsg_level = libc::SOL_SOCKET;
        header.cmsg_type = libc::SCM_RIGHTS;
        Self { header, descriptor }
    }
}

/// A message of these bytes, with a control message if there is one.
fn message(part: &mut libc::iovec, control: Option<&mut DescriptorMessage>) -> libc::msghdr {
    // SAFETY: plain data, for which zero is a value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = part;
    message.msg_iovlen = 1;
    if let Some(control) = control {
        message.msg_control = std::ptr::from_mut(control).cast();
        message.msg_controllen = CONTROL_BYTES as _;
    }
    message
}

/// Sends one packet, with a descriptor if there is one, without waiting.
pub fn send_packet(socket: RawFd, packet: &[u8], descriptor: Option<RawFd>) -> io::Result<()> {
    let mut part = libc::iovec { iov_base: packet.as_ptr() as *mut libc::c_void, iov_len: packet.len() };
    let mut control = descriptor.map(DescriptorMessage::new);
    let message = message(&mut part, control.as_mut());
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: all that the message points at lives across the call; the kernel only reads it.
    unsafe { system_call!(libc::SYS_sendmsg, socket, &raw const message, flags) }.map(drop)
}

/// Receives one packet without waiting: its bytes (0 at the end of the connection) and its descriptor.
pub fn receive_packet(socket: RawFd, packet: &mut [u8]) -> io::Result<(usize, Option<Descriptor>)> {
    let mut part = libc::iovec { iov_base: packet.as_mut_ptr().cast(), iov_len: packet.len() };
    let mut control = DescriptorMessage::new(-1);
    control.header.cmsg_len = 0;
    let mut message = message(&mut part, Some(&mut control));
    let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
    // SAFETY: all that the message points at lives across the call and is ours alone.
    let got = unsafe { system_call!(libc::SYS_recvmsg, socket, &raw mut message, flags) }?;
    let told = message.msg_controllen >= CONTROL_BYTES
        && control.header.cmsg_type == libc::SCM_RIGHTS
        && control.header.cmsg_len >= CONTROL_BYTES;
    Ok((got, told.then(|| Descriptor::own(control.descriptor))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::await_events;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    #[test]
    fn a_second_descriptor_in_a_packet_is_not_kept_open() {
        #[repr(C)]
        struct Rights {
            header: libc::cmsghdr,
            descriptors: [RawFd; 2],
        }
        let (from, to) = UnixStream::pair().expect("a pair");
        let [(_first, one), (second, two)] = [(); 2].map(|()| std::io::pipe().expect("a pipe"));
        let mut rights =
            Rights { header: DescriptorMessage::new(-1).header, descriptors: [one.as_raw_fd(), two.as_raw_fd()] };
        rights.header.cmsg_len = size_of::<Rights>();
        let mut part = libc::iovec { iov_base: c"x".as_ptr().cast_mut().cast(), iov_len: 1 };
        let mut message = message(&mut part, None);
        (message.msg_control, message.msg_controllen) = ((&raw mut rights).cast(), size_of::<Rights>());
        // SAFETY: all that the message points at lives across the call.
        unsafe { system_call!(libc::SYS_sendmsg, from.as_raw_fd(), &raw const message, 0) }.expect("room");
        drop((one, two));
        let (_, came) = receive_packet(to.as_raw_fd(), &mut [0]).expect("it is there");
        assert!(came.is_some());
        let end = await_events(second.as_raw_fd(), libc::POLLIN, Some(Duration::ZERO)).expect("asked");
        assert_eq!(end, libc::POLLHUP, "nobody has the other end");
    }
}

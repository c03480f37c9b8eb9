//! The socket of a port, each call in its thinnest safe form; none of them waits.

use super::inbox::Inbox;
use super::report::AddressReport;
use super::run::{DatagramRun, SocketName};
use crate::kernel::{self, checked};
use crate::sys;
use crate::tcp::socket::KernelAddress;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// What the kernel is asked to keep in each direction; it gives as much of it as its limits allow.
const KERNEL_BYTES: i32 = 4 << 20;

/// A socket for datagrams, to and from anybody.
pub struct LinkSocket {
    descriptor: OwnedFd,
    /// It takes addresses of IPv6 only, those of IPv4 in their clothes.
    v6: bool,
}

/// A control message with one small number, as the kernel lays it out.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct NumberMessage {
    header: libc::cmsghdr,
    value: [u8; 8],
}

impl NumberMessage {
    pub const NONE: Self =
        Self { header: libc::cmsghdr { cmsg_len: 0 as _, cmsg_level: 0, cmsg_type: 0 }, value: [0; 8] };
    const HEADER_BYTES: usize = size_of::<libc::cmsghdr>();

    fn segment(bytes: u16) -> Self {
        let mut control = Self::NONE;
        control.header.cmsg_len = (Self::HEADER_BYTES + size_of::<u16>()) as _;
        control.header.cmsg_level = libc::SOL_UDP;
        control.header.cmsg_type = libc::UDP_SEGMENT;
        control.value[..2].copy_from_slice(&bytes.to_ne_bytes());
        control
    }

    /// The size of the datagrams that the kernel has put together, if it says that it has.
    fn joined(&self, control_bytes: usize) -> Option<usize> {
        let told = control_bytes >= Self::HEADER_BYTES + 4
            && (self.header.cmsg_level, self.header.cmsg_type) == (libc::SOL_UDP, libc::UDP_GRO);
        let [a, b, c, d, ..] = self.value;
        let size = i32::from_ne_bytes([a, b, c, d]);
        (told && size > 0).then_some(size as usize)
    }
}

/// What the kernel has said of an address, in its error queue.
#[repr(C, align(8))]
struct ErrorControl {
    header: libc::cmsghdr,
    error: libc::sock_extended_err,
    offender: KernelAddress,
}

impl LinkSocket {
    /// Runs that leave with one call.
    pub const AT_ONCE: usize = 16;

    /// Takes over a bound socket, and prepares it.
    pub fn new(descriptor: OwnedFd) -> io::Result<Self> {
        sys::set_nonblocking(&descriptor)?;
        let domain = kernel::option(descriptor.as_raw_fd(), libc::SOL_SOCKET, libc::SO_DOMAIN, 0i32)?;
        let socket = Self { descriptor, v6: domain == libc::AF_INET6 };
        for (force, plain) in [(libc::SO_SNDBUFFORCE, libc::SO_SNDBUF), (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF)] {
            if !socket.set(libc::SOL_SOCKET, force, KERNEL_BYTES) {
                socket.set(libc::SOL_SOCKET, plain, KERNEL_BYTES);
            }
        }
        // The network cuts nothing, and what it says of our datagrams is kept for us. The kernel's own idea of the path
        // is not asked: it believes whoever sends it a message, and the sizes that pass are tried.
        socket.set(libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE);
        socket.set(libc::IPPROTO_IP, libc::IP_RECVERR, 1);
        if socket.v6 {
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE);
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1);
        }
        Ok(socket)
    }

    /// Wants datagrams that came one after another put together; false where the kernel does not.
    pub fn join_received(&self) -> bool {
        self.set(libc::SOL_UDP, libc::UDP_GRO, 1)
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    fn raw(&self) -> usize {
        self.descriptor.as_raw_fd() as usize
    }

    fn set(&self, level: i32, name: i32, value: i32) -> bool {
        let (at, length) = ((&raw const value) as usize, size_of::<i32>());
        // SAFETY: the value lives across the call.
        unsafe { checked(libc::SYS_setsockopt, [self.raw(), level as usize, name as usize, at, length, 0]) }.is_ok()
    }

    /// Bytes that the kernel keeps of what has come, as it counts them: with all that it needs for each datagram.
    pub fn kept_bytes(&self) -> usize {
        let bytes = kernel::option(self.descriptor.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, 0i32);
        bytes.map_or(0, |bytes| bytes.max(0) as usize)
    }

    /// An address as this socket wants it.
    pub fn name(&self, address: &SocketAddr) -> SocketName {
        let (address, bytes) = match address {
            SocketAddr::V4(v4) if self.v6 => {
                KernelAddress::new(&SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port()))
            }
            address => KernelAddress::new(address),
        };
        SocketName { address, bytes }
    }

    /// Sends runs, whose bytes are `arena`'s; answers how many of them have left. An error is that of the first one.
    pub fn send(&self, runs: &[DatagramRun], arena: &[u8]) -> io::Result<usize> {
        match runs {
            // Mostly it is so, and this is the call for which the kernel does least.
            [run] if run.count == 1 => self.send_one(run, arena),
            _ => self.send_some(runs, arena),
        }
    }

    fn send_one(&self, run: &DatagramRun, arena: &[u8]) -> io::Result<usize> {
        let bytes = &arena[run.start..run.start + run.bytes];
        let flags = (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as usize;
        let name = (&raw const run.to.address) as usize;
        let words = [self.raw(), bytes.as_ptr() as usize, bytes.len(), flags, name, run.to.bytes];
        // SAFETY: bytes and name live across the call; the kernel only reads them.
        unsafe { checked(libc::SYS_sendto, words) }.map(|_| 1)
    }

    fn send_some(&self, runs: &[DatagramRun], arena: &[u8]) -> io::Result<usize> {
        const MOST: usize = LinkSocket::AT_ONCE;
        // SAFETY: plain data, for which zero is a value.
        let (mut headers, mut parts): ([libc::mmsghdr; MOST], [libc::iovec; MOST]) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let mut controls = [NumberMessage::NONE; MOST];
        let count = runs.len().min(MOST);
        for (index, run) in runs[..count].iter().enumerate() {
            let bytes = &arena[run.start..run.start + run.bytes];
            parts[index] = libc::iovec { iov_base: bytes.as_ptr() as *mut _, iov_len: bytes.len() };
            let header = &mut headers[index].msg_hdr;
            header.msg_name = (&raw const run.to.address) as *mut _;
            header.msg_namelen = run.to.bytes as _;
            header.msg_iov = &raw mut parts[index];
            header.msg_iovlen = 1;
            if run.count > 1 {
                controls[index] = NumberMessage::segment(run.segment as u16);
                header.msg_control = (&raw mut controls[index]).cast();
                header.msg_controllen = size_of::<NumberMessage>() as _;
            }
        }
        let flags = (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as usize;
        let at = headers.as_mut_ptr() as usize;
        // SAFETY: all that the headers point at lives across the call; the kernel writes to the headers only.
        unsafe { checked(libc::SYS_sendmmsg, [self.raw(), at, count, flags, 0, 0]) }
    }

    /// Takes what has come, up to `most` parts of the inbox; answers how many.
    pub fn receive(&self, inbox: &mut Inbox, most: usize) -> io::Result<usize> {
        if most == 1 { self.receive_one(inbox) } else { self.receive_some(inbox, most) }
    }

    /// Most looks find nothing, so that is to be heard soon: this is the call for which the kernel does less.
    fn receive_one(&self, inbox: &mut Inbox) -> io::Result<usize> {
        // SAFETY: plain data, for which zero is a value; the kernel writes a name over it.
        let (mut header, mut name): (libc::msghdr, KernelAddress) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let mut control = NumberMessage::NONE;
        let Some(slot) = inbox.slots().next() else { return Ok(0) };
        let mut part = libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() };
        header.msg_name = (&raw mut name).cast();
        header.msg_namelen = size_of::<KernelAddress>() as _;
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = (&raw mut control).cast();
        header.msg_controllen = size_of::<NumberMessage>() as _;
        let (at, flags) = ((&raw mut header) as usize, libc::MSG_DONTWAIT as usize);
        // SAFETY: all that the header points at lives across the call and is ours alone.
        let length = unsafe { checked(libc::SYS_recvmsg, [self.raw(), at, flags, 0, 0, 0]) }?;
        let cut = header.msg_flags & libc::MSG_TRUNC != 0;
        let joined = control.joined(header.msg_controllen);
        inbox.note(0, name.read(), if cut { 0 } else { length }, joined);
        Ok(1)
    }

    fn receive_some(&self, inbox: &mut Inbox, most: usize) -> io::Result<usize> {
        const MOST: usize = Inbox::SLOTS;
        // SAFETY: plain data, for which zero is a value.
        let (mut headers, mut parts): ([libc::mmsghdr; MOST], [libc::iovec; MOST]) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        // SAFETY: as above; the kernel writes names over it.
        let mut names: [KernelAddress; MOST] = unsafe { std::mem::zeroed() };
        let mut controls = [NumberMessage::NONE; MOST];
        let most = most.min(MOST);
        for (index, slot) in inbox.slots().enumerate().take(most) {
            parts[index] = libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() };
            let header = &mut headers[index].msg_hdr;
            header.msg_name = (&raw mut names[index]).cast();
            header.msg_namelen = size_of::<KernelAddress>() as _;
            header.msg_iov = &raw mut parts[index];
            header.msg_iovlen = 1;
            header.msg_control = (&raw mut controls[index]).cast();
            header.msg_controllen = size_of::<NumberMessage>() as _;
        }
        let (at, flags) = (headers.as_mut_ptr() as usize, libc::MSG_DONTWAIT as usize);
        // SAFETY: all that the headers point at lives across the call and is ours alone.
        let count = unsafe { checked(libc::SYS_recvmmsg, [self.raw(), at, most, flags, 0, 0]) }?;
        for index in 0..count.min(most) {
            let header = &headers[index];
            let cut = header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
            let length = if cut { 0 } else { header.msg_len as usize };
            let joined = controls[index].joined(header.msg_hdr.msg_controllen);
            inbox.note(index, names[index].read(), length, joined);
        }
        Ok(count)
    }

    /// The next thing that the network has said of a datagram: where that was to go, if it says so, and what became of
    /// it.
    pub fn take_report(&self) -> Option<AddressReport> {
        // SAFETY: plain data, for which zero is a value.
        let (mut header, mut name, mut control): (libc::msghdr, KernelAddress, ErrorControl) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed(), std::mem::zeroed()) };
        let mut byte = [0u8];
        let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
        header.msg_name = (&raw mut name).cast();
        header.msg_namelen = size_of::<KernelAddress>() as _;
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = (&raw mut control).cast();
        header.msg_controllen = size_of::<ErrorControl>() as _;
        let flags = (libc::MSG_DONTWAIT | libc::MSG_ERRQUEUE) as usize;
        let at = (&raw mut header) as usize;
        // SAFETY: all that the header points at lives across the call and is ours alone.
        unsafe { checked(libc::SYS_recvmsg, [self.raw(), at, flags, 0, 0, 0]) }.ok()?;
        let told = header.msg_controllen >= NumberMessage::HEADER_BYTES + size_of::<libc::sock_extended_err>();
        let error = if told { control.error.ee_errno as i32 } else { libc::EIO };
        let address = name.read().unwrap_or(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0));
        let is_own = told
            && match control.error.ee_origin {
                libc::SO_EE_ORIGIN_LOCAL => true,
                // Such as that a neighbour does not answer. The kernel takes nothing from elsewhere that says to be of
                // this host. That nobody has a port it knows of this host alone: of another one a filter of ours says
                // so.
                _ => {
                    control.offender.read().is_some_and(|offender| sys::is_own_address(offender.ip()))
                        && (error != libc::ECONNREFUSED || sys::is_own_address(address.ip()))
                }
            };
        Some(AddressReport { address, error: io::Error::from_raw_os_error(error), is_own })
    }
}

/// Bytes that the interface towards `address` carries in one packet, headers of IP included, if the kernel knows.
pub fn interface_bytes(address: &SocketAddr) -> io::Result<usize> {
    let domain = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let socket = kernel::socket(domain, libc::SOCK_DGRAM)?;
    let (name, length) = KernelAddress::new(address);
    // SAFETY: the address lives across the call. Nothing is sent by it.
    unsafe { checked(libc::SYS_connect, [socket.as_raw_fd() as usize, (&raw const name) as usize, length, 0, 0, 0]) }?;
    let (level, option) =
        if address.is_ipv4() { (libc::IPPROTO_IP, libc::IP_MTU) } else { (libc::IPPROTO_IPV6, libc::IPV6_MTU) };
    kernel::option(socket.as_raw_fd(), level, option, 0i32).map(|bytes| bytes.max(0) as usize)
}

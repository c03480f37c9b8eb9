//! Sockets on every address of the host, for an interface that opens beside another one. (Those of the first one are
//! made by who starts the process.)

use super::socket::{KernelAddress, name_of, own};
use crate::kernel::checked;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

/// A listener and a socket for datagrams, with their ports in this order.
///
/// # Errors
/// Those of the kernel.
pub fn everywhere() -> io::Result<([OwnedFd; 2], [u16; 2])> {
    let (listener, port) = listener()?;
    let datagrams = bound(libc::SOCK_DGRAM)?;
    let ports = [port, port_of(&datagrams)?];
    Ok(([listener, datagrams], ports))
}

/// A listener, with its port.
pub(super) fn listener() -> io::Result<(OwnedFd, u16)> {
    let listener = bound(libc::SOCK_STREAM)?;
    // SAFETY: numbers only.
    unsafe { checked(libc::SYS_listen, [listener.as_raw_fd() as usize, libc::SOMAXCONN as usize, 0, 0, 0, 0]) }?;
    let port = port_of(&listener)?;
    Ok((listener, port))
}

fn port_of(socket: &OwnedFd) -> io::Result<u16> {
    let name = name_of(socket.as_raw_fd()).map(|name| name.port());
    name.ok_or_else(|| io::Error::other("a socket without a name"))
}

/// For both families of addresses, or for IPv4 where there is no other.
fn bound(kind: i32) -> io::Result<OwnedFd> {
    let six = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
    let four = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    bound_to(kind, libc::AF_INET6, &six).or_else(|_| bound_to(kind, libc::AF_INET, &four))
}

fn bound_to(kind: i32, family: i32, address: &SocketAddr) -> io::Result<OwnedFd> {
    let arguments = [family as usize, (kind | libc::SOCK_CLOEXEC) as usize, 0, 0, 0, 0];
    // SAFETY: numbers only.
    let socket = own(unsafe { checked(libc::SYS_socket, arguments) }?);
    let (raw, off) = (socket.as_raw_fd() as usize, 0i32);
    let (address, bytes) = KernelAddress::new(address);
    // SAFETY: option and address live across the calls, and have these lengths.
    unsafe {
        if family == libc::AF_INET6 {
            let (level, option) = (libc::IPPROTO_IPV6 as usize, libc::IPV6_V6ONLY as usize);
            let arguments = [raw, level, option, (&raw const off) as usize, size_of_val(&off), 0];
            checked(libc::SYS_setsockopt, arguments)?;
        }
        checked(libc::SYS_bind, [raw, (&raw const address) as usize, bytes, 0, 0, 0])?;
    }
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn both_sockets_are_reached_at_their_ports() {
        let ([listener, datagrams], ports) = everywhere().expect("sockets");
        let (listener, datagrams) = (TcpListener::from(listener), UdpSocket::from(datagrams));
        TcpStream::connect((Ipv4Addr::LOCALHOST, ports[0])).expect("a connection");
        assert!(listener.accept().is_ok());
        let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        sender.send_to(b"abc", (Ipv4Addr::LOCALHOST, ports[1])).expect("sent");
        assert_eq!(datagrams.recv(&mut [0; 8]).expect("received"), 3);
    }
}

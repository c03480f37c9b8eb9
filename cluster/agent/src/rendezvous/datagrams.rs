//! Datagram sockets that are shown: which of them may form a pair.

use super::sys::{self, ShownSocket};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use weft_wire::stream::datagram::DatagramPeer;

/// What a shown socket is, if it may go beside the kernel with `peer`: nobody else can stand on its address, it
/// receives from that peer, and each answers the other from the address that the other sends to.
pub fn look_at(shown: &impl AsRawFd, peer: &DatagramPeer) -> Option<ShownSocket> {
    let socket = sys::datagram_socket(shown)?;
    if socket.shares_address || !peer.is_loopback() || peer.port == 0 {
        return None;
    }
    let remote = plain(peer.socket_address());
    if socket.remote.is_some_and(|connected| plain(connected) != remote) {
        return None;
    }
    let local = plain(socket.local);
    if local.port() == 0 || !reaches(local, remote) {
        return None;
    }
    let local = SocketAddr::new(remote.ip(), local.port());
    Some(ShownSocket { namespace: socket.namespace, cookie: socket.cookie, local, remote })
}

/// IPv4 in one spelling.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Whether a socket bound to `local` is what a loopback socket at `remote` sees under that same address.
fn reaches(local: SocketAddr, remote: SocketAddr) -> bool {
    // The wildcard of IPv6 serves IPv4 as well, unless the socket says otherwise: then it has no such peers.
    local.ip() == remote.ip()
        || (local.ip().is_unspecified() && (local.is_ipv4() == remote.is_ipv4() || local.is_ipv6()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::OwnedFd;

    fn peer(socket: &UdpSocket) -> DatagramPeer {
        DatagramPeer::of_v4([127, 0, 0, 1], socket.local_addr().expect("an address").port())
    }

    fn shown(socket: &UdpSocket) -> OwnedFd {
        socket.try_clone().expect("a descriptor").into()
    }

    #[test]
    fn a_socket_on_loopback_or_the_wildcard_is_named_by_its_peer() {
        let other = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        for address in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0"] {
            let socket = UdpSocket::bind(address).expect("a socket");
            let found = look_at(&shown(&socket), &peer(&other)).expect(address);
            assert_eq!(found.local.port(), socket.local_addr().expect("an address").port());
            assert_eq!((found.local.ip().to_string(), found.remote), ("127.0.0.1".into(), other.local_addr().unwrap()));
        }
    }

    #[test]
    fn who_is_connected_elsewhere_or_not_bound_or_another_kind_is_nobody() {
        let other = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let third = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.connect(third.local_addr().unwrap()).expect("connected");
        assert!(look_at(&shown(&socket), &peer(&other)).is_none());
        assert!(look_at(&shown(&socket), &peer(&third)).is_some());
        let elsewhere = UdpSocket::bind("127.0.0.2:0").expect("a socket");
        assert!(look_at(&shown(&elsewhere), &peer(&other)).is_none());
        let stream = std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
        assert!(look_at(&stream, &peer(&other)).is_none());
        let far = DatagramPeer::of_v4([10, 0, 0, 1], 9);
        assert!(look_at(&shown(&other), &far).is_none());
    }

    #[test]
    fn who_may_share_its_address_is_refused() {
        let other = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        for option in [libc::SO_REUSEADDR, libc::SO_REUSEPORT] {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
            weft_kernel::set_option(socket.as_raw_fd(), libc::SOL_SOCKET, option, 1i32).expect("set");
            assert!(look_at(&shown(&socket), &peer(&other)).is_none());
        }
    }

    #[test]
    fn processes_that_cannot_be_looked_at_count_otherwise() {
        assert!(sys::counts_as_we_do(std::process::id()));
        assert!(!sys::counts_as_we_do(0) && !sys::counts_as_we_do(u32::MAX));
    }
}

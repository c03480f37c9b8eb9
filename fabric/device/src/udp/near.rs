//! A second socket at a port, connected to the peer that all comes from, while all comes from one.
//!
//! For a socket that is connected the kernel asks for no way with each datagram, neither when one leaves nor when one arrives, and
//! this one is of IPv4 alone: a tenth of what a short datagram takes (decision 33). It costs looks, so it is taken only where
//! nobody else has anything to say; who has after all is heard a few looks later.

use super::socket::Socket;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::BorrowedFd;

/// So many datagrams of one sender in a row, and the socket is connected to him.
const LONG: u32 = 256;

/// One look of so many is at the socket that brought nothing lately.
const BESIDE: u32 = 4;

/// Datagrams of one sender in a row.
#[derive(Clone, Copy, Default)]
pub struct Row {
    from: Option<SocketAddr>,
    count: u32,
}

impl Row {
    #[inline]
    pub fn add(&mut self, from: SocketAddr) {
        self.count = if self.from == Some(from) { self.count.saturating_add(1) } else { 1 };
        self.from = Some(from);
    }
}

pub struct Near {
    socket: Socket,
    /// That of the port's own socket.
    port: u16,
    peer: Option<SocketAddr>,
    pub row: Row,
    state: State,
    looks: u32,
    /// The last to come has come by this socket.
    brings: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing can come by it.
    Unbound,
    /// What comes by IPv4 may come by it, connected or not.
    Bound,
    Useless,
}

impl Near {
    /// For the port of this socket. Nothing goes by it yet, and its descriptor is never readable.
    pub fn new(own: &Socket) -> io::Result<Self> {
        let port = UdpSocket::from(own.descriptor().try_clone_to_owned()?).local_addr()?.port();
        let socket = Socket::unbound()?;
        socket.join_received();
        let (peer, row, state) = (None, Row::default(), State::Unbound);
        Ok(Self { socket, port, peer, row, state, looks: 0, brings: false })
    }

    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.descriptor()
    }

    /// Whether the next look is at this socket, and not at the port's own.
    #[inline]
    pub fn is_next(&mut self) -> bool {
        if self.state != State::Bound {
            return false;
        }
        self.looks = self.looks.wrapping_add(1);
        self.brings != self.looks.is_multiple_of(BESIDE)
    }

    #[inline]
    pub fn note_look(&mut self, at_this: bool, found: bool) {
        if found {
            self.brings = at_this;
        }
    }

    pub fn peer(&self) -> Option<&SocketAddr> {
        self.peer.as_ref()
    }

    /// Behind a look: connects to who all came from lately.
    #[inline]
    pub fn follow(&mut self, own: &Socket) {
        if self.row.count >= LONG && self.row.from != self.peer && self.state != State::Useless {
            self.turn(own);
        }
    }

    #[cold]
    fn turn(&mut self, own: &Socket) {
        self.row.count = 0;
        let Some(to @ SocketAddr::V4(_)) = self.row.from else { return };
        if self.state == State::Unbound {
            let both = own.share_port() && self.socket.share_port();
            let bound = both && self.socket.bind(&SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), self.port)).is_ok();
            self.state = if bound { State::Bound } else { State::Useless };
        }
        if self.state == State::Bound {
            self.leave();
            self.peer = self.socket.connect(Some(&to)).is_ok().then_some(to);
        }
    }

    /// Connected to nobody: what comes may come by this socket still, and everything leaves by the other one.
    pub fn leave(&mut self) {
        if self.peer.take().is_some() {
            let _ = self.socket.connect(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::port::Port;
    use super::super::port::tests::{port_at, send, take};
    use super::*;

    /// Both send as many, one after the other, and everything comes.
    fn talk(a: (&mut Port, SocketAddr), b: (&mut Port, SocketAddr), count: u32) {
        for number in 0..count {
            let bytes = number.to_le_bytes();
            assert!(send(a.0, &b.1, &bytes) && a.0.flush());
            assert_eq!(take(b.0, 1), [(a.1, bytes.to_vec())], "datagram {number}");
            assert!(send(b.0, &a.1, &bytes) && b.0.flush());
            assert_eq!(take(a.0, 1), [(b.1, bytes.to_vec())], "answer {number}");
        }
    }

    fn near(port: &Port) -> Option<SocketAddr> {
        port.near().and_then(Near::peer).copied()
    }

    #[test]
    fn who_alone_sends_has_a_socket_to_himself_and_others_are_heard() {
        for own in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0"] {
            let ((mut a, a_at), (mut b, b_at), (mut c, c_at)) = (port_at(own), port_at(own), port_at(own));
            talk((&mut a, a_at), (&mut b, b_at), LONG - 1);
            assert_eq!((near(&a), near(&b)), (None, None));
            talk((&mut a, a_at), (&mut b, b_at), LONG);
            assert_eq!((near(&a), near(&b)), (Some(b_at), Some(a_at)), "{own}");
            talk((&mut a, a_at), (&mut c, c_at), 3);
            assert_eq!((near(&a), near(&c)), (Some(b_at), None), "others have been heard now and then");
            for _ in 0..LONG {
                talk((&mut a, a_at), (&mut b, b_at), 1);
                talk((&mut c, c_at), (&mut a, a_at), 1);
            }
            assert_eq!((near(&a), near(&c)), (Some(b_at), Some(a_at)), "{own}");
            talk((&mut a, a_at), (&mut c, c_at), LONG);
            assert_eq!((near(&a), near(&b), near(&c)), (Some(c_at), Some(a_at), Some(a_at)), "{own}");
            // Many at once, by either socket.
            let datagrams: Vec<Vec<u8>> = (0..200usize).map(|at| vec![at as u8; 1 + at * 7]).collect();
            for from in [&mut b, &mut c] {
                datagrams.iter().for_each(|datagram| assert!(send(from, &a_at, datagram)));
                assert!(from.flush());
                assert!(take(&mut a, 200).into_iter().map(|(_, datagram)| datagram).eq(datagrams.iter().cloned()));
            }
        }
    }

    #[test]
    fn who_is_gone_is_reported_and_may_come_back() {
        let ((mut a, a_at), (mut b, b_at)) = (port_at("[::]:0"), port_at("[::]:0"));
        talk((&mut a, a_at), (&mut b, b_at), LONG);
        assert_eq!(near(&a), Some(b_at));
        drop(b);
        let mut report = None;
        while report.is_none() {
            assert!(send(&mut a, &b_at, b"anybody?") && a.flush());
            a.receive(0, true, |_, _| true);
            report = a.take_report();
        }
        let report = report.expect("it is there");
        assert_eq!((report.address, report.error.kind()), (b_at, io::ErrorKind::ConnectionRefused));
        let (mut b, _) = port_at(&b_at.to_string());
        a.look_for_reports();
        talk((&mut a, a_at), (&mut b, b_at), 2 * LONG);
        assert_eq!(near(&a), Some(b_at));
    }
}

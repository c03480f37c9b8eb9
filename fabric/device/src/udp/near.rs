//! A second socket at a port, connected to the peer that all comes from, while all comes from one.
//!
//! For a socket that is connected the kernel asks for no way with each datagram, neither when one leaves nor when one arrives, and
//! this one is of IPv4 alone: a tenth of what a short datagram takes (decision 33). It costs looks, so it is taken only where
//! nobody else has anything to say; who has after all is heard a few looks later.

use super::TRUSTED_NS;
use super::socket::Socket;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::BorrowedFd;

/// So many datagrams of one sender in a row, and the socket is connected to him.
const LONG: u32 = 256;

/// Where one socket brings everything, a look that finds nothing there goes on to the other one only every so many times.
const BESIDE: u32 = 4;
/// Finds in a row by one socket until that is so.
const STEADY: u32 = 32;

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
    /// When something came by this socket last.
    heard_ns: u64,
    pub row: Row,
    state: State,
    /// The last to come has come by this socket, and so many times in a row by the same one.
    brings: bool,
    steady: u32,
    empty: u32,
    looks_everywhere: bool,
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
        Ok(Self {
            socket,
            port,
            peer: None,
            heard_ns: 0,
            row: Row::default(),
            state: State::Unbound,
            brings: false,
            steady: 0,
            empty: 0,
            looks_everywhere: false,
        })
    }

    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.descriptor()
    }

    /// Whether a look begins at this socket, and not at the port's own.
    #[inline]
    pub fn brings(&self) -> bool {
        self.brings
    }

    /// A look has found something at this socket, or at the other one.
    #[inline]
    pub fn note_find(&mut self, at_this: bool, now_ns: u64) {
        self.steady = if at_this == self.brings { self.steady.saturating_add(1) } else { 0 };
        self.brings = at_this;
        if at_this {
            self.heard_ns = now_ns;
        }
    }

    /// A look has found nothing where it began: whether it goes on to the other socket.
    #[inline]
    pub fn goes_on(&mut self) -> bool {
        self.empty = self.empty.wrapping_add(1);
        let is_due = self.looks_everywhere || self.steady < STEADY || self.empty.is_multiple_of(BESIDE);
        self.is_bound() && is_due
    }

    /// Every look is at both sockets, until one finds nothing at either.
    pub fn look_everywhere(&mut self) {
        self.looks_everywhere = true;
    }

    pub fn note_nothing_anywhere(&mut self) {
        self.looks_everywhere = false;
    }

    /// Whether anything can come by it.
    pub fn is_bound(&self) -> bool {
        self.state == State::Bound
    }

    /// To whom it sends: who has been heard by it lately. The address that it sends from may not lead there any more.
    #[inline]
    pub fn peer(&self, now_ns: u64) -> Option<&SocketAddr> {
        self.peer.as_ref().filter(|_| now_ns.saturating_sub(self.heard_ns) <= TRUSTED_NS)
    }

    /// Connects to who all came from lately, where nothing waits at the port's own socket: what comes by this one would
    /// overtake it.
    #[inline]
    pub fn follow(&mut self, own: &Socket, now_ns: u64) {
        if self.row.count >= LONG && self.row.from != self.peer && self.state != State::Useless {
            self.turn(own, now_ns);
        }
    }

    #[cold]
    fn turn(&mut self, own: &Socket, now_ns: u64) {
        self.row.count = 0;
        let Some(to @ SocketAddr::V4(_)) = self.row.from else { return };
        if self.state == State::Unbound {
            let is_bound = self.bind(own).is_ok();
            self.state = if is_bound { State::Bound } else { State::Useless };
        }
        if self.is_bound() {
            self.leave();
            self.peer = self.socket.connect(Some(&to)).is_ok().then_some(to);
            self.heard_ns = now_ns;
        }
    }

    /// To the port of the other socket, which nobody else may share.
    fn bind(&self, own: &Socket) -> io::Result<()> {
        [own, &self.socket].iter().for_each(|socket| socket.share_port(true));
        let bound = self.socket.bind(&SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), self.port));
        [own, &self.socket].iter().for_each(|socket| socket.share_port(false));
        bound
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
        for port in [a.0, b.0] {
            assert!(!port.receive(0, true, |_, _| panic!("nothing was sent")).any());
        }
    }

    fn near(port: &Port) -> Option<SocketAddr> {
        port.near().and_then(|near| near.peer(0)).copied()
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
    fn nobody_else_has_the_port_and_who_is_silent_is_sent_to_by_the_first_socket() {
        let ((mut a, a_at), (mut b, b_at)) = (port_at("[::]:0"), port_at("[::]:0"));
        talk((&mut a, a_at), (&mut b, b_at), LONG);
        let near = a.near().expect("it could be made");
        assert_eq!((near.peer(TRUSTED_NS), near.peer(TRUSTED_NS + 1)), (Some(&b_at), None));
        let other = Socket::unbound().expect("a socket");
        other.share_port(true);
        let refused = other.bind(&SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), a_at.port()));
        assert_eq!(refused.map_err(|error| error.kind()), Err(io::ErrorKind::AddrInUse));
    }

    /// Who is known to be gone has sent what he has: it has to be found.
    #[test]
    fn looks_everywhere_find_what_lies_in_either_socket() {
        let ((mut a, a_at), (mut b, b_at), (mut c, c_at)) = (port_at("[::]:0"), port_at("[::]:0"), port_at("[::]:0"));
        talk((&mut a, a_at), (&mut b, b_at), LONG);
        talk((&mut a, a_at), (&mut b, b_at), 2 * STEADY);
        assert!(near(&a) == Some(b_at) && c_at != b_at);
        for round in 0..4 {
            let from = if round % 2 == 0 { &mut c } else { &mut b };
            assert!(send(from, &a_at, b"the last") && from.flush());
            a.look_everywhere();
            let mut got = 0;
            while a
                .receive(0, true, |_, _| {
                    got += 1;
                    true
                })
                .any()
            {}
            assert_eq!(got, 1, "round {round}");
            (0..STEADY + round).for_each(|_| talk((&mut a, a_at), (&mut b, b_at), 1));
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

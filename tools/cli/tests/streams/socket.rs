//! A socket as a library over streams would use it: counts, offers, attaches, goes where the route says.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use weft_fabric::stream::{
    AnchorOffer, Mail, PooledBell, Readable, ReceiveRoute, SendRoute, Stream, Streams, Waiter, Writable, sleep_barrier,
};

pub const STREAMS: Streams = Streams::open();

pub struct Socket {
    anchor: TcpStream,
    bell: PooledBell,
    pub stream: Option<Stream>,
    pub sent_by_kernel: u64,
    pub received_by_kernel: u64,
    pub received_by_ring: u64,
    pub sent_by_ring: u64,
    /// The receiver said that it wants the kernel, and was not answered yet.
    wants: bool,
    /// The kernel said that the peer sends no more: it may be dead, which only the kernel finds out.
    ended: bool,
}

/// Both ends of a connection over loopback.
pub fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind");
    let here = TcpStream::connect(listener.local_addr().expect("bound")).expect("connect");
    let (there, _) = listener.accept().expect("accept");
    (here, there)
}

fn cookie(fd: RawFd) -> u64 {
    let (mut cookie, mut bytes) = (0u64, 8);
    // SAFETY: valid places.
    let asked =
        unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_COOKIE, (&raw mut cookie).cast(), &mut bytes) };
    assert_eq!(asked, 0, "{}", io::Error::last_os_error());
    cookie
}

fn is_would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

impl Socket {
    pub fn new(anchor: TcpStream) -> Self {
        anchor.set_nonblocking(true).expect("non-blocking");
        anchor.set_nodelay(true).expect("no delay");
        Self {
            anchor,
            bell: PooledBell::take().expect("a bell"),
            stream: None,
            sent_by_kernel: 0,
            received_by_kernel: 0,
            received_by_ring: 0,
            sent_by_ring: 0,
            wants: false,
            ended: false,
        }
    }

    pub fn cookie(&self) -> u64 {
        cookie(self.anchor.as_raw_fd())
    }

    pub fn offer(&self) -> AnchorOffer {
        STREAMS.offer(self.anchor.as_raw_fd(), self.cookie())
    }

    /// Looks for mail, and attaches.
    pub fn look(&mut self) {
        while let Some(Mail::Stream { cookie: cookie_of, stream }) = STREAMS.take_mail() {
            assert_eq!(cookie_of, self.cookie());
            stream.attach(1);
            self.stream = Some(stream);
        }
    }

    /// Offers, and waits until this side is attached.
    pub fn attach(&mut self) {
        assert_eq!(self.offer(), AnchorOffer::Sent);
        while self.stream.is_none() {
            self.look();
            std::thread::yield_now();
        }
    }

    fn sleep(&mut self, events: i16, ready: impl Fn(&Self) -> bool) {
        if ready(self) {
            return;
        }
        let armed = self.stream.is_some_and(|stream| match events {
            libc::POLLIN => stream.arm_receive(self.bell.address(), Waiter::Wait),
            _ => stream.arm_space(self.bell.address(), Waiter::Wait),
        });
        sleep_barrier();
        if !ready(self) {
            let mut polls = [(self.anchor.as_raw_fd(), events), (self.bell.fd(), libc::POLLIN)]
                .map(|(fd, events)| libc::pollfd { fd, events, revents: 0 });
            // The kernel's room is not what a sender into the ring waits for.
            if events == libc::POLLOUT && armed {
                polls[0].events = 0;
            }
            // A stream that is not attached yet has no bell, and mail has none at all.
            let limit = if armed { 2000 } else { 1 };
            // SAFETY: valid entries.
            unsafe { libc::poll(polls.as_mut_ptr(), 2, limit) };
        }
        self.bell.drain();
    }

    fn readable(&self) -> bool {
        match self.stream {
            // The kernel is polled.
            Some(stream) => {
                matches!(stream.readable(self.received_by_kernel), Readable::Ring(_) | Readable::Broken)
                    || stream.asked_back()
            }
            None => STREAMS.has_mail(),
        }
    }

    fn writable(&self) -> bool {
        match self.stream {
            Some(stream) => !matches!(stream.writable(), Writable::Full) || stream.asked_back(),
            None => STREAMS.has_mail(),
        }
    }

    /// Some bytes; 0 at the end.
    pub fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            self.look();
            self.answer_wish()?;
            match self.try_receive(into) {
                Err(error) if is_would_block(&error) => self.sleep(libc::POLLIN, Self::readable),
                other => return other,
            }
        }
    }

    fn try_receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(stream) = self.stream else { return self.receive_from_kernel(into) };
        let mut guard = stream.lock_receive();
        if self.wants {
            self.wants = !guard.want_kernel();
        }
        match guard.route(self.received_by_kernel) {
            ReceiveRoute::Kernel(at_most) => {
                let most = at_most.map_or(into.len(), |most| into.len().min(most as usize));
                self.receive_from_kernel(&mut into[..most])
            }
            ReceiveRoute::Ring => match guard.pull(into) {
                0 => self.end_of_stream(stream, guard, into),
                bytes => {
                    self.received_by_ring += bytes as u64;
                    Ok(bytes)
                }
            },
            ReceiveRoute::Broken => Err(io::ErrorKind::ConnectionReset.into()),
        }
    }

    /// The ring is empty: only the kernel knows whether that is the end, and what was sent before the end is in the
    /// ring by then.
    fn end_of_stream(
        &mut self,
        stream: Stream,
        mut guard: weft_fabric::stream::ReceiveGuard,
        into: &mut [u8],
    ) -> io::Result<usize> {
        let ended = self.anchor.peek(&mut [0]);
        let bytes = guard.pull(into);
        self.received_by_ring += bytes as u64;
        match (bytes, ended) {
            (0, Ok(0)) if stream.readable(self.received_by_kernel) == Readable::Empty => {
                self.ended = true;
                Ok(0)
            }
            (0, Err(error)) if !is_would_block(&error) => Err(error),
            (0, _) => Err(io::ErrorKind::WouldBlock.into()),
            (bytes, _) => Ok(bytes),
        }
    }

    fn receive_from_kernel(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.anchor.read(into)?;
        self.received_by_kernel += bytes as u64;
        Ok(bytes)
    }

    pub fn receive_exactly(&mut self, into: &mut [u8]) {
        let mut done = 0;
        while done < into.len() {
            match self.receive(&mut into[done..]).expect("bytes") {
                0 => panic!("the end after {done} of {} bytes", into.len()),
                bytes => done += bytes,
            }
        }
    }

    pub fn send(&mut self, mut from: &[u8]) -> io::Result<()> {
        while !from.is_empty() {
            self.look();
            self.answer_wish()?;
            match self.try_send(from) {
                Err(error) if is_would_block(&error) => self.sleep(libc::POLLOUT, Self::writable),
                Ok(bytes) => from = &from[bytes..],
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn try_send(&mut self, from: &[u8]) -> io::Result<usize> {
        let Some(stream) = self.stream else { return self.send_by_kernel(from) };
        let mut guard = stream.lock_send();
        if self.ended {
            while !guard.switch_to_kernel() {
                std::thread::yield_now();
            }
        } else if guard.route() == SendRoute::MaySwitch {
            guard.switch_to_ring(self.sent_by_kernel);
        }
        match guard.route() {
            SendRoute::Ring => match guard.push(from) {
                0 => Err(io::ErrorKind::WouldBlock.into()),
                bytes => {
                    self.sent_by_ring += bytes as u64;
                    Ok(bytes)
                }
            },
            SendRoute::Broken => Err(io::ErrorKind::ConnectionReset.into()),
            SendRoute::GiveBack | SendRoute::NotYet => Err(io::ErrorKind::WouldBlock.into()),
            SendRoute::Kernel | SendRoute::MaySwitch => {
                drop(guard);
                self.send_by_kernel(from)
            }
        }
    }

    fn send_by_kernel(&mut self, from: &[u8]) -> io::Result<usize> {
        let bytes = self.anchor.write(from)?;
        self.sent_by_kernel += bytes as u64;
        Ok(bytes)
    }

    fn answer_wish(&mut self) -> io::Result<()> {
        let Some(stream) = self.stream.filter(Stream::asked_back) else { return Ok(()) };
        let mut guard = stream.lock_send();
        let (anchor, sent) = (&mut self.anchor, &mut self.sent_by_kernel);
        let given = guard.give_back(|bytes| {
            let written = anchor.write(bytes)?;
            *sent += written as u64;
            Ok(written)
        });
        match given {
            Err(error) if is_would_block(&error) => Ok(()),
            other => other,
        }
    }

    /// From now on everything comes through the kernel.
    pub fn want_kernel(&mut self) {
        self.wants = self.stream.is_some_and(|stream| !stream.lock_receive().want_kernel());
    }

    /// From now on everything goes through the kernel.
    pub fn send_by_kernel_only(&mut self) {
        if let Some(stream) = self.stream {
            assert!(stream.lock_send().switch_to_kernel());
        }
    }
}

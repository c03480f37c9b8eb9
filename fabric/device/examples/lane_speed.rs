//! What a lane costs beside polled UDP of the kernel, and what its filter costs the kernel's TCP: two hosts that are
//! network namespaces with a cable between them, one thread on each, bound to cores 0 and 1. Needs root.
//!
//!     cargo run --release -p weft-device --features hosts --example lane_speed [lane]
//!
//! With `lane` only lanes, and lanes that processes use by turns (`shared lane`) beside them.

#[path = "../tests/xdp/cable.rs"]
#[allow(dead_code)]
mod cable;

use cable::{Cable, lane, port, v4};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::fd::IntoRawFd;
use std::time::Instant;
use weft_device::xdp::{Lane, LaneRoute, LaneState, Lanes, SharedLane};

const SHORT: usize = 64;
const LONG: usize = 1472;
const BATCH: usize = 32;
/// Datagrams that may be on their way at once, and after how many the receiver says how far it is.
const WINDOW: u32 = 512;
const EVERY: u32 = 64;

/// One way of moving datagrams to one peer.
trait Way: Send {
    fn send(&mut self, bytes: &[u8]) -> bool;
    fn flush(&mut self);
    fn receive(&mut self, handle: &mut dyn FnMut(&[u8]));
}

struct ByLane(Lane, LaneRoute);

impl Way for ByLane {
    fn send(&mut self, bytes: &[u8]) -> bool {
        let write = |place: &mut [u8]| {
            place[..bytes.len()].copy_from_slice(bytes);
            bytes.len()
        };
        self.0.send(&self.1, write).is_some()
    }

    fn flush(&mut self) {
        self.0.flush();
    }

    fn receive(&mut self, handle: &mut dyn FnMut(&[u8])) {
        self.0.receive(|frame| handle(frame.payload));
    }
}

struct ByShared(SharedLane, Box<LaneState>, Option<LaneRoute>);

impl ByShared {
    fn new(lanes: &mut Lanes, number: u32) -> Self {
        let sockets = lanes.take_sockets(number as usize).expect("not taken yet");
        let [memory, receiver, sender] =
            [cable::memory(lanes), sockets.receiver, sockets.sender].map(IntoRawFd::into_raw_fd);
        // SAFETY: it consists of atomics and numbers, for which zeros are a value.
        let state = Box::new(unsafe { std::mem::zeroed() });
        Self(SharedLane::adopt(memory, receiver, sender, number).expect("a lane"), state, None)
    }
}

impl Way for ByShared {
    fn send(&mut self, bytes: &[u8]) -> bool {
        let write = |place: &mut [u8]| {
            place[..bytes.len()].copy_from_slice(bytes);
            bytes.len()
        };
        self.0.send(&self.1, self.2.as_ref().expect("learned"), write)
    }

    fn flush(&mut self) {
        self.0.flush(&self.1);
    }

    fn receive(&mut self, handle: &mut dyn FnMut(&[u8])) {
        self.0.receive(&self.1, |_, payload| handle(payload));
    }
}

/// Many datagrams in one system call, as far as there are many.
struct BySocket {
    socket: UdpSocket,
    waiting: Vec<Vec<u8>>,
    places: Vec<Vec<u8>>,
}

impl BySocket {
    fn new(socket: UdpSocket, peer: SocketAddr) -> Self {
        socket.connect(peer).expect("connected");
        socket.set_nonblocking(true).expect("set");
        let bytes = 8 << 20;
        // SAFETY: an option's value with its size. With less the kernel drops what a window holds.
        unsafe {
            let (at, length) = ((&raw const bytes).cast(), size_of::<i32>() as u32);
            libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, at, length);
        }
        Self { socket, waiting: Vec::new(), places: vec![vec![0; 2048]; BATCH] }
    }

    fn messages(places: &mut [Vec<u8>]) -> (Vec<libc::iovec>, Vec<libc::mmsghdr>) {
        let piece = |place: &mut Vec<u8>| libc::iovec { iov_base: place.as_mut_ptr().cast(), iov_len: place.len() };
        let mut pieces: Vec<libc::iovec> = places.iter_mut().map(piece).collect();
        let message = |piece: &mut libc::iovec| {
            // SAFETY: plain data, for which zero is a valid value.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            (message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen) = (piece, 1);
            message
        };
        let messages = pieces.iter_mut().map(message).collect();
        (pieces, messages)
    }
}

impl Way for BySocket {
    fn send(&mut self, bytes: &[u8]) -> bool {
        self.waiting.push(bytes.to_vec());
        true
    }

    fn flush(&mut self) {
        if let [only] = &self.waiting[..] {
            let _ = self.socket.send(only);
        } else {
            let (_pieces, mut messages) = Self::messages(&mut self.waiting);
            // SAFETY: messages and what they point at live across the call.
            unsafe { libc::sendmmsg(self.socket.as_raw_fd(), messages.as_mut_ptr(), messages.len() as u32, 0) };
        }
        self.waiting.clear();
    }

    fn receive(&mut self, handle: &mut dyn FnMut(&[u8])) {
        let (_pieces, mut messages) = Self::messages(&mut self.places);
        let (at, count) = (messages.as_mut_ptr(), BATCH as u32);
        // SAFETY: as above.
        let got = unsafe { libc::recvmmsg(self.socket.as_raw_fd(), at, count, 0, std::ptr::null_mut()) };
        for (place, message) in self.places.iter().zip(&messages).take(got.max(0) as usize) {
            handle(&place[..message.msg_len as usize]);
        }
    }
}

fn bind_to(core: usize) {
    // SAFETY: plain data.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

/// Runs the two sides beside each other; answers what the first one measured.
fn both(first: impl FnOnce() -> f64 + Send, second: impl FnOnce() + Send) -> f64 {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            bind_to(1);
            second();
        });
        let first = scope.spawn(|| {
            bind_to(0);
            first()
        });
        first.join().expect("no panic")
    })
}

fn wait(way: &mut dyn Way) -> Vec<u8> {
    let mut got = Vec::new();
    while got.is_empty() {
        way.receive(&mut |bytes| got.extend_from_slice(bytes));
    }
    got
}

/// Microseconds one way.
fn ping_pong(a: &mut dyn Way, b: &mut dyn Way, rounds: u32) -> f64 {
    let bytes = [7; SHORT];
    let first = || {
        let begin = Instant::now();
        for _ in 0..rounds {
            a.send(&bytes);
            a.flush();
            assert_eq!(wait(a), bytes);
        }
        begin.elapsed().as_secs_f64() * 1e6 / f64::from(rounds) / 2.0
    };
    let second = || {
        for _ in 0..rounds {
            let got = wait(b);
            b.send(&got);
            b.flush();
        }
    };
    both(first, second)
}

/// Millions of datagrams in a second. The receiver looks at all bytes of each.
fn stream(a: &mut dyn Way, b: &mut dyn Way, length: usize, count: u32) -> f64 {
    let datagram = |number: u32| {
        let mut bytes = vec![number as u8; length];
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        bytes
    };
    let first = || {
        let (mut sent, mut seen) = (0u32, 0u32);
        let begin = Instant::now();
        while seen < count {
            let mut heap = 0;
            while sent < count && sent - seen < WINDOW && heap < BATCH && a.send(&datagram(sent)) {
                (sent, heap) = (sent + 1, heap + 1);
            }
            if heap > 0 {
                a.flush();
            }
            a.receive(&mut |bytes| seen = seen.max(u32::from_le_bytes(bytes.try_into().expect("four bytes"))));
        }
        f64::from(count) / begin.elapsed().as_secs_f64() / 1e6
    };
    let second = || {
        let mut got = 0;
        let mut said = 0;
        while got < count {
            b.receive(&mut |bytes| {
                assert!(bytes[..4] == got.to_le_bytes() && bytes[4..].iter().all(|byte| *byte == got as u8), "{got}");
                got += 1;
            });
            if got - said >= EVERY || (got == count && got > said) {
                b.send(&got.to_le_bytes());
                b.flush();
                said = got;
            }
        }
    };
    both(first, second)
}

/// Gigabytes in a second over the kernel's TCP, in pieces of 64 KiB.
fn tcp(cable: &Cable, bytes: usize) -> f64 {
    let listener = cable.on(2, || TcpListener::bind("10.77.0.2:0")).expect("a listener");
    let address = listener.local_addr().expect("bound");
    let mut connection = cable.on(1, || TcpStream::connect(address)).expect("connected");
    let mut accepted = listener.accept().expect("accepted").0;
    let first = || {
        let piece = vec![7; 65536];
        let begin = Instant::now();
        (0..bytes / piece.len()).for_each(|_| connection.write_all(&piece).expect("sent"));
        connection.read_exact(&mut [0]).expect("an answer");
        bytes as f64 / begin.elapsed().as_secs_f64() / 1e9
    };
    let second = || {
        let mut piece = vec![0; 65536];
        (0..bytes / piece.len()).for_each(|_| accepted.read_exact(&mut piece).expect("read"));
        accepted.write_all(&[1]).expect("sent");
    };
    both(first, second)
}

fn sockets(cable: &Cable) -> [BySocket; 2] {
    let [a, b] = [cable.socket(1), cable.socket(2)];
    let [to_a, to_b] = [v4(1, port(&a)), v4(2, port(&b))];
    [BySocket::new(a, to_b), BySocket::new(b, to_a)]
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn print(what: &str, unit: &str, mut measure: impl FnMut() -> f64) {
    show(what, unit, (0..5).map(|_| measure()).collect());
}

fn show(what: &str, unit: &str, figures: Vec<f64>) {
    let (least, most) = figures.iter().fold((f64::MAX, 0f64), |(least, most), &f| (least.min(f), most.max(f)));
    println!("{what:<48} {:8.3} {unit}   ({least:.3} to {most:.3})", median(figures));
}

fn by_sockets(cable: &Cable, state: &str) {
    let [mut a, mut b] = sockets(cable);
    print(&format!("polled UDP, 64 B ping-pong, {state}"), "us one way", || ping_pong(&mut a, &mut b, 20_000));
    print(&format!("polled UDP, 64 B datagrams, {state}"), "million/s", || stream(&mut a, &mut b, SHORT, 200_000));
    let gigabytes = |millions: f64| millions * LONG as f64 / 1e3;
    print(&format!("polled UDP, 1472 B datagrams, {state}"), "GB/s", || {
        gigabytes(stream(&mut a, &mut b, LONG, 100_000))
    });
    print(&format!("TCP, 64 KiB pieces, {state}"), "GB/s", || tcp(cable, 512 << 20));
}

/// A lane of a rank and a shared one.
fn by_turns(
    what: &str,
    unit: &str,
    [a, b]: [&mut ByLane; 2],
    [c, d]: [&mut ByShared; 2],
    mut measure: impl FnMut(&mut dyn Way, &mut dyn Way) -> f64,
) {
    let (first, second) = (0..7).map(|_| (measure(a, b), measure(c, d))).unzip();
    show(&format!("lane, {what}"), unit, first);
    show(&format!("shared lane, {what}"), unit, second);
}

fn main() {
    let cable = Cable::new();
    let only_lane = std::env::args().nth(1).is_some_and(|word| word == "lane");
    if !only_lane {
        by_sockets(&cable, "no filter");
    }
    let own = [1, 2].map(|host| [cable.socket(host), cable.socket(host)]);
    let mut attached = [1, 2].map(|host| {
        let [first, second] = &own[usize::from(host) - 1];
        cable.open(host, &[first, second])
    });
    let mut lanes = attached.each_mut().map(|lanes| lane(lanes, 0));
    let mut shared = attached.each_mut().map(|lanes| ByShared::new(lanes, 1));
    let greet = |from: usize, to: usize, which: usize| {
        own[from][which].send_to(b"hello", v4(to as u8 + 1, port(&own[to][which]))).expect("sent");
    };
    let routes = [(1, 0), (0, 1)].map(|(from, to): (usize, usize)| {
        greet(from, to, 0);
        let mut route = None;
        while route.is_none() {
            lanes[to].receive(|frame| route = Some(LaneRoute::learn(&frame.ends)));
        }
        greet(from, to, 1);
        let ByShared(lane, state, way) = &mut shared[to];
        while way.is_none() {
            lane.receive(state, |ends, _| *way = Some(LaneRoute::learn(ends)));
        }
        route.expect("just learned")
    });
    let ([a, b], [there, back]) = (lanes, routes);
    let (mut a, mut b) = (ByLane(a, there), ByLane(b, back));
    let [c, d] = &mut shared;
    by_turns("64 B ping-pong", "us one way", [&mut a, &mut b], [c, d], |a, b| ping_pong(a, b, 100_000));
    by_turns("64 B datagrams", "million/s", [&mut a, &mut b], [c, d], |a, b| stream(a, b, SHORT, 500_000));
    by_turns("1472 B datagrams", "GB/s", [&mut a, &mut b], [c, d], |a, b| {
        stream(a, b, LONG, 200_000) * LONG as f64 / 1e3
    });
    if !only_lane {
        by_sockets(&cable, "filters attached");
    }
}

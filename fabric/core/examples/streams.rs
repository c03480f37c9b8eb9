//! Round trips and bytes per second between two processes over a stream, beside the same over kernel TCP.
//!
//! Run: `weft rendezvous --ensure`, then `cargo run --release -p weft-fabric --example streams`. Binds the two
//! processes to the first two cores that they may use, and spins. Prints medians of eleven runs.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use weft_device::kernel;
use weft_fabric::stream::{AnchorOffer, Mail, SendRoute, Stream, Streams};

const STREAMS: Streams = Streams::open();
const RUNS: usize = 11;

/// A way to move bytes, waiting for them without sleep.
trait Way {
    fn send(&mut self, bytes: &[u8]);
    fn receive(&mut self, bytes: &mut [u8]);
}

impl Way for TcpStream {
    fn send(&mut self, bytes: &[u8]) {
        self.write_all(bytes).expect("write");
    }

    fn receive(&mut self, bytes: &mut [u8]) {
        self.read_exact(bytes).expect("read");
    }
}

impl Way for Stream {
    #[inline(never)]
    fn send(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let mut guard = self.lock_send();
            assert_eq!(guard.route(), SendRoute::Ring);
            let pushed = guard.push(bytes);
            guard.publish();
            bytes = &bytes[pushed..];
            drop(guard);
            if pushed == 0 {
                std::hint::spin_loop();
            }
        }
    }

    #[inline(never)]
    fn receive(&mut self, bytes: &mut [u8]) {
        let mut done = 0;
        while done < bytes.len() {
            while !matches!(self.readable(0), weft_fabric::stream::Readable::Ring(_)) {
                std::hint::spin_loop();
            }
            let mut guard = self.lock_receive();
            guard.route(0);
            done += guard.pull(&mut bytes[done..]);
        }
    }
}

fn bind(core: usize) {
    let cores = kernel::affinity().expect("asked");
    kernel::set_affinity(&[cores[core % cores.len()]]).expect("bound");
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// Nanoseconds of half a round trip.
fn ping_pong(way: &mut impl Way, first: bool, length: usize, rounds: u32) -> f64 {
    let mut bytes = vec![1; length];
    let runs = (0..RUNS).map(|_| {
        let begin = Instant::now();
        for _ in 0..rounds {
            if first {
                way.send(&bytes);
                way.receive(&mut bytes);
            } else {
                way.receive(&mut bytes);
                way.send(&bytes);
            }
        }
        begin.elapsed().as_nanos() as f64 / f64::from(rounds) / 2.0
    });
    median(runs.collect())
}

/// Nanoseconds per message of a stream one way; the other side answers at the end of each run.
fn one_way(way: &mut impl Way, first: bool, length: usize, messages: u32) -> f64 {
    let mut bytes = vec![1; length];
    let runs = (0..RUNS).map(|_| {
        let begin = Instant::now();
        for _ in 0..messages {
            if first { way.send(&bytes) } else { way.receive(&mut bytes) }
        }
        if first {
            way.receive(&mut bytes[..1])
        } else {
            way.send(&[1])
        }
        begin.elapsed().as_nanos() as f64 / f64::from(messages)
    });
    median(runs.collect())
}

/// Nanoseconds that one cache line takes from one core to the other and be seen: what everything else is made of.
fn line(word: &AtomicU64, first: bool) {
    const ROUNDS: u64 = 50_000;
    let runs = (0..RUNS as u64).map(|run| {
        let begin = Instant::now();
        for round in run * ROUNDS..(run + 1) * ROUNDS {
            let (mine, theirs) = if first { (2 * round + 1, 2 * round + 2) } else { (2 * round + 2, 2 * round + 1) };
            if first {
                word.store(mine, Ordering::Release);
            }
            while word.load(Ordering::Acquire) != theirs {
                std::hint::spin_loop();
            }
            if !first {
                word.store(mine, Ordering::Release);
            }
        }
        begin.elapsed().as_nanos() as f64 / ROUNDS as f64 / 2.0
    });
    let each = median(runs.collect());
    if first {
        println!("   line  ping-pong             {each:>9.0} ns each way");
    }
}

fn measure(name: &str, way: &mut impl Way, first: bool, scale: u32) {
    for length in [1, 64, 1024] {
        let half = ping_pong(way, first, length, 20_000 / scale);
        if first {
            println!("{name:>7}  ping-pong {length:>6} B  {half:>9.0} ns each way");
        }
    }
    for (length, messages) in [(64, 200_000), (65_536, 4000)] {
        let each = one_way(way, first, length, messages / scale);
        if first {
            println!("{name:>7}  one way   {length:>6} B  {each:>9.0} ns each  {:>8.2} GB/s", length as f64 / each);
        }
    }
}

fn attach(anchor: &TcpStream) -> Stream {
    let (mut cookie, mut bytes) = (0u64, 8);
    // SAFETY: valid places.
    unsafe {
        let at = (&raw mut cookie).cast();
        libc::getsockopt(anchor.as_raw_fd(), libc::SOL_SOCKET, libc::SO_COOKIE, at, &mut bytes);
    }
    assert_eq!(STREAMS.offer(anchor.as_raw_fd(), cookie), AnchorOffer::Sent, "weft rendezvous --ensure first");
    let stream = loop {
        if let Some(Mail::Stream { stream, .. }) = STREAMS.take_mail() {
            break stream;
        }
        std::thread::yield_now();
    };
    stream.attach(0);
    while !stream.peer_attached() {
        std::thread::yield_now();
    }
    let mut guard = stream.lock_send();
    while guard.route() != SendRoute::MaySwitch {
        std::thread::yield_now();
    }
    guard.switch_to_ring(0);
    drop(guard);
    stream
}

fn main() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind");
    let connect = || {
        let here = TcpStream::connect(listener.local_addr().expect("bound")).expect("connect");
        let there = listener.accept().expect("accept").0;
        here.set_nodelay(true).expect("no delay");
        there.set_nodelay(true).expect("no delay");
        [here, there]
    };
    let (anchors, mut kernel) = (connect(), connect());
    // SAFETY: new shared memory of at least eight aligned zero bytes, which are never given back.
    let word = unsafe {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        &*libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0).cast::<AtomicU64>()
    };
    // SAFETY: one thread.
    let child = unsafe { libc::fork() };
    let (first, at) = (child != 0, usize::from(child == 0));
    bind(at);
    let mut stream = attach(&anchors[at]);
    line(word, first);
    measure("stream", &mut stream, first, 1);
    line(word, first);
    measure("kernel", &mut kernel[at], first, 20);
    if first {
        // SAFETY: no place for the status is given.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    }
}

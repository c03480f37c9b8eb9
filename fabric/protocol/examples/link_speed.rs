//! What a link costs, both ends together, on one core and without a network:
//! `cargo run --release -p weft-protocol --example link_speed`.
//!
//! *ping-pong*: each message has a datagram of its own, and acknowledges the one before. *64 at once*: short messages
//! share datagrams. *bulk*: packets that fill a datagram. Each with every seal, and with none, which is the machine
//! alone. Medians of several runs.

use std::hint::black_box;
use std::time::Instant;
use weft_protocol::reliable::{Config, JobSeal, Keyed, Link, LinkPacket, LinkPosted, Seal};
use weft_wire::cell::{Head, Kind};
use weft_wire::link::header::Process;
use weft_wire::link::mac::Key;

const MESSAGES: u64 = 400_000;
const RUNS: usize = 7;
const HEAD: Head = Head { kind: Kind::Short, context: 1, tag: 2, source: 3 };

/// Nothing at all.
struct Nothing;

impl Seal for Nothing {
    fn seal(&self, _: u64, _: &mut [u8], _: usize) {}

    fn open<'a>(&self, _: u64, datagram: &'a [u8], _: usize, _: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        Some(datagram)
    }
}

struct Pair<S: Seal> {
    links: [Link<S>; 2],
    now_ns: u64,
    received: u64,
    buffer: Vec<u8>,
}

impl<S: Seal> Pair<S> {
    fn new(seal: impl Fn(&Config) -> S) -> Self {
        let process = |rank| Process { rank, incarnation: 1 };
        let link = |side: u32| {
            let config = Config::new(process(side), process(1 - side), 1_472);
            Link::new(config, seal(&config), 0)
        };
        Self { links: [link(0), link(1)], now_ns: 0, received: 0, buffer: vec![0; 1_472] }
    }

    /// Carries what one side has to send to the other.
    fn carry(&mut self, from: usize) {
        self.now_ns += 400;
        while let Some(length) = self.links[from].poll_transmit(self.now_ns, &mut self.buffer) {
            let received = &mut self.received;
            let deliver = |packet: LinkPacket<'_>| {
                black_box((packet.inline, packet.bulk));
                *received += 1;
                true
            };
            self.links[1 - from].handle_datagram(self.now_ns, &self.buffer[..length], deliver).expect("taken");
        }
        if self.links[from].next_timeout().is_some_and(|at_ns| at_ns <= self.now_ns) {
            self.links[from].handle_timeout(self.now_ns);
        }
    }

    fn ping_pong(&mut self) {
        for turn in 0..MESSAGES {
            let from = (turn % 2) as usize;
            assert_eq!(self.links[from].try_send(&HEAD, black_box(&[7; 8]), None), LinkPosted::Sent(0));
            self.carry(from);
        }
    }

    fn many_at_once(&mut self) {
        for _ in 0..MESSAGES / 64 {
            for _ in 0..64 {
                assert_eq!(self.links[0].try_send(&HEAD, black_box(&[7; 8]), None), LinkPosted::Sent(0));
            }
            self.carry(0);
            self.carry(1);
        }
    }

    fn bulk(&mut self, bytes: usize) {
        let data = vec![7; self.links[0].bulk_bytes()];
        for _ in 0..bytes / data.len() {
            while self.links[0].try_send(&HEAD, &[], Some(black_box(&data))) == LinkPosted::Full {
                self.now_ns += 20_000;
                self.carry(0);
                self.carry(1);
            }
        }
    }
}

fn median(mut of: impl FnMut() -> f64) -> f64 {
    let mut runs: Vec<f64> = (0..RUNS).map(|_| of()).collect();
    runs.sort_by(f64::total_cmp);
    runs[RUNS / 2]
}

fn measure<S: Seal>(name: &str, seal: impl Fn(&Config) -> S) {
    let per_message = |work: fn(&mut Pair<S>)| {
        median(|| {
            let mut pair = Pair::new(&seal);
            let begun = Instant::now();
            work(&mut pair);
            let took = begun.elapsed().as_nanos() as f64;
            assert!(pair.received >= MESSAGES / 64 * 64, "{} of {MESSAGES} messages arrived", pair.received);
            took / pair.received as f64
        })
    };
    let (ping_pong, many) = (per_message(Pair::ping_pong), per_message(Pair::many_at_once));
    const BULK: usize = 256 << 20;
    let bulk = median(|| {
        let mut pair = Pair::new(&seal);
        let begun = Instant::now();
        pair.bulk(BULK);
        BULK as f64 / begun.elapsed().as_nanos() as f64
    });
    println!("{name:20} {ping_pong:12.0} ns {many:12.1} ns {bulk:10.2} GB/s");
}

fn main() {
    println!("{:20} {:>15} {:>15} {:>15}", "seal", "ping-pong", "64 at once", "bulk");
    measure("none", |_| Nothing);
    measure("key, SipHash", |_| Keyed::on(false, &Key([7; 16])));
    measure("key, AEGISMAC", |_| Keyed::on(true, &Key([7; 16])));
    measure("encrypted", |config| JobSeal::new(&[7; 16], true, config.local, config.remote));
}

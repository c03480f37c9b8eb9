//! The network between ends: delays, faults, and bottlenecks with a queue.

use crate::faults::Faults;
use crate::random::Random;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A link that several ends send through: so many bytes a nanosecond, and a queue that drops what does not fit.
#[derive(Clone, Debug)]
pub struct Bottleneck {
    pub bytes_per_ns: f64,
    pub queue_bytes: f64,
    free_ns: f64,
    pub dropped: u64,
}

/// What a frame has besides the datagram: Ethernet with its gap, IPv4 and UDP.
const FRAME_BYTES: f64 = 66.0;

impl Bottleneck {
    pub fn new(bytes_per_ns: f64, queue_bytes: usize) -> Self {
        Self { bytes_per_ns, queue_bytes: queue_bytes as f64, free_ns: 0.0, dropped: 0 }
    }

    /// When the last byte has passed; `None` if there is no room.
    fn pass(&mut self, now_ns: u64, bytes: usize) -> Option<u64> {
        let begins = self.free_ns.max(now_ns as f64);
        let bytes = bytes as f64 + FRAME_BYTES;
        if (begins - now_ns as f64) * self.bytes_per_ns + bytes > self.queue_bytes {
            self.dropped += 1;
            return None;
        }
        self.free_ns = begins + bytes / self.bytes_per_ns;
        Some(self.free_ns as u64)
    }
}

/// How datagrams come from one end to its peer.
pub struct Way {
    pub to: usize,
    /// 0 or 1, for partitions of one direction.
    pub direction: usize,
    pub faults: Faults,
    pub bottleneck: Option<usize>,
    held_until_ns: u64,
    last_ns: u64,
}

impl Way {
    pub fn new(to: usize, direction: usize, faults: Faults, bottleneck: Option<usize>) -> Self {
        Self { to, direction, faults, bottleneck, held_until_ns: 0, last_ns: 0 }
    }
}

type Arrival = Reverse<(u64, u64, usize, Vec<u8>)>;

pub struct Network {
    pub random: Random,
    pub bottlenecks: Vec<Bottleneck>,
    flying: BinaryHeap<Arrival>,
    count: u64,
}

impl Network {
    pub fn new(random: Random, bottlenecks: Vec<Bottleneck>) -> Self {
        Self { random, bottlenecks, flying: BinaryHeap::new(), count: 0 }
    }

    pub fn send(&mut self, now_ns: u64, way: &mut Way, datagram: &[u8]) {
        let faults = &way.faults;
        if faults.is_shut(now_ns, way.direction) || datagram.len() > faults.carries {
            return;
        }
        let passed_ns = match way.bottleneck {
            Some(which) => self.bottlenecks[which].pass(now_ns, datagram.len()),
            None => Some(now_ns),
        };
        let Some(passed_ns) = passed_ns else { return };
        let random = &mut self.random;
        if random.chance(faults.loss_ppm) {
            return;
        }
        if random.chance(faults.spike_ppm) {
            way.held_until_ns = passed_ns + faults.spike_ns;
        }
        let copies = 1 + u32::from(random.chance(faults.duplicate_ppm));
        for _ in 0..copies {
            let mut at_ns = passed_ns.max(way.held_until_ns) + faults.delay_ns;
            if self.random.chance(faults.reorder_ppm) {
                at_ns += self.random.range(0, 4 * faults.delay_ns + 1);
            } else {
                let jitter_ns = self.random.range(0, faults.jitter_ns + 1);
                at_ns = (at_ns + jitter_ns).max(way.last_ns);
                way.last_ns = at_ns;
            }
            let bytes = self.spoil(faults.corrupt_ppm, datagram);
            self.inject(at_ns, way.to, bytes);
        }
    }

    /// Lets a datagram arrive.
    pub fn inject(&mut self, at_ns: u64, to: usize, datagram: Vec<u8>) {
        self.count += 1;
        self.flying.push(Reverse((at_ns, self.count, to, datagram)));
    }

    fn spoil(&mut self, corrupt_ppm: u32, datagram: &[u8]) -> Vec<u8> {
        let mut bytes = datagram.to_vec();
        if self.random.chance(corrupt_ppm) {
            for _ in 0..self.random.range(1, 4) {
                let at = self.random.range(0, bytes.len() as u64) as usize;
                bytes[at] ^= 1 << self.random.range(0, 8);
            }
        }
        bytes
    }

    pub fn next_ns(&self) -> Option<u64> {
        self.flying.peek().map(|Reverse((at_ns, ..))| *at_ns)
    }

    /// What arrives now: where, and what.
    pub fn poll(&mut self, now_ns: u64) -> Option<(usize, Vec<u8>)> {
        if self.next_ns()? > now_ns {
            return None;
        }
        self.flying.pop().map(|Reverse((_, _, to, datagram))| (to, datagram))
    }
}

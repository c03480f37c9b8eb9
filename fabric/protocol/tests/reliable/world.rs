//! A network with its ends, and time.

use crate::ends::{End, Sealer};
use crate::faults::Faults;
use crate::network::{Bottleneck, Network, Way};
use crate::random::Random;
use crate::traffic::Source;
use weft_protocol::reliable::Config;
use weft_wire::link::header::Process;
use weft_wire::link::mac::Key;

pub struct World {
    pub now_ns: u64,
    pub network: Network,
    /// Ends 2n and 2n + 1 are peers.
    pub ends: Vec<End>,
    steps: u64,
}

pub const SEALER: Sealer = Sealer::Keyed(Key([7; 16]));

/// The configurations of both ends of a pair.
pub fn configs(pair: usize, largest: usize) -> [Config; 2] {
    let process = |side: usize| Process { rank: (2 * pair + side) as u32, incarnation: 77 + side as u32 };
    [Config::new(process(0), process(1), largest), Config::new(process(1), process(0), largest)]
}

impl World {
    pub fn new(random: Random, bottlenecks: Vec<Bottleneck>) -> Self {
        Self { now_ns: 0, network: Network::new(random, bottlenecks), ends: Vec::new(), steps: 0 }
    }

    /// Adds two ends; what the first one sends goes through the bottleneck.
    pub fn add_pair(
        &mut self,
        configs: [Config; 2],
        sealer: Sealer,
        faults: &Faults,
        through: Option<usize>,
        sources: [Source; 2],
    ) {
        let first = self.ends.len();
        for (side, (config, source)) in configs.into_iter().zip(sources).enumerate() {
            let way = Way::new(first + 1 - side, side, faults.clone(), through.filter(|_| side == 0));
            self.ends.push(End::new(config, sealer, way, source));
        }
    }

    /// Hands on what has arrived by now, and lets every end do what it has to.
    fn step(&mut self) {
        self.steps += 1;
        while let Some((to, datagram)) = self.network.poll(self.now_ns) {
            let stalled_until_ns = self.ends[to].stalled_until_ns;
            if stalled_until_ns > self.now_ns {
                self.network.inject(stalled_until_ns, to, datagram);
                continue;
            }
            self.take(to, Some(&datagram));
            self.ends[to].wakes_ns = 0;
        }
        for at in 0..self.ends.len() {
            if self.ends[at].wakes_ns > self.now_ns {
                continue;
            }
            if self.ends[at].stops_refusing(self.now_ns) {
                self.take(at, None);
            }
            self.drive(at);
        }
    }

    fn take(&mut self, at: usize, datagram: Option<&[u8]>) {
        let peer = at ^ 1;
        let mut expected = std::mem::take(&mut self.ends[peer].accepted);
        self.ends[at].take(self.now_ns, datagram, &mut expected, &mut self.network.random);
        self.ends[peer].accepted = expected;
    }

    /// Drives one end now, as a program does that has something new to send.
    pub fn drive(&mut self, at: usize) {
        let end = &mut self.ends[at];
        end.drive(self.now_ns, &mut self.network);
        if self.network.random.chance(end.way.faults.stall_ppm) {
            end.stalled_until_ns = self.now_ns + self.network.random.range(0, end.way.faults.stall_ns + 1);
        }
        end.wakes_ns = end.next_ns(self.now_ns).unwrap_or(u64::MAX).max(end.stalled_until_ns);
    }

    /// Runs until nothing will ever happen, `until` says so, or time is over; false only if time is over.
    pub fn run(&mut self, end_ns: u64, until: impl Fn(&Self) -> bool) -> bool {
        loop {
            self.step();
            if until(self) {
                return true;
            }
            let ends = self.ends.iter().map(|end| end.wakes_ns);
            let next_ns = ends.chain(self.network.next_ns()).min().unwrap_or(u64::MAX);
            if next_ns == u64::MAX {
                return true;
            }
            if next_ns > end_ns {
                self.now_ns = end_ns;
                return false;
            }
            assert!(self.steps < 50_000_000, "it goes round in circles at {} ns", self.now_ns);
            self.now_ns = self.now_ns.max(next_ns);
        }
    }

    pub fn run_for(&mut self, ns: u64) {
        let end_ns = self.now_ns + ns;
        self.run(end_ns, |_| false);
        self.now_ns = end_ns;
    }

    pub fn all_over(&self) -> bool {
        self.ends.iter().all(End::is_over)
    }
}

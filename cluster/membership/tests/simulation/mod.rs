//! A cluster of simulated hosts on a simulated network, all from one seed. Nothing here waits: an hour of a thousand
//! hosts takes seconds.
#![allow(dead_code, reason = "tests and the example use different parts")]

mod wheel;

use weft_membership::{Chance, Condition, MemberChange, MemberId, MembershipView};
use wheel::{Happening, Wheel};

pub const SECOND_NS: u64 = 1_000_000_000;
pub const MS_NS: u64 = 1_000_000;
/// Nothing arrives sooner.
const DELAY_NS: u64 = 300_000;

/// What the network does to datagrams.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    pub loss: f64,
    /// How probable it is that a datagram comes twice.
    pub twice: f64,
    /// A datagram takes up to so much longer than the shortest: more than the time between two changes their order.
    pub delay_ns: u64,
}

impl Default for Weather {
    fn default() -> Self {
        Self { loss: 0.01, twice: 0.001, delay_ns: MS_NS }
    }
}

pub struct Node {
    pub machine: MembershipView,
    pub incarnation: u64,
    pub is_up: bool,
    /// Until then it does nothing, and what comes waits.
    pub frozen_ns: u64,
    /// Whatever it does happens up to so much later.
    pub slow_ns: u64,
    pub hears: bool,
    pub speaks: bool,
    /// Nodes of different sides do not reach each other.
    pub side: u32,
    /// How far its clock is ahead.
    pub ahead_ns: u64,
    timer_ns: u64,
}

/// What a node was told.
#[derive(Clone, Copy, Debug)]
pub struct Sighting {
    pub at_ns: u64,
    pub by: usize,
    pub change: MemberChange,
}

pub struct SimulatedCluster {
    pub nodes: Vec<Node>,
    pub now_ns: u64,
    pub weather: Weather,
    pub seen: Vec<Sighting>,
    pub datagrams: u64,
    pub bytes: u64,
    pub chance: Chance,
    /// Pairs that do not reach each other.
    pub cut: Vec<(usize, usize)>,
    members: Vec<MemberId>,
    /// The same in their order.
    numbers: Vec<(MemberId, usize)>,
    wheel: Wheel,
}

impl SimulatedCluster {
    /// So many nodes, which start within a second.
    pub fn new(size: usize, seed: u64) -> Self {
        let members: Vec<MemberId> = (0..size).map(|number| MemberId::of(&format!("node{number}"))).collect();
        let now_ns = 100 * SECOND_NS;
        let mut chance = Chance::new(seed);
        let nodes = (0..size).map(|at| node(&members, at, 1_000_000 + at as u64, chance.word(), now_ns)).collect();
        let mut numbers: Vec<_> = members.iter().enumerate().map(|(number, member)| (*member, number)).collect();
        numbers.sort_unstable();
        let (seen, cut, weather, wheel) = (Vec::new(), Vec::new(), Weather::default(), Wheel::new(now_ns));
        let mut new =
            Self { nodes, now_ns, weather, seen, datagrams: 0, bytes: 0, chance, cut, members, numbers, wheel };
        for at in 0..size {
            let first_ns = new.now_ns + new.chance.below(SECOND_NS);
            new.set_timer(at, first_ns);
        }
        new
    }

    /// As [`new`](Self::new), when all have found each other.
    pub fn settled(size: usize, seed: u64) -> Self {
        let mut new = Self::new(size, seed);
        new.run(5 * SECOND_NS);
        new.forget();
        new
    }

    pub fn member(&self, at: usize) -> MemberId {
        self.members[at]
    }

    pub fn number_of(&self, member: MemberId) -> usize {
        let at = self.numbers.binary_search_by_key(&member, |(member, _)| *member).expect("it is one of them");
        self.numbers[at].1
    }

    /// How `by` sees `of`.
    pub fn condition(&self, by: usize, of: usize) -> Condition {
        self.nodes[by].machine.state_of(self.members[of]).expect("it is one of them")
    }

    /// Nothing was seen or sent yet.
    pub fn forget(&mut self) {
        self.seen.clear();
        (self.datagrams, self.bytes) = (0, 0);
    }

    /// Lets so much time pass.
    pub fn run(&mut self, for_ns: u64) {
        let end_ns = self.now_ns + for_ns;
        while let Some(due) = self.wheel.next(end_ns) {
            self.now_ns = due.at_ns.max(self.now_ns);
            self.happen(due);
        }
        self.now_ns = end_ns;
    }

    /// Lets time pass until this holds; looks every 10 ms. How long that took, if it does within `most_ns`.
    pub fn run_until(&mut self, most_ns: u64, mut holds: impl FnMut(&mut Self) -> bool) -> Option<u64> {
        let begin_ns = self.now_ns;
        while !holds(self) {
            if self.now_ns - begin_ns > most_ns {
                return None;
            }
            self.run(10 * MS_NS);
        }
        Some(self.now_ns - begin_ns)
    }

    pub fn kill(&mut self, at: usize) {
        self.nodes[at].is_up = false;
    }

    pub fn freeze(&mut self, at: usize, for_ns: u64) {
        self.nodes[at].frozen_ns = self.now_ns + for_ns;
    }

    /// The daemon of a node starts anew.
    pub fn start(&mut self, at: usize, incarnation: u64) {
        let seed = self.chance.word();
        self.nodes[at] = node(&self.members, at, incarnation, seed, self.now_ns);
        self.set_timer(at, self.now_ns);
    }

    pub fn leave(&mut self, at: usize) {
        self.with(at, |machine, now_ns| machine.leave(now_ns));
        self.nodes[at].is_up = false;
    }

    /// Gives a node's machine something to do.
    pub fn with(&mut self, at: usize, act: impl FnOnce(&mut MembershipView, u64)) {
        let clock_ns = self.now_ns + self.nodes[at].ahead_ns;
        act(&mut self.nodes[at].machine, clock_ns);
        self.drain(at);
    }

    pub fn up(&self) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).filter(|at| self.nodes[*at].is_up)
    }

    /// Whether all that are up see all that are up, and only those, as alive.
    pub fn all_is_well(&self) -> bool {
        let sees = |by: usize, of: usize| (self.condition(by, of) == Condition::Alive) == self.nodes[of].is_up;
        self.up().all(|by| (0..self.nodes.len()).all(|of| sees(by, of)))
    }

    /// How many see this node in a way that `is`, of the others that are up.
    pub fn seen_as(&self, of: usize, is: impl Fn(Condition) -> bool) -> usize {
        self.up().filter(|by| *by != of && is(self.condition(*by, of))).count()
    }

    /// How many suspicions were told, except those of this node by others.
    pub fn suspicions_but_of(&self, node: Option<usize>) -> usize {
        let except = node.map(|node| self.members[node]);
        let wrong = |change| matches!(change, MemberChange::Suspect { member, .. } if Some(member) != except);
        self.seen.iter().filter(|seen| wrong(seen.change)).count()
    }

    fn happen(&mut self, due: Happening) {
        let node = &mut self.nodes[due.to as usize];
        let at = due.to as usize;
        let is_timer = due.from.is_none();
        if !node.is_up || (is_timer && due.at_ns != node.timer_ns) {
            return;
        }
        if node.frozen_ns > self.now_ns {
            let later_ns = node.frozen_ns;
            if is_timer {
                node.timer_ns = later_ns;
            }
            self.wheel.push(Happening { at_ns: later_ns, ..due });
            return;
        }
        match due.from {
            None => {
                node.timer_ns = u64::MAX;
                let clock_ns = self.now_ns + node.ahead_ns;
                if node.machine.poll_timeout().is_some_and(|timeout_ns| timeout_ns <= clock_ns) {
                    node.machine.handle_timeout(clock_ns);
                }
            }
            Some(from) if node.hears => {
                let from = self.members[from as usize];
                node.machine.handle_datagram(self.now_ns + node.ahead_ns, from, &due.bytes);
            }
            Some(_) => return,
        }
        self.drain(at);
    }

    /// Does what the machine wants.
    fn drain(&mut self, at: usize) {
        while let Some((to, bytes)) = self.nodes[at].machine.poll_transmit() {
            self.send(at, to, bytes);
        }
        while let Some(change) = self.nodes[at].machine.poll_event() {
            self.seen.push(Sighting { at_ns: self.now_ns, by: at, change });
        }
        if let Some(timeout_ns) = self.nodes[at].machine.poll_timeout() {
            self.set_timer(at, timeout_ns.saturating_sub(self.nodes[at].ahead_ns));
        }
    }

    fn set_timer(&mut self, at: usize, at_ns: u64) {
        let slow_ns = self.nodes[at].slow_ns;
        let at_ns = at_ns.max(self.now_ns) + if slow_ns > 0 { self.chance.below(slow_ns) } else { 0 };
        if at_ns < self.nodes[at].timer_ns {
            self.nodes[at].timer_ns = at_ns;
            self.wheel.push(Happening { at_ns, to: at as u32, from: None, bytes: Vec::new() });
        }
    }

    fn send(&mut self, from: usize, to: MemberId, bytes: Vec<u8>) {
        self.datagrams += 1;
        self.bytes += bytes.len() as u64;
        let to = self.number_of(to);
        let (sender, receiver) = (&self.nodes[from], &self.nodes[to]);
        if sender.side != receiver.side || !sender.speaks || self.chance.happens(self.weather.loss) {
            return;
        }
        if self.cut.contains(&(from, to)) || self.cut.contains(&(to, from)) {
            return;
        }
        let slow_ns = sender.slow_ns + receiver.slow_ns;
        let is_twice = self.chance.happens(self.weather.twice);
        let mut arrive = |bytes| {
            let at_ns = self.now_ns + DELAY_NS + self.chance.below(self.weather.delay_ns + slow_ns);
            self.wheel.push(Happening { at_ns, to: to as u32, from: Some(from as u32), bytes });
        };
        if is_twice {
            arrive(bytes.clone());
        }
        arrive(bytes);
    }
}

fn node(members: &[MemberId], at: usize, incarnation: u64, seed: u64, now_ns: u64) -> Node {
    let machine = MembershipView::new(members[at], incarnation, members, seed, now_ns);
    let (frozen_ns, slow_ns, timer_ns, side, ahead_ns) = (0, 0, u64::MAX, 0, 0);
    Node { machine, incarnation, is_up: true, frozen_ns, slow_ns, hears: true, speaks: true, side, ahead_ns, timer_ns }
}

//! A network in memory, without threads: the schedules of all ranks run in an order that a seed decides, and messages
//! between two ranks arrive in order but at any time.

use super::run::{
    CollectiveJob, CollectiveRun, Combine, EndedMessage, Folding, Network, RankRoute, RunFailure, RunTurn,
};
use super::schedule::Schedule;
use std::collections::VecDeque;
use std::sync::Arc;
use weft_fabric::{Envelope, Fault, Peer, Selector};

/// A small generator (xorshift), so that a seed replays a run.
pub struct SeededRandom(pub u64);

impl SeededRandom {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

struct SimulatedMessage {
    data: *const u8,
    length: usize,
    /// Copied already, or to be read where it lies when it is received.
    copy: Option<Vec<u8>>,
    id: u32,
}

struct SimulatedReceive {
    from: u32,
    buffer: *mut u8,
    capacity: usize,
    id: u32,
}

/// Everything between the ranks.
struct Wires {
    random: SeededRandom,
    ranks: u32,
    /// By `from * ranks + to`: sent, and arrived but not received.
    sent: Vec<VecDeque<SimulatedMessage>>,
    arrived: Vec<VecDeque<SimulatedMessage>>,
    posted: Vec<Vec<SimulatedReceive>>,
    ended: Vec<Option<EndedMessage>>,
}

impl Wires {
    fn new(ranks: u32, seed: u64) -> Self {
        let pairs = (ranks * ranks) as usize;
        Self {
            random: SeededRandom(seed * 2 + 0x9e37_79b9_7f4a_7c15),
            ranks,
            sent: (0..pairs).map(|_| VecDeque::new()).collect(),
            arrived: (0..pairs).map(|_| VecDeque::new()).collect(),
            posted: (0..ranks).map(|_| Vec::new()).collect(),
            ended: Vec::new(),
        }
    }

    fn new_id(&mut self) -> u32 {
        self.ended.push(None);
        self.ended.len() as u32 - 1
    }

    /// Lets one message arrive; false if none is on its way.
    fn deliver(&mut self) -> bool {
        let waiting: Vec<usize> = (0..self.sent.len()).filter(|&pair| !self.sent[pair].is_empty()).collect();
        if waiting.is_empty() {
            return false;
        }
        let pair = waiting[self.random.below(waiting.len() as u64) as usize];
        let message = self.sent[pair].pop_front().unwrap();
        self.arrived[pair].push_back(message);
        self.match_all(pair as u32 % self.ranks);
        true
    }

    fn match_all(&mut self, to: u32) {
        let mut at = 0;
        while at < self.posted[to as usize].len() {
            let from = self.posted[to as usize][at].from;
            let Some(message) = self.arrived[(from * self.ranks + to) as usize].pop_front() else {
                at += 1;
                continue;
            };
            let posted = self.posted[to as usize].remove(at);
            let data = message.copy.as_ref().map_or(message.data, |copy| copy.as_ptr());
            // SAFETY: the runs keep buffers alive and unchanged until their request has ended.
            unsafe { posted.buffer.copy_from_nonoverlapping(data, message.length.min(posted.capacity)) };
            let fault = (message.length != posted.capacity).then_some(Fault::Truncated);
            let length = message.length as u64;
            self.ended[posted.id as usize] = Some(EndedMessage { length, fault });
            self.ended[message.id as usize] = Some(EndedMessage { length, fault: None });
        }
    }
}

struct SimulatedPort<'a> {
    wires: &'a mut Wires,
    me: u32,
}

impl Network for SimulatedPort<'_> {
    type Id = u32;

    unsafe fn send(&mut self, to: Peer, envelope: Envelope, data: *const u8, length: usize) -> Option<u32> {
        assert_ne!(to.0, self.me, "ranks copy to themselves");
        assert_eq!((envelope.context, envelope.tag, envelope.source), (7, 11, self.me));
        let at_once = self.wires.random.below(2) == 0;
        // SAFETY: the caller's promise.
        let copy = at_once.then(|| unsafe { std::slice::from_raw_parts(data, length) }.to_vec());
        let id = self.wires.new_id();
        self.wires.sent[(self.me * self.wires.ranks + to.0) as usize].push_back(SimulatedMessage {
            data,
            length,
            copy,
            id,
        });
        (!at_once).then_some(id)
    }

    unsafe fn receive(&mut self, from: Selector, buffer: *mut u8, capacity: usize) -> u32 {
        assert_eq!((from.context, from.tag), (7, Some(11)));
        let id = self.wires.new_id();
        let from = from.peer.expect("collectives never receive from any source").0;
        assert_ne!(from, self.me, "ranks copy to themselves");
        self.wires.posted[self.me as usize].push(SimulatedReceive { from, buffer, capacity, id });
        self.wires.match_all(self.me);
        id
    }

    fn ended(&mut self, id: u32) -> Option<EndedMessage> {
        self.wires.ended[id as usize]
    }
}

/// Ranks of the other group follow those of our own.
struct Groups {
    local: Vec<u32>,
    remote: Vec<u32>,
}

impl RankRoute for Groups {
    fn peer(&self, rank: u32) -> Peer {
        let local = self.local.get(rank as usize);
        Peer(*local.unwrap_or_else(|| &self.remote[rank as usize - self.local.len()]))
    }
}

/// What one rank brings: its schedule and its buffers.
pub struct SimulatedRank {
    pub schedule: Schedule,
    pub input: Vec<u8>,
    pub output: Vec<u8>,
}

/// Runs the schedules of one group; answers every rank's output.
pub fn run(seed: u64, ranks: Vec<SimulatedRank>, combine: Option<Combine>) -> Vec<Vec<u8>> {
    let all = ranks.len() as u32;
    run_groups(seed, ranks, all, combine)
}

/// Runs the schedules of two groups: the first `first` ranks and the others.
pub fn run_groups(seed: u64, ranks: Vec<SimulatedRank>, first: u32, combine: Option<Combine>) -> Vec<Vec<u8>> {
    let mut stage = SimulatedStage::new(seed, ranks, first, combine);
    stage.play();
    for (rank, failure) in stage.failures.iter().enumerate() {
        assert_eq!(*failure, None, "rank {rank}");
    }
    stage.outputs
}

struct SimulatedStage {
    wires: Wires,
    /// `None` once a run is done.
    runs: Vec<Option<CollectiveRun<u32>>>,
    _inputs: Vec<Vec<u8>>,
    outputs: Vec<Vec<u8>>,
    failures: Vec<Option<RunFailure>>,
}

impl SimulatedStage {
    fn new(seed: u64, ranks: Vec<SimulatedRank>, first: u32, combine: Option<Combine>) -> Self {
        let n = ranks.len() as u32;
        let groups: [Vec<u32>; 2] = [(0..first).collect(), (first..n).collect()];
        let (mut runs, mut outputs, mut inputs) = (Vec::new(), Vec::new(), Vec::new());
        for (me, rank) in (0..n).zip(ranks) {
            let mine = usize::from(me >= first);
            let route = Groups { local: groups[mine].clone(), remote: groups[1 - mine].clone() };
            outputs.push(rank.output);
            inputs.push(rank.input);
            let job = CollectiveJob {
                schedule: rank.schedule,
                route: Arc::new(route),
                context: 7,
                tag: 11,
                source: me,
                input: inputs[me as usize].as_ptr(),
                output: outputs[me as usize].as_mut_ptr(),
                folding: combine.clone().map(|combine| Folding { combine, foreign: seed % 2 == 1 }),
                misfit: false,
            };
            // SAFETY: the buffers live as long as the runs and are as large as the tests' views.
            runs.push(Some(unsafe { CollectiveRun::<u32>::new(job) }));
        }
        let failures = vec![None; runs.len()];
        Self { wires: Wires::new(n, seed), runs, _inputs: inputs, outputs, failures }
    }

    fn play(&mut self) {
        let mut idle = 0;
        while self.runs.iter().any(Option::is_some) {
            let wires = &mut self.wires;
            let me = wires.random.below(self.runs.len() as u64) as usize;
            let delivered = wires.random.below(2) == 0 && wires.deliver();
            let Some(run) = &mut self.runs[me] else { continue };
            let before = wires.ended.len();
            match run.advance(&mut SimulatedPort { wires, me: me as u32 }) {
                RunTurn::Outside(fold) => fold.perform(),
                RunTurn::Done => {
                    self.failures[me] = run.failure();
                    self.runs[me] = None;
                }
                RunTurn::Blocked if wires.ended.len() == before && !delivered => idle += 1,
                RunTurn::Blocked => idle = 0,
            }
            assert!(idle <= 300 * self.runs.len(), "the schedules block each other");
        }
        let mut lists = self.wires.sent.iter().chain(&self.wires.arrived);
        assert!(lists.all(VecDeque::is_empty), "a message that nobody received");
    }
}

#[test]
fn all_who_pass_on_what_is_too_short_see_it_and_so_do_those_behind_them() {
    use super::algorithm::bcast::bcast;
    use super::schedule::{Area, Party, View};
    for seed in 0..20 {
        let ranks = (0..9u32).map(|rank| {
            let bytes = if rank == 0 { 16 } else { 24 };
            let mut schedule = Schedule::default();
            bcast(&mut schedule, Party { rank, size: 9 }, 0, View::bytes(Area::Output, 0, bytes));
            SimulatedRank { schedule, input: vec![], output: vec![0; 24] }
        });
        let mut stage = SimulatedStage::new(seed, ranks.collect(), 9, None);
        stage.play();
        assert_eq!(stage.failures[0], None, "the root receives nothing");
        for failure in &stage.failures[1..] {
            let is_seen = matches!(failure, Some(RunFailure::Message { fault: Fault::Truncated, expected: 24, .. }));
            assert!(is_seen, "{failure:?} with seed {seed}");
        }
    }
}

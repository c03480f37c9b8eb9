//! The network: events that are not in the order yet, how far each process has handled it, and messages of each pair.

use super::Rule;
use crate::message::{ObjectCall, ObjectId, ObjectPlacement, ProcessId};
use crate::runtime::{Effect, Runtime};
use std::collections::{BTreeMap, VecDeque};

/// Numbers that a seed makes.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678)
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % end as u64) as usize
    }

    pub fn is_one_of(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// One thing that the network can do next.
#[derive(Clone, Copy)]
enum Move {
    /// The oldest event of this process gets its place in the order.
    Order(usize),
    /// The process handles its next event.
    Deliver(usize),
    /// The oldest message from one to the other arrives.
    Arrive(usize, usize),
}

/// What stands in the order.
enum OrderEntry {
    Event(ProcessId, Vec<u8>),
    Gone(ProcessId),
}

/// Machines, and what is on its way between them.
pub struct MadeUpNetwork {
    pub machines: Vec<Runtime>,
    pub has_ended: Vec<bool>,
    submitted: Vec<VecDeque<Vec<u8>>>,
    order: Vec<OrderEntry>,
    handled: Vec<usize>,
    /// One of how many chances a process takes to handle its next event: some are slow.
    paces: Vec<usize>,
    links: BTreeMap<(usize, usize), VecDeque<Vec<u8>>>,
}

impl MadeUpNetwork {
    pub fn new(size: usize, rule: Rule, dice: &mut Dice) -> Self {
        let machine = |me: usize| {
            let mut machine = Runtime::new(me as u32, size as u32);
            machine.rule = rule;
            machine
        };
        Self {
            machines: (0..size).map(machine).collect(),
            has_ended: vec![false; size],
            submitted: vec![VecDeque::new(); size],
            order: Vec::new(),
            handled: vec![0; size],
            paces: (0..size).map(|_| [1, 1, 4, 20][dice.below(4)]).collect(),
            links: BTreeMap::new(),
        }
    }

    /// Takes what the machines want sent.
    pub fn collect(&mut self) {
        for (me, machine) in self.machines.iter_mut().enumerate() {
            while let Some(effect) = machine.poll_effect() {
                match effect {
                    _ if self.has_ended[me] => {}
                    Effect::Order(event) => self.submitted[me].push_back(event),
                    Effect::Send(to, message) => {
                        self.links.entry((me, to as usize)).or_default().push_back(message);
                    }
                }
            }
        }
    }

    fn moves(&self) -> Vec<Move> {
        let size = self.machines.len();
        let submits = (0..size).filter(|from| !self.submitted[*from].is_empty()).map(Move::Order);
        let lives = |me: &usize| !self.has_ended[*me];
        let delivers = (0..size).filter(lives).filter(|me| self.handled[*me] < self.order.len()).map(Move::Deliver);
        let full = self.links.iter().filter(|((_, to), queue)| !queue.is_empty() && lives(to));
        let arrives = full.map(|((from, to), _)| Move::Arrive(*from, *to));
        submits.chain(delivers).chain(arrives).collect()
    }

    /// Does one thing, or lets a chance go by; false if there is none.
    pub fn step(&mut self, dice: &mut Dice) -> bool {
        self.collect();
        let moves = self.moves();
        if moves.is_empty() {
            return false;
        }
        match moves[dice.below(moves.len())] {
            Move::Order(from) => {
                let event = self.submitted[from].pop_front().expect("it was seen");
                self.order.push(OrderEntry::Event(from as u32, event));
            }
            Move::Deliver(me) if !dice.is_one_of(self.paces[me]) => {}
            Move::Deliver(me) => {
                let at = self.handled[me];
                self.handled[me] += 1;
                match &self.order[at] {
                    OrderEntry::Event(origin, event) => self.machines[me].handle_ordered(at as u64 + 1, *origin, event),
                    OrderEntry::Gone(process) => self.machines[me].handle_gone(*process),
                }
            }
            Move::Arrive(from, to) => {
                let message = self.links.get_mut(&(from, to)).and_then(VecDeque::pop_front).expect("it was seen");
                self.machines[to].handle_direct(from as u32, &message);
            }
        }
        true
    }

    /// What all who have handled all know alike of each object: where it is, where it should be, and who holds it.
    pub fn knowledge(&self) -> Vec<String> {
        let known = |machine: &Runtime| {
            let objects = machine.objects.iter();
            let each = objects.map(|(object, of)| {
                format!("{object}: {:?}\n", (of.placement, of.wanted, of.is_fixed, &of.holders, of.lost))
            });
            each.collect()
        };
        self.settled().map(known).collect()
    }

    /// What waits for each replica, by object.
    pub fn waiting(&self) -> BTreeMap<ObjectId, Vec<Vec<ObjectCall>>> {
        let mut waiting = BTreeMap::<_, Vec<_>>::new();
        for (object, record) in self.settled().flat_map(|machine| &machine.objects) {
            if record.placement == ObjectPlacement::Replicated && record.copy.is_some() {
                waiting.entry(*object).or_default().push(record.waiting.clone());
            }
        }
        waiting
    }

    fn settled(&self) -> impl Iterator<Item = &Runtime> {
        let lives = |me: &usize| !self.has_ended[*me] && self.handled[*me] == self.order.len();
        (0..self.machines.len()).filter(lives).map(|me| &self.machines[me])
    }

    /// A process ends: some of what it has sent comes, and some does not. The order does not say yet that it has ended.
    pub fn end(&mut self, process: usize, dice: &mut Dice) {
        self.collect();
        self.has_ended[process] = true;
        let kept = dice.below(self.submitted[process].len() + 1);
        self.submitted[process].truncate(kept);
        for ((from, _), queue) in &mut self.links {
            if *from == process {
                let kept = dice.below(queue.len() + 1);
                queue.truncate(kept);
            }
        }
    }
    /// The order says that a process has ended. What it has sent and has no place yet is lost.
    pub fn announce_end(&mut self, process: usize) {
        self.submitted[process].clear();
        self.order.push(OrderEntry::Gone(process as u32));
    }
}

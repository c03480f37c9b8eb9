//! Operations of ranks on several hosts, in two levels: inside each host, and between one rank of each, its leader.
//!
//! Both levels are the algorithms of the other modules, among fewer ranks ([`Schedule::among`]). So each host takes
//! part in what goes over the network once, however many ranks it has and however they are numbered.
//!
//! Barrier, broadcast, reduce, allreduce and short allgathers are done so, blocking or not. The leader is the lowest
//! rank of its host, but a root acts for its own host. The map of the job says where everybody is, so all ranks choose
//! alike without a message. There is one level where every rank has a host of its own; for an operation that does not
//! commute, unless each host has ranks that follow each other; and, as measured, for broadcasts of 1 MiB and more along
//! ranks in that order, and for allgathers of more than 64 KiB in all. Gather, scatter, all to all, scans and
//! reduce-scatter have one level everywhere.

use super::{allgather, bcast, gather, reduce, tree};
use crate::schedule::{Party, Schedule, View};

/// Leads its host because it is the lowest rank; for operations without a root.
const FIRST: u32 = 0;

/// How the ranks of a communicator lie on hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    me: u32,
    /// Our host, counted as in `ranks`.
    mine: usize,
    /// The ranks of each host, in rising order; hosts in the order of their lowest rank.
    ranks: Vec<Vec<u32>>,
    /// All ranks of a host come one after the other.
    in_order: bool,
}

impl Hosts {
    /// Of ranks whose hosts have these numbers, as rank `me` sees it. `None` where one level is all there is: everybody
    /// on one host, or on a host of its own.
    pub fn of(numbers: &[u32], me: u32) -> Option<Self> {
        let mut ranks: Vec<Vec<u32>> = Vec::new();
        let mut places = std::collections::HashMap::new();
        for (rank, number) in (0..).zip(numbers) {
            let place = *places.entry(number).or_insert(ranks.len());
            if place == ranks.len() {
                ranks.push(Vec::new());
            }
            ranks[place].push(rank);
        }
        let mine = *places.get(numbers.get(me as usize)?)?;
        let in_order = ranks.concat().is_sorted();
        (ranks.len() > 1 && ranks.len() < numbers.len()).then_some(Self { me, mine, ranks, in_order })
    }

    /// Whether folding host by host gives what folding in the order of ranks gives.
    pub fn may_fold(&self, commutative: bool) -> bool {
        commutative || self.in_order
    }

    /// One rank of each host: the lowest, but `root` on its own.
    fn leaders(&self, root: u32) -> Vec<u32> {
        self.ranks.iter().map(|near| if near.contains(&root) { root } else { near[0] }).collect()
    }

    /// Appends what goes on between the leaders. `build` is told which of them is, or stands for, the root.
    fn between(&self, s: &mut Schedule, root: u32, build: impl FnOnce(&mut Schedule, Party, u32)) {
        let leaders = self.leaders(root);
        let at = leaders.iter().position(|leader| *leader == root).unwrap_or(0) as u32;
        s.among(&leaders, self.me, |s, party| build(s, party, at));
    }

    /// Appends what goes on inside our host. `build` is told who leads there.
    fn inside(&self, s: &mut Schedule, root: u32, build: impl FnOnce(&mut Schedule, Party, u32)) {
        let near = &self.ranks[self.mine];
        let leader = near.iter().position(|rank| *rank == root).unwrap_or(0) as u32;
        s.among(near, self.me, |s, party| build(s, party, leader));
    }

    /// Whether we lead our host.
    fn leads(&self, root: u32) -> bool {
        self.leaders(root)[self.mine] == self.me
    }

    /// All ranks in one level.
    fn everyone(&self) -> Party {
        Party { rank: self.me, size: self.ranks.iter().map(Vec::len).sum::<usize>() as u32 }
    }
}

pub fn barrier(s: &mut Schedule, hosts: &Hosts) {
    hosts.inside(s, FIRST, |s, party, _| tree::collect(s, party));
    hosts.between(s, FIRST, |s, party, _| super::barrier::barrier(s, party));
    hosts.inside(s, FIRST, |s, party, _| tree::release(s, party));
}

/// As [`bcast::bcast`]; the root gives its own host the data. A chain of ranks that lie in order passes each host once
/// and hides one level's way behind the other's.
pub fn bcast(s: &mut Schedule, hosts: &Hosts, root: u32, data: View) {
    if s.size(data) == 0 {
        return;
    }
    if hosts.in_order && s.size(data) >= bcast::CHAIN_BYTES {
        return bcast::bcast(s, hosts.everyone(), root, data);
    }
    let room = if hosts.me == root { s.packed(data) } else { s.unpacked(data) };
    hosts.between(s, root, |s, party, root| bcast::bcast(s, party, root, room));
    hosts.inside(s, root, |s, party, leader| bcast::bcast(s, party, leader, room));
    if hosts.me != root {
        s.unpack(room, data);
    }
}

/// As [`reduce::reduce`], where [`Hosts::may_fold`] allows it.
pub fn reduce(s: &mut Schedule, hosts: &Hosts, root: u32, input: View, output: View, commutative: bool) {
    let mut value = input;
    if hosts.ranks[hosts.mine].len() > 1 && s.size(input) > 0 {
        if hosts.leads(root) {
            value = if hosts.me == root { output } else { s.reserve_elements(input.shape, input.count) };
        }
        hosts.inside(s, root, |s, party, leader| reduce::reduce(s, party, leader, input, value, commutative));
    }
    hosts.between(s, root, |s, party, root| reduce::reduce(s, party, root, value, output, commutative));
}

/// As [`reduce::allreduce`], where [`Hosts::may_fold`] allows it.
pub fn allreduce(s: &mut Schedule, hosts: &Hosts, input: View, output: View, commutative: bool) {
    if s.size(output) == 0 {
        return;
    }
    let mut value = input;
    if hosts.ranks[hosts.mine].len() > 1 {
        value = output;
        hosts.inside(s, FIRST, |s, party, leader| reduce::reduce(s, party, leader, input, output, commutative));
    }
    hosts.between(s, FIRST, |s, party, _| reduce::allreduce(s, party, value, output));
    hosts.inside(s, FIRST, |s, party, leader| bcast::bcast(s, party, leader, output));
}

/// As [`allgather::allgather`]: each host's blocks go together. Many bytes are better not copied once more.
pub fn allgather(s: &mut Schedule, hosts: &Hosts, mine: Option<View>, blocks: &[View]) {
    let total: u64 = blocks.iter().map(|&block| s.size(block)).sum();
    if total == 0 || total > allgather::SHORT_BYTES {
        return allgather::allgather(s, hosts.everyone(), mine, blocks);
    }
    let own = blocks[hosts.me as usize];
    if let Some(mine) = mine {
        s.copy(mine, own);
    }
    // Packed, host after host: where they are to be if they lie so, else in memory of our own.
    let in_place = if hosts.in_order { allgather::joined(s, blocks) } else { None };
    let whole = in_place.unwrap_or_else(|| s.reserve(total));
    let mut parts = vec![whole.slice(0, 0); blocks.len()];
    let (mut end, mut ends) = (0, vec![0]);
    for near in &hosts.ranks {
        for &rank in near {
            let bytes = s.size(blocks[rank as usize]);
            parts[rank as usize] = whole.slice(end, bytes);
            end += bytes;
        }
        ends.push(end);
    }
    let of_hosts: Vec<View> = ends.windows(2).map(|ends| whole.slice(ends[0], ends[1] - ends[0])).collect();
    if in_place.is_none() {
        s.copy(own, parts[hosts.me as usize]);
    }
    let near: Vec<View> = hosts.ranks[hosts.mine].iter().map(|&rank| parts[rank as usize]).collect();
    hosts.inside(s, FIRST, |s, party, leader| {
        gather::gatherv(s, party, leader, Some(near[party.rank as usize]), &near);
    });
    hosts.between(s, FIRST, |s, party, _| allgather::allgather(s, party, None, &of_hosts));
    hosts.inside(s, FIRST, |s, party, leader| bcast::bcast(s, party, leader, whole));
    if in_place.is_none() {
        for (rank, (&part, &block)) in (0..).zip(parts.iter().zip(blocks)) {
            if rank != hosts.me {
                s.copy(part, block);
            }
        }
    }
}

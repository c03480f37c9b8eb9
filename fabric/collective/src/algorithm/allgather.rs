//! Allgather with equal or different counts: everyone knows the size of every block.

use crate::schedule::{Party, Schedule, View};
use weft_fabric::settings::algorithms::Allgather;

/// Up to this many bytes in all the number of rounds counts more than the bytes.
pub const SHORT_BYTES: u64 = 64 << 10;

/// Every rank's block reaches everyone. `mine` is our block, `None` if it already lies in its place; `blocks` are the
/// places by rank.
pub fn allgather(s: &mut Schedule, me: Party, mine: Option<View>, blocks: &[View]) {
    let own = blocks[me.rank as usize];
    let total: u64 = blocks.iter().map(|&block| s.size(block)).sum();
    if me.size == 1 || total == 0 {
        return s.copy(mine.unwrap_or(own), own);
    }
    // By nothing but what all ranks know alike: where each wants the blocks is its own matter.
    let (short, doubles) = (total <= SHORT_BYTES, me.size.is_power_of_two());
    let chosen = match short && me.size > 2 {
        true if doubles => Allgather::Doubling,
        true => Allgather::Bruck,
        false => Allgather::Ring,
    };
    let algorithm = match s.algorithms.allgather.unwrap_or(chosen) {
        Allgather::Doubling if !doubles => Allgather::Bruck,
        algorithm => algorithm,
    };
    s.chose(algorithm, me, total);
    if algorithm != Allgather::Ring {
        s.copy(mine.unwrap_or(own), own);
    }
    match algorithm {
        Allgather::Doubling => doubling(s, me, blocks),
        Allgather::Bruck => bruck(s, me, blocks),
        Allgather::Ring => ring(s, me, mine, blocks),
    }
}

/// All blocks as one stretch of bytes, if they lie in order without gaps.
pub fn joined(s: &Schedule, blocks: &[View]) -> Option<View> {
    let mut end = None;
    for &block in blocks {
        let flat = s.flat(block)?;
        if end.is_some_and(|end| end != flat.at) {
            return None;
        }
        end = Some(flat.at + flat.count as i64);
    }
    let first = s.flat(blocks[0])?;
    Some(View { count: (end? - first.at) as u64, ..first })
}

/// Recursive doubling: partners at growing distance exchange all they have, in place where the blocks lie side by side.
fn doubling(s: &mut Schedule, me: Party, blocks: &[View]) {
    let mut starts = vec![0];
    for &block in blocks {
        starts.push(starts[starts.len() - 1] + s.size(block));
    }
    let in_place = joined(s, blocks);
    let whole = in_place.unwrap_or_else(|| s.reserve(starts[me.size as usize]));
    let range = |first: u32, count: u32| {
        let (from, to) = (starts[first as usize], starts[(first + count) as usize]);
        whole.slice(from, to - from)
    };
    if in_place.is_none() {
        s.copy(blocks[me.rank as usize], range(me.rank, 1));
    }
    let mut distance = 1;
    while distance < me.size {
        let partner = me.rank ^ distance;
        s.receive(partner, range(partner & !(distance - 1), distance));
        s.send(partner, range(me.rank & !(distance - 1), distance));
        s.wait();
        distance *= 2;
    }
    if in_place.is_none() {
        for rank in (0..me.size).filter(|rank| *rank != me.rank) {
            s.copy(range(rank, 1), blocks[rank as usize]);
        }
    }
}

/// Bruck's algorithm: blocks are kept in the order from our own rank on, so that in each round the first ones we have
/// go to the rank before us by as much.
pub fn bruck(s: &mut Schedule, me: Party, blocks: &[View]) {
    let n = me.size;
    let mut starts = vec![0];
    for distance in 0..n {
        starts.push(starts[distance as usize] + s.size(blocks[me.after(distance) as usize]));
    }
    let held = s.reserve(starts[n as usize]);
    let part = |first: u32, count: u32| {
        let (from, to) = (starts[first as usize], starts[(first + count) as usize]);
        held.slice(from, to - from)
    };
    s.copy(blocks[me.rank as usize], part(0, 1));
    let mut have = 1;
    while have < n {
        let more = have.min(n - have);
        s.receive(me.after(have), part(have, more));
        s.send(me.before(have), part(0, more));
        s.wait();
        have += more;
    }
    for distance in 1..n {
        s.copy(part(distance, 1), blocks[me.after(distance) as usize]);
    }
}

/// Blocks go round a ring, each rank passing on what it received last. Our own leaves from where it is, and comes to
/// its place meanwhile.
pub fn ring(s: &mut Schedule, me: Party, mine: Option<View>, blocks: &[View]) {
    let own = blocks[me.rank as usize];
    let mine = mine.unwrap_or(own);
    let rooms: Vec<View> = (0..me.size)
        .map(|rank| if rank == me.rank { s.packed(mine) } else { s.unpacked(blocks[rank as usize]) })
        .collect();
    for round in 0..me.size - 1 {
        s.receive(me.before(1), rooms[me.before(round + 1) as usize]);
        s.send(me.after(1), rooms[me.before(round) as usize]);
        if round == 0 {
            s.copy(mine, own);
        }
        s.wait();
    }
    for rank in (0..me.size).filter(|&rank| rank != me.rank) {
        s.unpack(rooms[rank as usize], blocks[rank as usize]);
    }
}

//! Gather and scatter, with equal blocks or with counts that only the root knows.

use super::tree::BinomialPlace;
use crate::schedule::{Party, Schedule, View};
use weft_fabric::settings::algorithms::{Gather, Scatter};

/// Blocks up to this size travel along a tree, larger ones directly.
const TREE_BLOCK_BYTES: u64 = 2 << 10;
/// Below this many ranks a tree saves no rounds worth its copies.
const TREE_RANKS: u32 = 5;

fn prefers_tree(me: Party, block_bytes: u64) -> bool {
    me.size >= TREE_RANKS && block_bytes <= TREE_BLOCK_BYTES
}

/// Blocks of one size, known to all. `mine` is what this rank gives (`None` at a root in place), `blocks` the root's
/// places by rank, empty elsewhere.
pub fn gather(s: &mut Schedule, me: Party, root: u32, block_bytes: u64, mine: Option<View>, blocks: &[View]) {
    if block_bytes == 0 {
        return;
    }
    let chosen = if prefers_tree(me, block_bytes) { Gather::Tree } else { Gather::Direct };
    let algorithm = s.algorithms.gather.unwrap_or(chosen);
    s.chose(algorithm, me, block_bytes);
    if algorithm == Gather::Direct {
        return gatherv(s, me, root, mine, blocks);
    }
    let place = BinomialPlace::new(me, root);
    if let (1, Some(parent), Some(mine)) = (place.span, place.parent(), mine) {
        s.send(parent, mine);
        return s.wait();
    }
    // Blocks of our subtree by virtual rank, our own first.
    let held = s.reserve(u64::from(place.span) * block_bytes);
    let part = |first: u32, count: u32| held.slice(u64::from(first) * block_bytes, u64::from(count) * block_bytes);
    for (child, distance, span) in place.children() {
        s.receive(child, part(distance, span));
    }
    if let Some(parent) = place.parent() {
        s.copy(mine.unwrap_or(part(0, 1)), part(0, 1));
        s.wait();
        s.send(parent, held);
        return s.wait();
    }
    if let Some(mine) = mine {
        s.copy(mine, blocks[root as usize]);
    }
    s.wait();
    for v in 1..me.size {
        s.copy(part(v, 1), blocks[place.rank(v) as usize]);
    }
}

/// Everyone sends to the root directly.
pub fn gatherv(s: &mut Schedule, me: Party, root: u32, mine: Option<View>, blocks: &[View]) {
    if me.rank != root {
        mine.into_iter().for_each(|mine| s.send(root, mine));
        return s.wait();
    }
    for distance in 1..me.size {
        let from = me.after(distance);
        s.receive(from, blocks[from as usize]);
    }
    if let Some(mine) = mine {
        s.copy(mine, blocks[root as usize]);
    }
    s.wait();
}

/// Blocks of one size, known to all. `blocks` are the root's by rank, `mine` where this rank's goes (`None` at a root
/// in place).
pub fn scatter(s: &mut Schedule, me: Party, root: u32, block_bytes: u64, blocks: &[View], mine: Option<View>) {
    if block_bytes == 0 {
        return;
    }
    let chosen = if prefers_tree(me, block_bytes) { Scatter::Tree } else { Scatter::Direct };
    let algorithm = s.algorithms.scatter.unwrap_or(chosen);
    s.chose(algorithm, me, block_bytes);
    if algorithm == Scatter::Direct {
        return scatterv(s, me, root, blocks, mine);
    }
    let place = BinomialPlace::new(me, root);
    if let (1, Some(parent), Some(mine)) = (place.span, place.parent(), mine) {
        s.receive(parent, mine);
        return s.wait();
    }
    let held = s.reserve(u64::from(place.span) * block_bytes);
    let part = |first: u32, count: u32| held.slice(u64::from(first) * block_bytes, u64::from(count) * block_bytes);
    match place.parent() {
        Some(parent) => {
            s.receive(parent, held);
            s.wait();
        }
        None => (1..me.size).for_each(|v| s.copy(blocks[place.rank(v) as usize], part(v, 1))),
    }
    for &(child, distance, span) in place.children().iter().rev() {
        s.send(child, part(distance, span));
    }
    if let Some(mine) = mine {
        let source = if me.rank == root { blocks[root as usize] } else { part(0, 1) };
        s.copy(source, mine);
    }
    s.wait();
}

/// The root sends to everyone directly.
pub fn scatterv(s: &mut Schedule, me: Party, root: u32, blocks: &[View], mine: Option<View>) {
    if me.rank != root {
        mine.into_iter().for_each(|mine| s.receive(root, mine));
        return s.wait();
    }
    for distance in 1..me.size {
        let to = me.after(distance);
        s.send(to, blocks[to as usize]);
    }
    if let Some(mine) = mine {
        s.copy(blocks[root as usize], mine);
    }
    s.wait();
}

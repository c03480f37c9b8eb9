//! Broadcast.

use super::tree::BinomialPlace;
use crate::schedule::{Party, Schedule, View};
use weft_fabric::settings::algorithms::Bcast;

/// Up to this many bytes the number of rounds counts more than the bytes.
pub const SHORT_BYTES: u64 = 32 << 10;
/// From this many bytes on a chain hides everything but the first segment's way.
pub const CHAIN_BYTES: u64 = 1 << 20;
const SEGMENT_BYTES: u64 = 128 << 10;

/// `data` of rank `root` reaches everyone. Every rank names as many packed bytes, in whatever shape.
pub fn bcast(s: &mut Schedule, me: Party, root: u32, data: View) {
    let bytes = s.size(data);
    if me.size == 1 || bytes == 0 {
        return;
    }
    let room = if me.rank == root { s.packed(data) } else { s.unpacked(data) };
    let algorithm = s.algorithms.bcast.unwrap_or_else(|| choose(me, bytes));
    s.chose(algorithm, me, bytes);
    match algorithm {
        Bcast::Binomial => binomial(s, me, root, room),
        Bcast::Chain => chain(s, me, root, room),
        Bcast::ScatterAllgather => scatter_allgather(s, me, root, room),
    }
    if me.rank != root {
        s.unpack(room, data);
    }
}

fn choose(me: Party, bytes: u64) -> Bcast {
    if bytes <= SHORT_BYTES || me.size == 2 {
        Bcast::Binomial
    } else if bytes >= CHAIN_BYTES || bytes < u64::from(me.size) * 64 {
        Bcast::Chain
    } else {
        Bcast::ScatterAllgather
    }
}

pub fn binomial(s: &mut Schedule, me: Party, root: u32, data: View) {
    let place = BinomialPlace::new(me, root);
    if let Some(parent) = place.parent() {
        s.receive(parent, data);
        s.wait();
    }
    // The largest subtree first: it has the longest way to go.
    for &(child, ..) in place.children().iter().rev() {
        s.send(child, data);
    }
    s.wait();
}

/// Segments run along the ranks; while one is passed on the next one is received.
pub fn chain(s: &mut Schedule, me: Party, root: u32, data: View) {
    let position = (me.rank + me.size - root) % me.size;
    let segments = data.count.div_ceil(SEGMENT_BYTES);
    let segment = |i: u64| data.slice(i * SEGMENT_BYTES, SEGMENT_BYTES.min(data.count - i * SEGMENT_BYTES));
    for i in 0..=segments {
        if position > 0 && i < segments {
            s.receive(me.before(1), segment(i));
        }
        if position + 1 < me.size && i > 0 {
            s.send(me.after(1), segment(i - 1));
        }
        s.wait();
    }
}

/// The root's data is dealt out in `n` pieces along a binomial tree, then the pieces go round a ring (van de Geijn).
pub fn scatter_allgather(s: &mut Schedule, me: Party, root: u32, data: View) {
    let place = BinomialPlace::new(me, root);
    let piece = data.count.div_ceil(u64::from(me.size));
    let start = |v: u32| (u64::from(v) * piece).min(data.count);
    let pieces = |first: u32, count: u32| data.slice(start(first), start(first + count) - start(first));
    if let Some(parent) = place.parent() {
        s.receive(parent, pieces(place.virtual_rank, place.span));
        s.wait();
    }
    for &(child, distance, span) in place.children().iter().rev() {
        s.send(child, pieces(place.virtual_rank + distance, span));
    }
    s.wait();
    for round in 0..me.size - 1 {
        let held = (place.virtual_rank + me.size - round) % me.size;
        let coming = (held + me.size - 1) % me.size;
        s.receive(me.before(1), pieces(coming, 1));
        s.send(me.after(1), pieces(held, 1));
        s.wait();
    }
}

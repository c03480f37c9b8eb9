//! All to all with equal or different counts, and the exchange with neighbours.

use crate::schedule::{Party, Schedule, View};
use weft_fabric::settings::algorithms::Alltoall;

/// Messages each way that one rank has under way at a time.
const WINDOW: u32 = 32;
/// Blocks up to this size are worth forwarding when there are many ranks.
const BRUCK_BLOCK_BYTES: u64 = 256;
const BRUCK_RANKS: u32 = 16;

/// Block `i` of everyone's `inputs` goes to rank `i`; what rank `i` sends comes to `outputs[i]`. The same size for all
/// pairs.
pub fn alltoall(s: &mut Schedule, me: Party, inputs: &[View], outputs: &[View]) {
    let forwards = me.size >= BRUCK_RANKS && s.size(inputs[0]) <= BRUCK_BLOCK_BYTES;
    let chosen = if forwards { Alltoall::Bruck } else { Alltoall::Pairwise };
    let algorithm = s.algorithms.alltoall.unwrap_or(chosen);
    s.chose(algorithm, me, s.size(inputs[0]));
    if algorithm == Alltoall::Bruck {
        bruck(s, me, inputs, outputs);
    } else {
        pairwise(s, me, inputs, outputs);
    }
}

/// Direct messages; in each round the ranks form pairs, so that nobody is flooded.
pub fn pairwise(s: &mut Schedule, me: Party, inputs: &[View], outputs: &[View]) {
    s.copy(inputs[me.rank as usize], outputs[me.rank as usize]);
    for distance in 1..me.size {
        let (from, to) = (me.before(distance), me.after(distance));
        s.receive(from, outputs[from as usize]);
        s.send(to, inputs[to as usize]);
        if distance % WINDOW == 0 {
            s.wait();
        }
    }
    s.wait();
}

/// Bruck's algorithm: a block that has to travel the distance `d` makes one hop for each bit of `d`.
pub fn bruck(s: &mut Schedule, me: Party, inputs: &[View], outputs: &[View]) {
    let n = me.size;
    let bytes = s.size(inputs[0]);
    let held = s.reserve(u64::from(n) * bytes);
    let slot = |view: View, i: u32| view.slice(u64::from(i) * bytes, bytes);
    // Slot `d` holds the block that still has to go the distance `d`'s remaining bits.
    for distance in 0..n {
        s.copy(inputs[me.after(distance) as usize], slot(held, distance));
    }
    let (leaving, coming) = (s.reserve(u64::from(n / 2 + 1) * bytes), s.reserve(u64::from(n / 2 + 1) * bytes));
    let mut hop = 1;
    while hop < n {
        let moving: Vec<u32> = (0..n).filter(|distance| distance & hop != 0).collect();
        for (i, &distance) in moving.iter().enumerate() {
            s.copy(slot(held, distance), slot(leaving, i as u32));
        }
        let all = moving.len() as u64 * bytes;
        s.receive(me.before(hop), coming.slice(0, all));
        s.send(me.after(hop), leaving.slice(0, all));
        s.wait();
        for (i, &distance) in moving.iter().enumerate() {
            s.copy(slot(coming, i as u32), slot(held, distance));
        }
        hop *= 2;
    }
    for distance in 0..n {
        s.copy(slot(held, distance), outputs[me.before(distance) as usize]);
    }
}

/// Copies of what would be overwritten, for operations in place.
pub fn saved(s: &mut Schedule, views: &[View]) -> Vec<View> {
    let save = |&view: &View| {
        let room = s.reserve(s.size(view));
        s.copy(view, room);
        room
    };
    views.iter().map(save).collect()
}

/// Each view goes to or comes from the rank beside it. Several with one rank match in order; a rank's exchange with
/// itself is copied.
pub fn exchange(s: &mut Schedule, me: u32, sends: &[(u32, View)], receives: &[(u32, View)]) {
    let own = |list: &[(u32, View)]| list.iter().filter(|edge| edge.0 == me).map(|edge| edge.1).collect::<Vec<_>>();
    for (from, to) in own(sends).into_iter().zip(own(receives)) {
        s.copy(from, to);
    }
    for &(from, view) in receives.iter().filter(|edge| edge.0 != me) {
        s.receive(from, view);
    }
    for &(to, view) in sends.iter().filter(|edge| edge.0 != me) {
        s.send(to, view);
    }
    s.wait();
}

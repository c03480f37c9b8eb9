//! Collectives of intercommunicators, composed of those inside a group. Rank `r` of the other group is `me.size + r`.

use super::{bcast, gather, reduce};
use crate::schedule::{Party, Schedule, View};

/// A rank's part in a rooted operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Root,
    /// In the root's group, but not the root: has no part.
    Idle,
    /// In the other group; the root's rank there.
    Across(u32),
}

/// The root's data reaches every rank of the other group.
pub fn broadcast(s: &mut Schedule, me: Party, role: Role, data: View) {
    match role {
        Role::Idle => {}
        Role::Root => {
            s.send(me.size, data);
            s.wait();
        }
        Role::Across(root) => {
            if me.rank == 0 {
                s.receive(me.size + root, data);
                s.wait();
            }
            bcast::bcast(s, me, 0, data);
        }
    }
}

/// `blocks` are the root's places by remote rank; `mine` what a rank of the other group gives.
pub fn collect(s: &mut Schedule, me: Party, role: Role, mine: View, blocks: &[View]) {
    match role {
        Role::Idle => {}
        Role::Root => (0..).zip(blocks).for_each(|(rank, &block)| s.receive(me.size + rank, block)),
        Role::Across(root) => s.send(me.size + root, mine),
    }
    s.wait();
}

/// `blocks` are the root's by remote rank; `mine` is where a rank of the other group gets its own.
pub fn deal(s: &mut Schedule, me: Party, role: Role, blocks: &[View], mine: View) {
    match role {
        Role::Idle => {}
        Role::Root => (0..).zip(blocks).for_each(|(rank, &block)| s.send(me.size + rank, block)),
        Role::Across(root) => s.receive(me.size + root, mine),
    }
    s.wait();
}

/// Block `i` of `inputs` goes to remote rank `i`, whose block comes to `outputs[i]`. (Allgather: the same input for
/// all.)
pub fn exchange(s: &mut Schedule, me: Party, inputs: &[View], outputs: &[View]) {
    (0..).zip(outputs).for_each(|(rank, &output)| s.receive(me.size + rank, output));
    (0..).zip(inputs).for_each(|(rank, &input)| s.send(me.size + rank, input));
    s.wait();
}

/// The root gets the fold of the other group's vectors.
pub fn reduce_to(s: &mut Schedule, me: Party, role: Role, input: View, output: View, commutative: bool) {
    match role {
        Role::Idle => {}
        Role::Root => s.receive(me.size, output),
        Role::Across(root) => {
            let value = s.reserve_elements(input.shape, input.count);
            reduce::reduce(s, me, 0, input, value, commutative);
            if me.rank == 0 {
                s.send(me.size + root, value);
            }
        }
    }
    s.wait();
}

/// Every rank gets the fold of the other group's vectors.
pub fn allreduce(s: &mut Schedule, me: Party, input: View, output: View, commutative: bool) {
    let value = s.reserve_elements(input.shape, input.count);
    reduce::reduce(s, me, 0, input, value, commutative);
    if me.rank == 0 {
        s.receive(me.size, output);
        s.send(me.size, value);
        s.wait();
    }
    bcast::bcast(s, me, 0, output);
}

/// The fold of the other group's vectors is dealt out among ours: `counts` elements each.
pub fn reduce_scatter(s: &mut Schedule, me: Party, counts: &[u64], input: View, output: View, commutative: bool) {
    let value = s.reserve_elements(input.shape, input.count);
    let theirs = s.reserve_elements(input.shape, input.count);
    reduce::reduce(s, me, 0, input, value, commutative);
    let mut blocks = Vec::new();
    if me.rank == 0 {
        s.receive(me.size, theirs);
        s.send(me.size, value);
        s.wait();
        let mut first = 0;
        for &count in counts {
            blocks.push(s.part(theirs, first, count));
            first += count;
        }
    }
    gather::scatterv(s, me, 0, &blocks, Some(output));
}

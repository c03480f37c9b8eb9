//! Graphs of which each process knows its own edges (MPI 5.0, section 8.5.4).

use crate::comm::Comm;
use crate::comm::agree::{Circle, tell, wait};
use crate::error::Result;
use crate::world::WORLD;
use std::collections::BTreeMap;
use weft_fabric::{Envelope, Selector, SendMode};

/// The calling process's edges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distributed {
    pub sources: Vec<i32>,
    pub destinations: Vec<i32>,
    /// Weights of the edges in and out, if the program gave any.
    pub weights: Option<(Vec<i32>, Vec<i32>)>,
}

/// An edge that a process has told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: i32,
    pub to: i32,
    pub weight: i32,
}

/// Tells both ends of each edge about it; answers the edges that end here, in the order of the ranks that told them.
///
/// Everybody first says how many messages each process will get, so that all know when they are done.
pub fn hand_out(call: &'static str, comm: &Comm, edges: &[Edge]) -> Result<Distributed> {
    let rank = comm.rank as i32;
    let mut parcels: BTreeMap<i32, Vec<[i32; 3]>> = BTreeMap::new();
    for edge in edges {
        parcels.entry(edge.from).or_default().push([edge.from, edge.to, edge.weight]);
        if edge.to != edge.from {
            parcels.entry(edge.to).or_default().push([edge.from, edge.to, edge.weight]);
        }
    }
    let own = parcels.remove(&rank).unwrap_or_default();
    let mut got = BTreeMap::from([(rank, own)]);
    got.extend(swap(call, comm, &parcels)?);
    let mut graph = Distributed { weights: Some(Default::default()), ..Default::default() };
    let (into, out) = graph.weights.as_mut().expect("just set");
    for [from, to, weight] in got.into_values().flatten() {
        if to == rank {
            graph.sources.push(from);
            into.push(weight);
        }
        if from == rank {
            graph.destinations.push(to);
            out.push(weight);
        }
    }
    Ok(graph)
}

/// Sends each parcel to its rank; answers the parcels for this one, by the ranks that sent them.
fn swap(
    call: &'static str,
    comm: &Comm,
    parcels: &BTreeMap<i32, Vec<[i32; 3]>>,
) -> Result<BTreeMap<i32, Vec<[i32; 3]>>> {
    let senders = count_senders(call, comm, parcels)?;
    let me = WORLD.enter().endpoint.me();
    let Circle { context, tag, .. } = Circle::of(comm, me);
    let envelope = Envelope { context, tag, source: comm.rank };
    let selector = Selector { context, peer: None, tag: Some(tag) };
    let mut sends = Vec::new();
    for (&to, parcel) in parcels {
        let (data, length) = (parcel.as_ptr().cast(), size_of_val(parcel.as_slice()));
        let to = comm.peer(to)?;
        // SAFETY: the parcels outlive their sends, which are waited for below.
        sends.push(unsafe { WORLD.enter().endpoint.post_send(to, envelope, data, length, SendMode::Standard) });
    }
    let mut got = BTreeMap::new();
    for _ in 0..senders {
        let (message, seen) = wait(call, context, |world| world.endpoint.take_matched(selector));
        let mut parcel = vec![[0; 3]; seen.length as usize / size_of::<[i32; 3]>()];
        let (data, capacity) = (parcel.as_mut_ptr().cast(), size_of_val(parcel.as_slice()));
        // SAFETY: the parcel lives until its receive is complete, which is waited for at once.
        let request = unsafe { WORLD.enter().endpoint.post_matched_receive(message, data, capacity) };
        wait(call, context, |world| world.endpoint.take_outcome(request));
        got.insert(seen.source as i32, parcel);
    }
    for request in sends {
        wait(call, context, |world| world.endpoint.take_outcome(request));
    }
    Ok(got)
}

/// How many processes have a parcel for this one: every process says in turns of 256 ranks to whom it will send.
fn count_senders(call: &'static str, comm: &Comm, parcels: &BTreeMap<i32, Vec<[i32; 3]>>) -> Result<usize> {
    let mut senders = 0;
    for turn in 0..comm.size().div_ceil(256) {
        let mut mask = [0u64; 4];
        for &to in parcels.keys().filter(|&&to| to as u32 / 256 == turn) {
            mask[to as usize % 256 / 64] |= 1 << (to % 64);
        }
        let said = tell(call, comm, mask)?;
        if comm.rank / 256 == turn {
            let (word, bit) = (comm.rank as usize % 256 / 64, comm.rank % 64);
            senders = said.iter().filter(|mask| mask[word] >> bit & 1 == 1).count();
        }
    }
    Ok(senders)
}

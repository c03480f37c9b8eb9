//! Neighbourhood collectives (MPI 5.0, sections 8.6 to 8.9).

use super::check::{CallDraft, RECEIVE, SEND};
use super::movement::MovementSide;
use crate::abi::Described;
use crate::abi::PROC_NULL;
use crate::coll::call::{PreparedCall, Scene};
use crate::comm::Comm;
use crate::error::{Class, Error, Result};
use crate::topology::Topology;
use weft_collective::algorithm::alltoall;
use weft_collective::schedule::{Area, View};

/// Our neighbours: whom we receive from and send to, in the order of the blocks. `MPI_PROC_NULL` has no block filled.
struct NeighborBlocks {
    sources: Vec<i32>,
    destinations: Vec<i32>,
    /// In a grid what is sent in one direction arrives from the other one.
    crossed: bool,
}

fn neighbors(comm: &Comm) -> Result<NeighborBlocks> {
    let missing = || Error::new(Class::Topology, "the communicator has no topology, so its ranks have no neighbours");
    let found = comm.topology.as_ref().ok_or_else(missing)?.neighbors(comm.rank);
    let crossed = matches!(comm.topology, Some(Topology::Cartesian(_)));
    Ok(NeighborBlocks { sources: found.sources, destinations: found.destinations, crossed })
}

/// The same block to every neighbour.
pub fn allgather(scene: &Scene, mine: Described, all: MovementSide) -> Result<PreparedCall> {
    let mut draft = CallDraft::new(scene);
    let neighbors = neighbors(draft.comm())?;
    let given = draft.single(Area::Input, SEND, mine)?;
    let outputs = all.views(&mut draft, Area::Output, RECEIVE, neighbors.sources.len() as u32)?;
    let inputs = vec![given; neighbors.destinations.len()];
    Ok(exchange(draft, &neighbors, &inputs, &outputs))
}

/// To every neighbour its block.
pub fn alltoall(scene: &Scene, sent: MovementSide, received: MovementSide) -> Result<PreparedCall> {
    let mut draft = CallDraft::new(scene);
    let neighbors = neighbors(draft.comm())?;
    let inputs = sent.views(&mut draft, Area::Input, SEND, neighbors.destinations.len() as u32)?;
    let outputs = received.views(&mut draft, Area::Output, RECEIVE, neighbors.sources.len() as u32)?;
    Ok(exchange(draft, &neighbors, &inputs, &outputs))
}

fn exchange(mut draft: CallDraft, neighbors: &NeighborBlocks, inputs: &[View], outputs: &[View]) -> PreparedCall {
    let sends = edges(&neighbors.destinations, inputs);
    let mut receives: Vec<_> = neighbors.sources.iter().copied().zip(outputs.iter().copied()).collect();
    if neighbors.crossed {
        // Both neighbours along a ring of two, or of one, are the same rank: its first message was sent in the
        // negative direction and arrives from the positive one.
        receives.chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1));
    }
    let (sources, outputs): (Vec<_>, Vec<_>) = receives.into_iter().unzip();
    let receives = edges(&sources, &outputs);
    alltoall::exchange(&mut draft.prepared.schedule, draft.scene.comm.rank, &sends, &receives);
    draft.prepared
}

fn edges(ranks: &[i32], views: &[View]) -> Vec<(u32, View)> {
    let edges = ranks.iter().zip(views).filter(|edge| *edge.0 != PROC_NULL);
    edges.map(|(&rank, &view)| (rank as u32, view)).collect()
}

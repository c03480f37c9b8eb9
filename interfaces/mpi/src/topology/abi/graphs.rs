//! Bodies of the graph functions.

use super::super::distributed::{Distributed, Edge, hand_out};
use super::super::{Graph, Topology};
use super::store;
use crate::abi::{COMM_NULL, UNDEFINED, UNWEIGHTED, WEIGHTS_EMPTY, slice_of};
use crate::comm::Comm;
use crate::comm::abi::{intra, of};
use crate::comm::create::with_topology;
use crate::error::{Class, Error, Result};

unsafe fn graph_of(comm: &Comm, nnodes: i32, index: *const i32, edges: *const i32) -> Result<Graph> {
    // SAFETY: the program's arrays; the last index is the number of edges.
    unsafe {
        let index = slice_of(index, nnodes, "nnodes")?;
        if index.len() > comm.size() as usize {
            let detail = format!("nnodes {nnodes} is more than the {} processes of the communicator", comm.size());
            return Err(Error::new(Class::Arg, detail));
        }
        let edges = slice_of(edges, index.last().copied().unwrap_or(0), "the last index")?;
        Graph::new(index.to_vec(), edges.to_vec())
    }
}

pub unsafe fn graph_create(
    comm: usize,
    nnodes: i32,
    index: *const i32,
    edges: *const i32,
    _reorder: i32,
) -> Result<usize> {
    let comm = intra(comm)?;
    // SAFETY: as the caller says.
    let graph = unsafe { graph_of(&comm, nnodes, index, edges)? };
    let made = with_topology("MPI_Graph_create", &comm, nnodes as u32, Topology::Graph(graph))?;
    Ok(made.unwrap_or(COMM_NULL))
}

/// The rank that a graph would give the process: its own.
pub unsafe fn graph_map(comm: usize, nnodes: i32, index: *const i32, edges: *const i32) -> Result<i32> {
    let comm = intra(comm)?;
    // SAFETY: as the caller says.
    unsafe { graph_of(&comm, nnodes, index, edges)? };
    Ok(if comm.rank < nnodes as u32 { comm.rank as i32 } else { UNDEFINED })
}

/// Nodes and edges.
pub fn graphdims_get(comm: usize) -> Result<(i32, i32)> {
    let comm = of(comm)?;
    let graph = comm.graph()?;
    Ok((graph.index.len() as i32, graph.edges.len() as i32))
}

pub unsafe fn graph_get(comm: usize, maxindex: i32, maxedges: i32, index: *mut i32, edges: *mut i32) -> Result<()> {
    let comm = of(comm)?;
    let graph = comm.graph()?;
    // SAFETY: the program's arrays of these lengths.
    unsafe {
        store(graph.index.iter().copied(), maxindex, index);
        store(graph.edges.iter().copied(), maxedges, edges);
    }
    Ok(())
}

/// Neighbours of any rank of the graph.
fn neighbors_of(comm: &Comm, rank: i32) -> Result<&[i32]> {
    let graph = comm.graph()?;
    comm.peer(rank)?;
    Ok(graph.of(rank as u32))
}

pub fn graph_neighbors_count(comm: usize, rank: i32) -> Result<i32> {
    Ok(neighbors_of(&*of(comm)?, rank)?.len() as i32)
}

pub unsafe fn graph_neighbors(comm: usize, rank: i32, room: i32, neighbors: *mut i32) -> Result<()> {
    let comm = of(comm)?;
    // SAFETY: the program's array of maxneighbors places.
    unsafe { store(neighbors_of(&comm, rank)?.iter().copied(), room, neighbors) };
    Ok(())
}

/// The weights, or `None` if the program gave none.
unsafe fn weights_of<'a>(weights: *const i32, length: i32) -> Result<Option<&'a [i32]>> {
    match weights as usize {
        UNWEIGHTED => Ok(None),
        WEIGHTS_EMPTY => Ok(Some(&[])),
        // SAFETY: the program's array.
        _ => unsafe { slice_of(weights, length, "degree").map(Some) },
    }
}

fn check_ranks(comm: &Comm, ranks: &[i32]) -> Result<()> {
    ranks.iter().try_for_each(|&rank| comm.peer(rank).map(drop))
}

pub unsafe fn dist_graph_create_adjacent(
    comm: usize,
    indegree: i32,
    sources: *const i32,
    sourceweights: *const i32,
    outdegree: i32,
    destinations: *const i32,
    destweights: *const i32,
    _info: usize,
    _reorder: i32,
) -> Result<usize> {
    let comm = intra(comm)?;
    // SAFETY: the program's arrays of these lengths.
    let (sources, destinations, into, outof) = unsafe {
        let sources = slice_of(sources, indegree, "indegree")?;
        let destinations = slice_of(destinations, outdegree, "outdegree")?;
        (sources, destinations, weights_of(sourceweights, indegree)?, weights_of(destweights, outdegree)?)
    };
    check_ranks(&comm, sources)?;
    check_ranks(&comm, destinations)?;
    let weights = into.zip(outof).map(|(into, outof)| (into.to_vec(), outof.to_vec()));
    let graph = Distributed { sources: sources.to_vec(), destinations: destinations.to_vec(), weights };
    let topology = Topology::Distributed(graph);
    Ok(with_topology("MPI_Dist_graph_create_adjacent", &comm, comm.size(), topology)?.unwrap_or(COMM_NULL))
}

pub unsafe fn dist_graph_create(
    comm: usize,
    n: i32,
    sources: *const i32,
    degrees: *const i32,
    destinations: *const i32,
    weights: *const i32,
    _info: usize,
    _reorder: i32,
) -> Result<usize> {
    const CALL: &str = "MPI_Dist_graph_create";
    let comm = intra(comm)?;
    // SAFETY: the program's arrays; there are as many destinations as the degrees say.
    let edges = unsafe {
        let (sources, degrees) = (slice_of(sources, n, "n")?, slice_of(degrees, n, "n")?);
        let total = degrees.iter().try_fold(0i32, |sum, &degree| sum.checked_add(degree).filter(|_| degree >= 0));
        let total = total.ok_or_else(|| Error::new(Class::Arg, "degrees holds a negative number or too many edges"))?;
        let (destinations, weights) = (slice_of(destinations, total, "degrees")?, weights_of(weights, total)?);
        check_ranks(&comm, sources)?;
        check_ranks(&comm, destinations)?;
        let from = sources.iter().zip(degrees).flat_map(|(&source, &degree)| (0..degree).map(move |_| source));
        let weight = |place: usize| weights.map_or(1, |weights| weights.get(place).copied().unwrap_or(1));
        let edges = from.zip(destinations).enumerate();
        edges.map(|(place, (from, &to))| Edge { from, to, weight: weight(place) }).collect::<Vec<_>>()
    };
    let mut graph = hand_out(CALL, &comm, &edges)?;
    if weights as usize == UNWEIGHTED {
        graph.weights = None;
    }
    Ok(with_topology(CALL, &comm, comm.size(), Topology::Distributed(graph))?.unwrap_or(COMM_NULL))
}

pub unsafe fn dist_graph_neighbors_count(
    comm: usize,
    indegree: *mut i32,
    outdegree: *mut i32,
    weighted: *mut i32,
) -> Result<()> {
    let comm = of(comm)?;
    let graph = comm.distributed()?;
    // SAFETY: the program's places for the numbers.
    unsafe {
        *indegree = graph.sources.len() as i32;
        *outdegree = graph.destinations.len() as i32;
        *weighted = graph.weights.is_some() as i32;
    }
    Ok(())
}

pub unsafe fn dist_graph_neighbors(
    comm: usize,
    maxindegree: i32,
    sources: *mut i32,
    sourceweights: *mut i32,
    maxoutdegree: i32,
    destinations: *mut i32,
    destweights: *mut i32,
) -> Result<()> {
    let comm = of(comm)?;
    let graph = comm.distributed()?;
    // SAFETY: the program's arrays of these lengths, or the constants that say there are none.
    unsafe {
        store(graph.sources.iter().copied(), maxindegree, sources);
        store(graph.destinations.iter().copied(), maxoutdegree, destinations);
        let wanted = |at: *mut i32| at as usize != UNWEIGHTED && at as usize != WEIGHTS_EMPTY;
        if let Some((into, outof)) = &graph.weights {
            if wanted(sourceweights) {
                store(into.iter().copied(), maxindegree, sourceweights);
            }
            if wanted(destweights) {
                store(outof.iter().copied(), maxoutdegree, destweights);
            }
        }
    }
    Ok(())
}

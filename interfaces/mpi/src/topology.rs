//! Process topologies (MPI 5.0, chapter 8).
//!
//! Ranks are never reordered: the order of the launcher already keeps neighbours together, and programs can rely on it.

pub mod abi;
mod cartesian;
mod dims;
mod distributed;
mod graph;
mod of_comm;

pub use cartesian::Cartesian;
pub use dims::balance;
pub use distributed::Distributed;
pub use graph::Graph;

/// How the processes of a communicator are arranged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    Cartesian(Cartesian),
    Graph(Graph),
    Distributed(Distributed),
}

/// Ranks that a process receives from and sends to in a neighbourhood collective, in the standard's order
/// (MPI 5.0, section 8.6). `MPI_PROC_NULL` (-3) stands for a missing neighbour of a grid's edge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbors {
    pub sources: Vec<i32>,
    pub destinations: Vec<i32>,
}

impl Topology {
    /// The neighbours of the process with this rank, which is the calling one for a distributed graph.
    pub fn neighbors(&self, rank: u32) -> Neighbors {
        match self {
            Self::Cartesian(grid) => grid.neighbors(rank),
            Self::Graph(graph) => {
                let neighbors = graph.of(rank).to_vec();
                Neighbors { sources: neighbors.clone(), destinations: neighbors }
            }
            Self::Distributed(graph) => {
                Neighbors { sources: graph.sources.clone(), destinations: graph.destinations.clone() }
            }
        }
    }
}

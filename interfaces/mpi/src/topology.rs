//! Process topologies (MPI 5.0, chapter 8).
//!
//! Ranks are never reordered: the order of the launcher already keeps neighbours together, and programs can rely on it.

pub mod abi;
mod cartesian;
mod dims;
mod distributed;
mod graph;

pub use cartesian::Cartesian;
pub use dims::balance;
pub use distributed::Distributed;
pub use graph::Graph;

use crate::comm::Comm;
use crate::error::{Class, Error, Result};

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

fn without(comm: &Comm, kind: &str) -> Error {
    Error::new(Class::Topology, format!("{} has no {kind} topology", comm.display_name()))
}

impl Comm {
    pub(crate) fn cartesian(&self) -> Result<&Cartesian> {
        match &self.topology {
            Some(Topology::Cartesian(grid)) => Ok(grid),
            _ => Err(without(self, "cartesian")),
        }
    }

    pub(crate) fn graph(&self) -> Result<&Graph> {
        match &self.topology {
            Some(Topology::Graph(graph)) => Ok(graph),
            _ => Err(without(self, "graph")),
        }
    }

    pub(crate) fn distributed(&self) -> Result<&Distributed> {
        match &self.topology {
            Some(Topology::Distributed(graph)) => Ok(graph),
            _ => Err(without(self, "distributed graph")),
        }
    }
}

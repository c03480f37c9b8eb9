//! Process topologies (MPI 5.0, chapter 8).

/// How the processes of a communicator are arranged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    Cartesian(Cartesian),
    Graph(Graph),
    Distributed(Distributed),
}

/// A grid; ranks run through it in row-major order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cartesian {
    pub dims: Vec<i32>,
    pub periodic: Vec<bool>,
}

/// A graph known in full by every process: `edges[index[i - 1]..index[i]]` are the neighbours of rank `i`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    pub index: Vec<i32>,
    pub edges: Vec<i32>,
}

/// A graph of which each process knows its own edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distributed {
    pub sources: Vec<i32>,
    pub destinations: Vec<i32>,
    /// Weights of the edges in and out, if the program gave any.
    pub weights: Option<(Vec<i32>, Vec<i32>)>,
}

/// Ranks that a process receives from and sends to in a neighbourhood collective, in the standard's order
/// (MPI 5.0, section 8.6). `MPI_PROC_NULL` (-3) stands for a missing neighbour of a grid's edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbors {
    pub sources: Vec<i32>,
    pub destinations: Vec<i32>,
}

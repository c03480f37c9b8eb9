//! Graphs that every process knows in full (MPI 5.0, section 8.5.3).

use crate::error::{Class, Error, Result, Unit};

/// `edges[index[i - 1]..index[i]]` are the neighbours of rank `i`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    pub index: Vec<i32>,
    pub edges: Vec<i32>,
}

const NODES: Unit = ("node", "nodes");

impl Graph {
    /// # Errors
    /// An index that falls, or an edge to a rank outside the graph.
    pub fn new(index: Vec<i32>, edges: Vec<i32>) -> Result<Self> {
        let nodes = index.len();
        if !index.is_sorted() || index.first().is_some_and(|&first| first < 0) {
            return Err(Error::new(Class::Arg, "index must rise from 0 on"));
        }
        match edges.iter().find(|&&edge| edge < 0 || edge as usize >= nodes) {
            Some(edge) => Err(Error::outside(Class::Arg, format!("edges holds {edge}"), "the graph", NODES, nodes)),
            None => Ok(Self { index, edges }),
        }
    }

    /// The neighbours of this rank.
    pub fn of(&self, rank: u32) -> &[i32] {
        let start = if rank == 0 { 0 } else { self.index[rank as usize - 1] };
        &self.edges[start as usize..self.index[rank as usize] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbors_stand_between_two_indices() {
        let graph = Graph::new(vec![2, 3, 3, 5], vec![1, 3, 0, 0, 2]).unwrap();
        assert_eq!((graph.of(0), graph.of(1), graph.of(3)), (&[1, 3][..], &[0][..], &[0, 2][..]));
        assert!(graph.of(2).is_empty());
    }

    #[test]
    fn edges_out_of_the_graph_are_refused() {
        assert!(Graph::new(vec![1], vec![1]).is_err() && Graph::new(vec![1, 0], vec![0]).is_err());
    }
}

//! The topology that a communicator has.

use super::{Cartesian, Distributed, Graph, Topology};
use crate::comm::Comm;
use crate::error::{Class, Error, Result};

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

//! Communicators (MPI 5.0, chapter 7).

use crate::error::{Class, Error, Result};
use crate::group::Group;
use crate::topology::Topology;
use std::sync::{Arc, Mutex};
use weft_fabric::Peer;

/// Contexts that one communicator uses, counted from [`Comm::context`].
pub const CONTEXTS_EACH: u32 = 4;
/// Collective operations: `context + COLLECTIVE`.
pub const COLLECTIVE: u32 = 1;
/// Making communicators out of this one: `context + CONSTRUCTION`.
pub const CONSTRUCTION: u32 = 2;

/// A communicator. Immutable but for its state, which locks itself and is off every hot path.
pub struct Comm {
    /// Point-to-point traffic uses `context`, collective traffic `context + 1`.
    pub context: u32,
    /// The calling process's rank in the local group.
    pub rank: u32,
    pub local: Arc<Group>,
    /// The other group of an intercommunicator.
    pub remote: Option<Arc<Group>>,
    /// The handle under which the program knows it.
    pub handle: usize,
    pub topology: Option<Topology>,
    /// What collectives keep for each communicator.
    pub collective: crate::coll::CommState,
    /// What point-to-point keeps for each communicator.
    pub point: crate::point::CommState,
    pub state: Mutex<State>,
}

/// What a program may change on a communicator.
#[derive(Default)]
pub struct State {
    pub name: String,
}

impl Comm {
    /// Size of the local group.
    #[inline]
    pub fn size(&self) -> u32 {
        self.local.size()
    }

    /// Size of the remote group of an intercommunicator; of the only group otherwise.
    #[inline]
    pub fn remote_size(&self) -> u32 {
        self.others().size()
    }

    pub fn is_inter(&self) -> bool {
        self.remote.is_some()
    }

    /// The group that destinations and sources are ranks of.
    #[inline]
    pub fn others(&self) -> &Group {
        self.remote.as_deref().unwrap_or(&self.local)
    }

    /// The process that `rank` names as a destination or source.
    ///
    /// # Errors
    /// A rank outside the group; wildcards and `MPI_PROC_NULL` are the caller's business.
    #[inline]
    pub fn peer(&self, rank: i32) -> Result<Peer> {
        let others = self.others();
        if (rank as u32) < others.size() { Ok(others.peer(rank as u32)) } else { Err(self.outside(rank)) }
    }

    #[cold]
    fn outside(&self, rank: i32) -> Error {
        let whose = if self.is_inter() { "the remote group of " } else { "" };
        Error::new(
            Class::Rank,
            format!("rank {rank} is outside 0..{} of {whose}{}", self.remote_size(), self.display_name()),
        )
    }

    /// The name for messages to people: the program's own, or the handle.
    pub fn display_name(&self) -> String {
        match self.state.lock() {
            Ok(state) if !state.name.is_empty() => state.name.clone(),
            _ => format!("communicator {:#x}", self.handle),
        }
    }
}

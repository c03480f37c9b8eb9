//! Communicators (MPI 5.0, chapter 7).

pub mod abi;
pub(crate) mod agree;
pub(crate) mod bridge;
pub(crate) mod cards;
pub(crate) mod context;
pub(crate) mod create;
mod disconnect;
mod exchange;
pub(crate) mod from_groups;
pub(crate) mod idup;

use crate::attribute::Attributes;
use crate::errhandler::handler::Handler;
use crate::error::{Class, Error, RANKS, Result};
use crate::group::Group;
use crate::info::Info;
use crate::topology::Topology;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weft_fabric::Peer;

/// Contexts that one communicator uses, counted from [`Comm::context`].
pub const CONTEXTS_EACH: u32 = 6;
/// Making communicators out of groups, without one to make them from. No communicator has it.
pub const FROM_GROUPS: u32 = u32::MAX - 1;
/// Where two jobs meet, before they have a communicator.
pub const MEETING: u32 = u32::MAX - 2;
/// The letters of failure mitigation.
pub const LETTERS: u32 = u32::MAX - 3;
/// Those of `MPI_COMM_WORLD` and `MPI_COMM_SELF`.
pub const PREDEFINED: [u32; 2] = [0, CONTEXTS_EACH];
/// Collective operations: `context + COLLECTIVE`.
pub const COLLECTIVE: u32 = 1;
/// Making communicators out of this one, all members together: `context + CONSTRUCTION`.
pub const CONSTRUCTION: u32 = 2;
/// Making communicators out of this one with a tag of the program's: `context + TAGGED_CONSTRUCTION`.
pub const TAGGED_CONSTRUCTION: u32 = 3;
/// What the sides of partitioned operations tell each other when they are made: `context + INTRODUCTION`.
pub const INTRODUCTION: u32 = 4;
/// The partitions of partitioned operations: `context + PARTITION`.
pub const PARTITION: u32 = 5;

/// A communicator. Immutable but for its state, which locks itself and is off every hot path.
pub struct Comm {
    /// Point-to-point traffic uses `context`, collective traffic `context + 1`.
    pub context: u32,
    /// The calling process's rank in the local group.
    pub rank: u32,
    pub local: Arc<Group>,
    /// The other group of an intercommunicator.
    pub remote: Option<Arc<Group>>,
    /// Of an intercommunicator: the local group comes first in orders that are the same in every process.
    pub local_first: bool,
    /// The handle under which the program knows it.
    pub handle: usize,
    pub topology: Option<Topology>,
    /// The handle of the session that it comes from.
    pub session: Option<usize>,
    /// What collectives keep for each communicator.
    pub collective: crate::coll::CommState,
    /// What failures mean for it.
    pub failure: crate::failure::CommFailures,
    state: Mutex<CommSettings>,
    /// Communicators that were begun to be made out of this one, equal in all members.
    constructions: AtomicU32,
}

/// What a program may change on a communicator.
pub struct CommSettings {
    pub name: String,
    pub errhandler: Arc<Handler>,
    pub info: Info,
    pub attributes: Attributes,
}

/// A communicator to be: everything but its context and handle.
pub struct CommDraft {
    pub local: Arc<Group>,
    pub remote: Option<Arc<Group>>,
    pub local_first: bool,
    pub topology: Option<Topology>,
    pub session: Option<usize>,
    pub name: String,
    pub errhandler: Arc<Handler>,
    pub info: Info,
    pub attributes: Attributes,
}

/// A communicator that is being made without anybody waiting for it.
pub(crate) struct Coming {
    /// Reserved for it.
    pub handle: usize,
    /// On which the members agree.
    pub context: u32,
    pub draft: CommDraft,
}

impl CommDraft {
    pub fn new(local: Arc<Group>) -> Self {
        let errhandler = Arc::new(Handler::Initial);
        let (info, attributes) = Default::default();
        let session = local.session();
        let (remote, topology, name) = Default::default();
        Self { local, remote, local_first: true, topology, session, name, errhandler, info, attributes }
    }

    /// With the error handler and the session of `parent`.
    pub fn from_parent(local: Arc<Group>, parent: &Comm) -> Self {
        let errhandler = parent.state().errhandler.clone();
        Self { errhandler, session: parent.session, local_first: parent.local_first, ..Self::new(local) }
    }

    /// The calling process is a member of the local group.
    pub fn finish(self, context: u32, handle: usize) -> Comm {
        let Self { local, remote, local_first, topology, session, name, errhandler, info, attributes } = self;
        Comm {
            context,
            rank: local.mine().expect("a process makes communicators that it is in"),
            local,
            remote,
            local_first,
            handle,
            topology,
            session,
            collective: Default::default(),
            failure: Default::default(),
            state: Mutex::new(CommSettings { name, errhandler, info, attributes }),
            constructions: AtomicU32::new(0),
        }
    }
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
        let whose = format!("{whose}{}", self.display_name());
        Error::outside(Class::Rank, format!("rank {rank}"), whose, RANKS, self.remote_size() as usize)
    }

    /// What the program may change. Held only for a moment, never while the program's functions run.
    pub fn state(&self) -> MutexGuard<'_, CommSettings> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name for messages to people: the program's own, or the handle.
    pub fn display_name(&self) -> String {
        let state = self.state();
        if state.name.is_empty() { format!("communicator {:#x}", self.handle) } else { state.name.clone() }
    }

    /// A tag for the messages of the next construction; all members count alike.
    fn next_construction(&self) -> i32 {
        (self.constructions.fetch_add(1, Ordering::Relaxed) & 0x7fff_ffff) as i32
    }

    /// Members of both groups in an order that is the same in every process.
    pub fn union(&self) -> Vec<Peer> {
        let Some(remote) = &self.remote else { return self.local.peers().collect() };
        let (first, second) = if self.local_first { (&self.local, remote) } else { (remote, &self.local) };
        first.peers().chain(second.peers()).collect()
    }
}

//! What a team has to know of the interface whose group it is of.

use weft_fabric::{Driven, Monitor, Peer};

/// An interface whose groups have teams. All of it is known when the interface is built, so that a team costs no more
/// than one written for it.
pub trait TeamOwner: 'static {
    type State: Driven + 'static;

    /// What people know the operations by.
    const CALLS: CallNames;

    /// Where the endpoint is.
    fn monitor() -> &'static Monitor<Self::State>;

    /// Whether anybody wants to hear of operations.
    fn listens() -> bool {
        false
    }

    /// An operation on so many bytes is about to begin in the group with this context. The monitor is held.
    fn tell(operation: &str, context: u32, members: u32, bytes: u64) {
        let _ = (operation, context, members, bytes);
    }
}

/// What the status page says that a member waits in.
pub struct CallNames {
    pub barrier: &'static str,
    pub bcast: &'static str,
    pub reduce: &'static str,
    pub allreduce: &'static str,
    pub reduce_scatter: &'static str,
    pub gather: &'static str,
    pub scatter: &'static str,
    pub allgather: &'static str,
    pub alltoall: &'static str,
    pub alltoallv: &'static str,
}

/// A group that forms its team.
pub struct Forming {
    /// Our place among the members.
    pub me: u32,
    pub peers: Vec<Peer>,
    /// What people know the group by.
    pub context: u32,
    /// Where this context is closed, nobody waits any more.
    pub closed_with: u32,
}

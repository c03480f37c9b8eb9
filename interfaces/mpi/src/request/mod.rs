//! Requests and their completion.

/// An operation that a program started.
pub enum Request {
    Collective(crate::coll::CollectiveId),
}

impl Request {
    /// A nonblocking collective operation on the communicator with this handle.
    pub fn collective(id: crate::coll::CollectiveId, _comm: usize) -> Self {
        Self::Collective(id)
    }

    /// A persistent collective operation, not started.
    pub fn persistent_collective(id: crate::coll::CollectiveId, _comm: usize) -> Self {
        Self::Collective(id)
    }
}

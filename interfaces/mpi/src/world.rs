//! Everything the MPI interface keeps, next to the endpoint.

use crate::comm::Comm;
use crate::datatype::Datatype;
use crate::group::Group;
use crate::handle::{Kind, Table};
use crate::op::Op;
use crate::request::Request;
use std::sync::Arc;
use weft_fabric::{Driven, Endpoint, Monitor, Outside};

/// Open from `MPI_Init` to `MPI_Finalize`.
pub static WORLD: Monitor<World> = Monitor::new();

/// The state of the interface. Objects that a program may use before `MPI_Init` (info, error handlers, added error
/// codes) live in their own files, each behind its own lock.
pub struct World {
    pub endpoint: Endpoint,
    pub comms: Table<Arc<Comm>>,
    pub groups: Table<Arc<Group>>,
    pub types: Table<Datatype>,
    pub ops: Table<Op>,
    pub requests: Table<Request>,
    /// Messages taken by matched probes.
    pub messages: Table<crate::point::Message>,
    /// Schedules under way.
    pub collectives: crate::coll::Active,
    /// What point-to-point keeps for the process (attached buffers).
    pub point: crate::point::State,
    /// The next context that no communicator of this process uses.
    pub next_context: u32,
}

impl World {
    /// The state at the start, without predefined objects.
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            comms: Table::new(Kind::Comm),
            groups: Table::new(Kind::Group),
            types: Table::new(Kind::Datatype),
            ops: Table::new(Kind::Op),
            requests: Table::new(Kind::Request),
            messages: Table::new(Kind::Message),
            collectives: Default::default(),
            point: Default::default(),
            next_context: 0,
        }
    }

    /// The live communicator with this handle.
    #[inline]
    pub fn comm(&self, handle: usize) -> crate::error::Result<&Arc<Comm>> {
        self.comms.get(handle)
    }
}

impl Driven for World {
    fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    fn advance(&mut self) -> Option<Outside> {
        crate::coll::advance(self)
    }
}

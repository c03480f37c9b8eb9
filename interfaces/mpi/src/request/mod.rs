//! Requests: operations that a program started, and the calls that complete them (MPI 5.0, sections 3.7, 3.9, 13.2).
//!
//! - `Request` is what stands behind a handle; `end` asks whether an operation is complete and ends it.
//! - `take` does so by handle and decides what becomes of the handle.
//! - `abi` holds the bodies of the completion calls; they differ only in what they wait for.
//!
//! Operations that are complete when they start need no entry in the table: their handles are the constants
//! [`SENT`] and [`NO_PROC`].
//!
//! Invariant: the functions of generalized requests run with the monitor left.

pub mod abi;
pub mod end;
mod exchange;
mod generalized;
mod persistent;
mod take;
pub mod transfer;

pub use end::OperationEnd;
pub use exchange::SendReceive;
pub use generalized::{Functions, Generalized, rewrap};
pub use persistent::{Persistent, PersistentPlan, check_startable, start};
pub use take::{TakenRequest, has_lost, is_active, is_complete, peek, release, stalled, stalls, take, take_plain};
pub use transfer::{HeldCopy, Transfer, TransferDirection, fault, received, received_scattered, unacknowledged};

use crate::abi::Status;
use crate::coll::{Active, CollectiveId};
use crate::partitioned::{self, OperationId};
use crate::point;
use weft_fabric::Endpoint;

/// A send or a collective operation that was complete when it was started. No kind of object has such a handle (see
/// [`crate::handle`]).
pub const SENT: usize = 0x1000;
/// A receive from `MPI_PROC_NULL`.
pub const NO_PROC: usize = 0x1001;

/// An operation that a program started.
pub enum Request {
    /// Complete; nobody has asked for the outcome yet.
    Done(OperationEnd),
    /// Becomes [`Self::Done`] by somebody's [`Self::fulfil`].
    Pending,
    Transfer(Transfer),
    /// A send and a receive that complete together.
    Exchange(Box<SendReceive>),
    /// Until the buffered messages up to this one have left.
    Flush(point::Drain),
    /// A persistent point-to-point operation.
    Persistent(Box<Persistent>),
    /// Completed by the program itself.
    Generalized(Box<Generalized>),
    Collective(Collective),
    Partitioned(Partitioned),
}

/// A partitioned operation, which [`crate::partitioned::ActivePartitions`] keeps.
#[derive(Clone, Copy)]
pub struct Partitioned {
    pub id: OperationId,
    pub started: bool,
    /// The communicator, for its error handler.
    pub comm: u32,
}

/// A collective operation that [`crate::coll::active::Active`] runs.
#[derive(Clone, Copy)]
pub struct Collective {
    pub id: CollectiveId,
    pub stage: CollectiveStage,
    /// The communicator, for its error handler.
    pub comm: u32,
}

/// What may happen next to a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectiveStage {
    /// Nonblocking: it runs, and its request goes when it is complete.
    Once,
    /// Persistent and not started.
    Idle,
    /// Persistent and started.
    Started,
}

/// What requests stand on; the rest of the world than the requests themselves.
pub struct Ground<'a> {
    pub endpoint: &'a mut Endpoint,
    pub collectives: &'a mut Active,
    pub partitioned: &'a mut partitioned::ActivePartitions,
    pub point: &'a mut point::PointState,
}

impl Request {
    /// A nonblocking collective operation on the communicator with this handle.
    pub fn collective(id: CollectiveId, comm: usize) -> Self {
        Self::Collective(Collective { id, stage: CollectiveStage::Once, comm: comm as u32 })
    }

    /// A persistent collective operation, not started.
    pub fn persistent_collective(id: CollectiveId, comm: usize) -> Self {
        Self::Collective(Collective { id, stage: CollectiveStage::Idle, comm: comm as u32 })
    }

    /// A partitioned operation, not started.
    pub fn partitioned(id: OperationId, comm: usize) -> Self {
        Self::Partitioned(Partitioned { id, started: false, comm: comm as u32 })
    }

    /// A request that somebody else completes.
    pub(crate) fn pending() -> Self {
        Self::Pending
    }

    /// Completes a [`Self::pending`] request.
    pub(crate) fn fulfil(&mut self, end: OperationEnd) {
        *self = Self::Done(end);
    }

    /// Whether the request takes part in nothing until it is started.
    pub fn is_inactive(&self) -> bool {
        match self {
            Self::Persistent(persistent) => persistent.active.is_none(),
            Self::Collective(collective) => collective.stage == CollectiveStage::Idle,
            Self::Partitioned(partitioned) => !partitioned.started,
            _ => false,
        }
    }

    /// Whether the handle stays when the operation is complete.
    pub fn is_persistent(&self) -> bool {
        match self {
            Self::Persistent(_) | Self::Partitioned(_) => true,
            Self::Collective(collective) => collective.stage != CollectiveStage::Once,
            _ => false,
        }
    }

    /// Whether something is under way on the communicator with this handle, or waits there to be completed.
    pub fn is_on(&self, comm: usize) -> bool {
        match self {
            Self::Transfer(transfer) => transfer.comm as usize == comm,
            Self::Exchange(exchange) => exchange.parts().any(|part| part.is_on(comm)),
            Self::Persistent(persistent) => persistent.comm == comm,
            Self::Collective(collective) => collective.comm as usize == comm,
            Self::Partitioned(partitioned) => partitioned.comm as usize == comm,
            Self::Done(_) | Self::Pending | Self::Flush(_) | Self::Generalized(_) => false,
        }
    }

    /// Whether [`Self::end`] would answer. An inactive request counts as complete.
    pub fn is_complete(&self, ground: &Ground) -> bool {
        match self {
            Self::Done(_) => true,
            Self::Pending => false,
            Self::Transfer(transfer) => ground.endpoint.is_complete(transfer.id),
            Self::Exchange(exchange) => exchange.parts().all(|part| part.is_complete(ground)),
            Self::Flush(drain) => ground.point.is_drained(drain, ground.endpoint),
            Self::Persistent(persistent) => persistent.active.as_ref().is_none_or(|active| active.is_complete(ground)),
            Self::Generalized(generalized) => generalized.complete,
            Self::Collective(collective) => {
                collective.stage == CollectiveStage::Idle || ground.collectives.is_complete(collective.id)
            }
            Self::Partitioned(partitioned) => ground.partitioned.is_complete(partitioned.id),
        }
    }

    /// The end of an operation that is complete; `None` while it is under way. A persistent request is inactive then;
    /// any other has nothing more to give. Generalized requests end elsewhere: their end is user code.
    pub fn end(&mut self, ground: &mut Ground) -> Option<OperationEnd> {
        match self {
            Self::Done(end) => Some(std::mem::replace(end, OperationEnd::EMPTY)),
            Self::Transfer(transfer) => transfer.end(ground.endpoint),
            Self::Exchange(exchange) => exchange.end(ground),
            Self::Flush(drain) => ground.point.is_drained(drain, ground.endpoint).then_some(OperationEnd::EMPTY),
            Self::Persistent(persistent) => match &mut persistent.active {
                None => Some(OperationEnd::EMPTY),
                Some(active) => {
                    let end = active.end(ground)?;
                    persistent.active = None;
                    Some(end)
                }
            },
            Self::Generalized(_) | Self::Pending => None,
            Self::Collective(collective) => collective.end(ground.collectives),
            Self::Partitioned(partitioned) => {
                let end = ground.partitioned.take(partitioned.id)?;
                partitioned.started = false;
                Some(end)
            }
        }
    }

    /// Gives an operation under way up: it completes on its own.
    pub(crate) fn abandon(self, ground: &mut Ground) {
        match self {
            Self::Transfer(transfer) => ground.point.detach(transfer),
            Self::Exchange(exchange) => exchange.into_parts().into_iter().for_each(|part| part.abandon(ground)),
            Self::Persistent(persistent) => {
                if let Some(active) = persistent.active {
                    active.abandon(ground);
                }
            }
            Self::Collective(collective) => ground.collectives.release(collective.id),
            Self::Partitioned(partitioned) => ground.partitioned.release(partitioned.id),
            Self::Done(_) | Self::Pending | Self::Flush(_) | Self::Generalized(_) => {}
        }
    }
}

impl Collective {
    fn end(&mut self, collectives: &mut Active) -> Option<OperationEnd> {
        if self.stage == CollectiveStage::Idle {
            return Some(OperationEnd::EMPTY);
        }
        let result = collectives.take(self.id)?;
        if self.stage == CollectiveStage::Started {
            self.stage = CollectiveStage::Idle;
        }
        let error = result.err().map(|error| Box::new(error.on(self.comm as usize)));
        Some(OperationEnd { status: Status::EMPTY, error })
    }
}

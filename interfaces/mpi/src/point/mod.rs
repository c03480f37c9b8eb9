//! Point-to-point communication (MPI 5.0, chapter 3).
//!
//! - `abi`: the bodies of the calls; a message whose buffer is one run of memory goes straight from and to it.
//! - `buffer`: where a message's bytes lie; packing of those that are scattered.
//! - `route`: ranks and tags to the words of the fabric.
//! - `transfer`: starting operations that outlive the call.
//! - `buffered`: the attached buffers of the buffered mode.
//! - `probe`: messages taken out of matching.
//!
//! Invariant: packing, unpacking and user code run with the monitor left where a call blocks, so that other threads
//! can go on.

pub mod abi;
pub(crate) mod buffer;
mod buffered;
mod probe;
mod route;
mod settle;
mod transfer;

pub use buffer::{Buffer, MemoryRun, Packed, Scattered};
pub use buffered::{Drain, Owner};
pub use probe::ProbedMessage;
pub use route::{MessageRoute, ReceiveSource, destination};
pub use settle::settle;
pub use transfer::{PointMode, start_receive, start_send};

use crate::request::transfer::Transfer;
use buffered::Attached;
use weft_fabric::Endpoint;

/// What point-to-point keeps for the process.
#[derive(Default)]
pub struct PointState {
    /// Buffers of the buffered mode.
    attached: Vec<Attached>,
    /// Those of communicators that were freed while messages waited to leave.
    abandoned: Vec<Attached>,
    /// Buffered messages so far.
    buffered: u64,
    /// Operations whose requests were freed before they were complete.
    detached: Vec<Transfer>,
    /// Communicators that come from sessions, each with its session.
    sessions: Vec<(usize, usize)>,
}

impl PointState {
    /// A new communicator comes from this session.
    pub fn note_session(&mut self, comm: usize, session: Option<usize>) {
        self.sessions.extend(session.map(|session| (comm, session)));
    }

    fn session_of(&self, comm: usize) -> Option<usize> {
        self.sessions.iter().find(|entry| entry.0 == comm).map(|entry| entry.1)
    }

    /// Takes an operation that completes on its own.
    pub fn detach(&mut self, transfer: Transfer) {
        self.detached.push(transfer);
    }

    /// Whether all that was sent from here on the communicator has left: messages in buffers, and those whose requests
    /// were freed, which may also be receives.
    pub fn is_quiet(&self, comm: usize, context: u32, endpoint: &Endpoint) -> bool {
        let mut detached = self.detached.iter().filter(|transfer| transfer.comm as usize == comm);
        detached.all(|transfer| endpoint.is_complete(transfer.id)) && self.buffers_are_quiet(context, endpoint)
    }

    /// Ends what was detached and is complete; called after each progress pass.
    #[inline]
    pub fn advance(&mut self, endpoint: &mut Endpoint) {
        if !self.detached.is_empty() {
            self.detached.retain_mut(|transfer| transfer.end(endpoint).is_none());
        }
    }
}

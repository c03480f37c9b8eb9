//! Probes and messages taken out of matching (MPI 5.0, section 3.8).

use super::ReceiveSource;
use super::route::selection;
use crate::abi::{MESSAGE_NO_PROC, Status};
use crate::error::{Class, Error, Result};
use crate::request::unacknowledged;
use crate::world::{WORLD, World};
use weft_fabric::{Fault, MatchedId, Outcome, Selector};

/// A message taken by a matched probe.
pub struct ProbedMessage {
    pub id: MatchedId,
    /// The communicator, for its error handler.
    pub comm: usize,
    /// What it was found by.
    pub with: Selector,
}

impl ProbedMessage {
    pub(super) fn source(&self) -> ReceiveSource {
        ReceiveSource::Matched(self.id, self.with)
    }
}

pub(super) fn seen(outcome: &Outcome) -> Status {
    Status::new(outcome.source as i32, outcome.tag, outcome.length)
}

pub(super) fn selected(source: i32, tag: i32, comm: usize) -> Result<Option<Selector>> {
    selection(&WORLD.enter().comms, comm, source, tag)
}

/// Takes a message: its new handle and what is known of it.
pub(super) fn take(world: &mut World, with: Selector, comm: usize) -> Option<(usize, Status)> {
    let (id, outcome) = world.endpoint.take_matched(with)?;
    let handle = world.messages.insert(ProbedMessage { id, comm, with });
    Some((handle, seen(&outcome)))
}

/// The error of a probe for which nothing has come and nothing will.
pub(super) fn in_vain(world: &World, from: Selector, comm: usize) -> Option<Error> {
    let error = match from.peer {
        _ if world.endpoint.closing(from.context) == Some(Fault::Withdrawn) => crate::failure::closed(Fault::Withdrawn),
        Some(peer) => match world.endpoint.loss(peer)? {
            Fault::NoMemory => crate::failure::cut_off(peer),
            _ => Error::new(Class::ProcFailed, format!("the process with world rank {} is lost", peer.0)),
        },
        None if world.failures.stalls(from) => unacknowledged(Class::ProcFailed),
        _ => return None,
    };
    Some(error.on(comm))
}

/// The message behind a handle, which is gone with it; `None` for `MPI_MESSAGE_NO_PROC`.
pub(super) fn redeem(handle: usize) -> Result<Option<ProbedMessage>> {
    if handle == MESSAGE_NO_PROC {
        return Ok(None);
    }
    WORLD.enter().messages.remove(handle).map(Some)
}

//! One message under way.

use super::end::OperationEnd;
use crate::abi::{ANY_SOURCE, ANY_TAG, Status};
use crate::error::{Class, Error};
use crate::failure::Failures;
use crate::point::buffer::{Packed, Scattered};
use weft_fabric::{Endpoint, Fault, Outcome, Peer, RequestId, Selector};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferDirection {
    Out,
    In,
}

/// A message under way.
pub struct Transfer {
    pub id: RequestId,
    pub direction: TransferDirection,
    /// The communicator, for its error handler.
    pub comm: u32,
    /// Bytes of the receive buffer.
    pub capacity: usize,
    /// Whom the message goes to or is expected from, for the status page.
    pub with: Selector,
    /// What must live until the message is complete, if the program's buffer is not one run of memory.
    pub held: Option<Box<HeldCopy>>,
}

/// A packed copy, and where it is unpacked to.
pub struct HeldCopy {
    pub packed: Packed,
    pub target: Option<Scattered>,
}

impl Transfer {
    /// Whether nothing is left to be done when it is complete: no unpacking, and no send that the end of the program
    /// has to wait for.
    #[inline]
    pub fn is_forgettable(&self) -> bool {
        self.direction == TransferDirection::In && self.held.is_none()
    }

    /// Whether it is a receive from anybody that cannot go on before the program has acknowledged a loss.
    #[inline]
    pub fn stalls(&self, failures: &Failures, endpoint: &mut Endpoint) -> bool {
        failures.stalls(self.with) && endpoint.is_posted(self.id)
    }

    #[inline]
    pub fn end(&mut self, endpoint: &mut Endpoint) -> Option<OperationEnd> {
        let mut outcome = endpoint.take_outcome(self.id)?;
        if self.direction == TransferDirection::Out && endpoint.closing(self.with.context) == Some(Fault::Withdrawn) {
            outcome.fault.get_or_insert(Fault::Withdrawn);
        }
        Some(self.conclude(outcome))
    }

    /// What an outcome means for the program; what arrived reaches its buffer.
    #[inline]
    pub fn conclude(&mut self, outcome: Outcome) -> OperationEnd {
        if self.direction == TransferDirection::In {
            let comm = self.comm as usize;
            if let Some(held) = &self.held {
                held.unpack(&outcome);
                if let Some(target) = &held.target {
                    return received_scattered(&outcome, target, comm);
                }
            }
            received(&outcome, self.capacity, comm)
        } else if outcome.fault.is_none() {
            OperationEnd::EMPTY
        } else {
            let mut status = Status::EMPTY;
            status.set_cancelled(outcome.fault == Some(Fault::Cancelled));
            OperationEnd { status, error: fault(&outcome, 0, self.comm as usize) }
        }
    }
}

impl HeldCopy {
    fn unpack(&self, outcome: &Outcome) {
        let arrived = match outcome.fault {
            None | Some(Fault::Truncated) => usize::try_from(outcome.length).unwrap_or(usize::MAX),
            Some(Fault::Cancelled | Fault::PeerLost | Fault::NoMemory | Fault::Withdrawn) => 0,
        };
        if let Some(target) = &self.target {
            // SAFETY: the program keeps the buffer of a receive until it is complete, which it was not before; the
            // endpoint has filled the packed bytes up to the length of the message.
            unsafe { target.unpack(&self.packed, arrived) };
        }
    }
}

/// The end of a receive into `capacity` bytes.
#[inline]
pub fn received(outcome: &Outcome, capacity: usize, comm: usize) -> OperationEnd {
    if outcome.fault.is_some() {
        return failed_receive(outcome, capacity, comm);
    }
    OperationEnd::good(Status::new(outcome.source as i32, outcome.tag, outcome.length))
}

/// The end of a receive into a scattered buffer. Where what arrived ends inside a basic element, the sender had other
/// ones.
pub fn received_scattered(outcome: &Outcome, target: &Scattered, comm: usize) -> OperationEnd {
    let mut end = received(outcome, target.bytes, comm);
    if outcome.fault.is_none() && target.cuts(outcome.length) {
        end.error = Some(cut(outcome, comm));
    }
    end
}

#[cold]
fn failed_receive(outcome: &Outcome, capacity: usize, comm: usize) -> OperationEnd {
    let status = match outcome.fault {
        Some(Fault::Cancelled) => {
            let mut status = Status::new(ANY_SOURCE, ANY_TAG, 0);
            status.set_cancelled(true);
            status
        }
        Some(Fault::PeerLost | Fault::NoMemory | Fault::Withdrawn) => Status::EMPTY,
        _ => Status::new(outcome.source as i32, outcome.tag, outcome.length.min(capacity as u64)),
    };
    OperationEnd { status, error: fault(outcome, capacity, comm) }
}

#[cold]
fn cut(outcome: &Outcome, comm: usize) -> Box<Error> {
    let Outcome { length, source, tag, .. } = outcome;
    let detail = format!(
        "the message of {length} bytes from rank {source} with tag {tag} ends inside an element of the datatype: what \
         was sent is of another type"
    );
    Box::new(Error::new(Class::Type, detail).on(comm))
}

/// The error in an outcome; a cancelled operation is none.
#[cold]
pub fn fault(outcome: &Outcome, capacity: usize, comm: usize) -> Option<Box<Error>> {
    let error = match outcome.fault? {
        Fault::Cancelled => return None,
        Fault::Truncated => Error::new(
            Class::Truncate,
            format!(
                "the message of {} bytes from rank {} with tag {} is longer than the receive buffer of {capacity} \
                 bytes, which holds its beginning",
                outcome.length, outcome.source, outcome.tag
            ),
        ),
        Fault::Withdrawn => crate::failure::closed(Fault::Withdrawn),
        Fault::PeerLost if outcome.peer == Peer(u32::MAX) => unacknowledged(Class::ProcFailed),
        Fault::PeerLost => {
            Error::new(crate::failure::lost_class(), format!("the process with world rank {} is lost", outcome.peer.0))
        }
        Fault::NoMemory => crate::failure::cut_off(outcome.peer),
    };
    Some(Box::new(error.on(comm)))
}

/// The error of a receive or probe from anybody while a process is lost.
#[cold]
pub fn unacknowledged(class: Class) -> Error {
    Error::new(
        class,
        "a process of the communicator is lost, which was not acknowledged, and might have sent the message",
    )
}

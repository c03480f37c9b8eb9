//! Partitioned communication: messages whose parts are handed over, and arrive, one by one (MPI 5.0, section 4.2).
//!
//! - `send`, `receive`: the two sides of an operation.
//! - `abi`: the bodies of the calls.
//!
//! Both sides are matched once, when they are made: `MPI_Psend_init` sends an [`Introduction`], which says how the
//! sender divides the message and under which tags its partitions will come; `MPI_Precv_init` posts the receive for it.
//! Context, source and tag are the program's there, so that operations match in the order in which they were made. From
//! then on each partition of the sender is a message of its own, on a context of its own and under a tag that no other
//! operation of the sender has, and goes straight to its place in the receiver's buffer, however that one divides it.
//!
//! Invariants:
//! - A round's receives are posted when it starts, one for each of the sender's partitions. Messages of one tag do not
//!   overtake each other, so a sender that is a round ahead does not disturb the one under way.
//! - What an introduction says is a claim, checked before it is used.

pub mod abi;
mod receive;
mod send;

use receive::Receive;
use send::Send;

use crate::error::{Class, Error, Result, Unit};
use crate::request::end::OperationEnd;
use weft_fabric::{Endpoint, Peer};

/// How the sender divides the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Introduction {
    /// The tag of its first partition; the others follow.
    first_tag: u32,
    partitions: u32,
    /// Bytes of each partition.
    bytes: usize,
}

/// An introduction as it travels.
type Block = [u64; 3];

impl Introduction {
    fn block(self) -> Block {
        [u64::from(self.first_tag), u64::from(self.partitions), self.bytes as u64]
    }

    /// What a peer said, if it can be.
    fn from_block(block: Block) -> Option<Self> {
        let [first_tag, partitions, bytes] = block;
        let (first_tag, partitions) = (u32::try_from(first_tag).ok()?, u32::try_from(partitions).ok()?);
        let introduction = Self { first_tag, partitions, bytes: usize::try_from(bytes).ok()? };
        introduction.bytes.checked_mul(partitions as usize).filter(|bytes| isize::try_from(*bytes).is_ok())?;
        first_tag.checked_add(partitions).filter(|end| *end <= TAGS)?;
        Some(introduction)
    }

    fn tag(&self, partition: u32) -> i32 {
        (self.first_tag + partition) as i32
    }
}

/// Tags are non-negative.
const TAGS: u32 = i32::MAX as u32;

/// A partitioned operation known to [`ActivePartitions`]; never reused while its request lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationId(u32);

enum PartitionedSide {
    Send(Send),
    Receive(Receive),
}

struct PartitionedOperation {
    side: PartitionedSide,
    /// The handle of the communicator, for its error handler.
    comm: usize,
    started: bool,
    /// The request is gone; the operation goes when it is complete.
    released: bool,
}

/// Who an operation is with: what both sides need to know.
struct Partner {
    peer: Peer,
    /// The communicator's.
    context: u32,
    /// As the other side knows this process.
    source: u32,
    tag: i32,
}

/// The partitioned operations of the process.
#[derive(Default)]
pub struct ActivePartitions {
    operations: Vec<Option<Box<PartitionedOperation>>>,
    free: Vec<u32>,
    /// The numbers of those that wait for something.
    moving: Vec<u32>,
    /// The first tag of the next send.
    next_tag: u32,
    /// The tags have been used up once.
    wrapped: bool,
}

impl ActivePartitions {
    fn insert(&mut self, side: PartitionedSide, comm: usize) -> OperationId {
        let operation = Some(Box::new(PartitionedOperation { side, comm, started: false, released: false }));
        let index = self.free.pop().unwrap_or_else(|| {
            self.operations.push(None);
            self.operations.len() as u32 - 1
        });
        self.operations[index as usize] = operation;
        OperationId(index)
    }

    fn get(&mut self, id: OperationId) -> &mut PartitionedOperation {
        self.operations[id.0 as usize].as_mut().expect("a request keeps its operation alive")
    }

    fn look_at(&self, id: OperationId) -> &PartitionedOperation {
        self.operations[id.0 as usize].as_ref().expect("a request keeps its operation alive")
    }

    /// Tags for `partitions` messages that no live send of this process has; `None` if there are not so many together.
    fn claim_tags(&mut self, partitions: u32) -> Option<u32> {
        let mut rounds = 0;
        loop {
            if self.next_tag > TAGS - partitions {
                (self.next_tag, self.wrapped) = (0, true);
                rounds += 1;
            }
            if rounds > 1 {
                return None;
            }
            let first = self.next_tag;
            let taken = if self.wrapped { self.end_of_tags_among(first, partitions) } else { None };
            let Some(end) = taken else {
                self.next_tag = first + partitions;
                return Some(first);
            };
            self.next_tag = end;
        }
    }

    /// Where the tags of a live send end that has one of these.
    fn end_of_tags_among(&self, first: u32, partitions: u32) -> Option<u32> {
        let sends = self.operations.iter().flatten().filter_map(|operation| match &operation.side {
            PartitionedSide::Send(send) => Some(send.introduction()),
            PartitionedSide::Receive(_) => None,
        });
        let mut ranges = sends.map(|said| (said.first_tag, said.first_tag + said.partitions));
        ranges.find(|&(from, end)| from < first + partitions && first < end).map(|(_, end)| end)
    }

    /// Starts an operation that is not under way (`MPI_Start`).
    pub fn start(&mut self, id: OperationId, endpoint: &mut Endpoint) {
        let operation = self.get(id);
        operation.started = true;
        match &mut operation.side {
            PartitionedSide::Send(send) => send.start(),
            PartitionedSide::Receive(receive) => receive.start(operation.comm, endpoint),
        }
        self.note_moving(id);
    }

    fn note_moving(&mut self, id: OperationId) {
        if !self.moving.contains(&id.0) {
            self.moving.push(id.0);
        }
    }

    /// Whether a started operation is complete.
    pub fn is_complete(&self, id: OperationId) -> bool {
        self.look_at(id).is_complete()
    }

    /// The status of a started operation that is complete.
    pub fn status(&self, id: OperationId) -> Option<crate::abi::Status> {
        let operation = self.look_at(id);
        operation.is_complete().then(|| operation.side.status())
    }

    /// How a started operation ended, which can be started again then; `None` while it is under way.
    pub fn take(&mut self, id: OperationId) -> Option<OperationEnd> {
        let operation = self.get(id);
        if !operation.is_complete() {
            return None;
        }
        operation.started = false;
        let error = match &mut operation.side {
            PartitionedSide::Send(send) => send.take_error(),
            PartitionedSide::Receive(receive) => receive.take_error(),
        };
        Some(OperationEnd { status: operation.side.status(), error })
    }

    /// Whether the request may be freed.
    ///
    /// # Errors
    /// Partitions of a started send are not ready, and could not become so any more.
    pub fn check_release(&self, id: OperationId) -> Result<()> {
        let operation = self.look_at(id);
        match &operation.side {
            PartitionedSide::Send(send) if operation.started && send.unready() > 0 => {
                let detail = format!(
                    "request is an active partitioned send of which {} partitions are not ready; free it when they are",
                    send.unready()
                );
                Err(Error::new(Class::Request, detail).on(operation.comm))
            }
            _ => Ok(()),
        }
    }

    /// The request is freed: the operation is forgotten as soon as nothing of it is under way.
    pub fn release(&mut self, id: OperationId) {
        self.get(id).released = true;
        self.note_moving(id);
    }

    /// Moves what can move; called after each progress pass.
    #[inline]
    pub fn advance(&mut self, endpoint: &mut Endpoint) {
        if !self.moving.is_empty() {
            self.advance_all(endpoint);
        }
    }

    fn advance_all(&mut self, endpoint: &mut Endpoint) {
        let Self { operations, free, moving, .. } = self;
        moving.retain(|&index| {
            let place = &mut operations[index as usize];
            let Some(operation) = place else { return false };
            let rests = operation.step(endpoint);
            if rests && operation.released {
                *place = None;
                free.push(index);
            }
            !rests
        });
    }

    /// Whether nothing that was started and freed is under way on the communicator with this handle.
    pub fn is_quiet(&self, comm: usize) -> bool {
        let mut operations = self.operations.iter().flatten();
        operations.all(|operation| operation.comm != comm || !operation.released || operation.is_complete())
    }

    /// Whether sends whose requests were freed are still under way.
    pub fn is_sending(&self) -> bool {
        let mut operations = self.operations.iter().flatten();
        operations.any(|operation| operation.released && matches!(operation.side, PartitionedSide::Send(_)))
    }
}

impl PartitionedOperation {
    fn is_complete(&self) -> bool {
        !self.started
            || match &self.side {
                PartitionedSide::Send(send) => send.is_complete(),
                PartitionedSide::Receive(receive) => receive.is_complete(),
            }
    }

    /// Moves it; true if nothing of it is under way, so that it need not be looked at.
    fn step(&mut self, endpoint: &mut Endpoint) -> bool {
        let introduced = match &mut self.side {
            PartitionedSide::Send(send) => send.step(self.comm, endpoint),
            PartitionedSide::Receive(receive) => receive.step(self.started, self.comm, endpoint),
        };
        introduced && self.is_complete()
    }
}

impl PartitionedSide {
    fn status(&self) -> crate::abi::Status {
        match self {
            Self::Send(_) => crate::abi::Status::EMPTY,
            Self::Receive(receive) => receive.status(),
        }
    }
}

/// A partition as the program names it.
///
/// # Errors
/// There is no such partition.
fn place(partition: i32, partitions: u32) -> Result<u32> {
    const PARTITIONS: Unit = ("partition", "partitions");
    let given = || format!("partition {partition}");
    let outside = || Error::outside(Class::Arg, given(), "the request", PARTITIONS, partitions as usize);
    u32::try_from(partition).ok().filter(|place| *place < partitions).ok_or_else(outside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_introduction_that_cannot_be_is_refused() {
        let good = Introduction { first_tag: 7, partitions: 3, bytes: 40 };
        assert_eq!(Introduction::from_block(good.block()), Some(good));
        for block in [
            [u64::from(TAGS), 1, 1],
            [0, u64::from(TAGS) + 1, 0],
            [0, 2, u64::MAX / 2],
            [1 << 40, 1, 1],
            [0, 1 << 33, 1],
        ] {
            assert_eq!(Introduction::from_block(block), None, "{block:?}");
        }
    }

    #[test]
    fn tags_that_come_round_pass_over_those_of_live_sends() {
        let mut active = ActivePartitions::default();
        let live = active.claim_tags(10).expect("room");
        let send = Send::new(None, Introduction { first_tag: live, partitions: 10, bytes: 0 }, None).expect("memory");
        active.insert(PartitionedSide::Send(send), 0);
        assert_eq!((live, active.claim_tags(TAGS - 15)), (0, Some(10)));
        // Not enough room at the end: from the beginning, where ten are taken.
        assert_eq!(active.claim_tags(6), Some(10));
        assert_eq!(active.claim_tags(0), Some(16));
        assert_eq!(active.claim_tags(TAGS - 5), None);
    }
}

//! The receiving side of a partitioned operation.

use super::send::marks;
use super::{Block, Introduction, Partner};
use crate::abi::Status;
use crate::comm::{INTRODUCTION, PARTITION};
use crate::error::{Class, Error, Result};
use crate::point::{Buffer, MemoryRun, Packed};
use crate::request::{OperationEnd, fault};
use weft_fabric::{Endpoint, Fault, Outcome, RequestId, Selector};

/// A partitioned receive.
pub(super) struct Receive {
    /// `None`: from `MPI_PROC_NULL`.
    partner: Option<Partner>,
    /// The rank of the sender.
    source: i32,
    buffer: Option<Buffer>,
    partitions: u32,
    /// Bytes of each of our partitions.
    bytes: usize,
    knows: Knowledge,
    /// Receives of this round were posted, or never will be.
    posted: bool,
    under_way: Vec<ArrivingPart>,
    /// Which of the sender's partitions have arrived in this round.
    arrived: Vec<bool>,
    missing: u32,
    error: Option<Box<Error>>,
}

/// What is known of how the sender divides the message.
enum Knowledge {
    /// The introduction has not come yet.
    Awaited(Box<Block>, RequestId),
    Known(Introduction),
    /// It never will be.
    Failed(Box<Error>),
}

/// One of the sender's partitions, on its way.
struct ArrivingPart {
    place: u32,
    request: RequestId,
    /// What arrives in a copy, and is unpacked then.
    packed: Option<Packed>,
}

impl Receive {
    /// Posts the receive for the introduction.
    pub fn new(
        partner: Option<Partner>,
        source: i32,
        buffer: Option<Buffer>,
        partitions: u32,
        bytes: usize,
        endpoint: &mut Endpoint,
    ) -> Self {
        let knows = match &partner {
            None => Knowledge::Known(Introduction { first_tag: 0, partitions: 0, bytes: 0 }),
            Some(partner) => {
                let context = partner.context + INTRODUCTION;
                let selector = Selector { context, peer: Some(partner.peer), tag: Some(partner.tag) };
                let mut block = Box::new(Block::default());
                // SAFETY: the block lives in the operation until the request is complete.
                let request = unsafe { endpoint.post_receive(selector, (&raw mut *block).cast(), size_of::<Block>()) };
                Knowledge::Awaited(block, request)
            }
        };
        let (under_way, arrived) = (Vec::new(), Vec::new());
        let (posted, missing, error) = (true, 0, None);
        Self { partner, source, buffer, partitions, bytes, knows, posted, under_way, arrived, missing, error }
    }

    pub fn start(&mut self, comm: usize, endpoint: &mut Endpoint) {
        self.posted = false;
        self.step(true, comm, endpoint);
    }

    /// True once the introduction has come.
    pub fn step(&mut self, started: bool, comm: usize, endpoint: &mut Endpoint) -> bool {
        self.learn(comm, endpoint);
        if started && !self.posted && !matches!(self.knows, Knowledge::Awaited(..)) {
            self.posted = true;
            self.error = self.post(endpoint).err().map(|error| Box::new(error.on(comm)));
        }
        self.take_in(comm, endpoint);
        !matches!(self.knows, Knowledge::Awaited(..))
    }

    fn learn(&mut self, comm: usize, endpoint: &mut Endpoint) {
        let Knowledge::Awaited(block, request) = &self.knows else { return };
        let Some(outcome) = endpoint.take_outcome(*request) else { return };
        let broken = || Error::new(Class::Intern, "the sender's introduction cannot be understood").on(comm);
        self.knows = match (outcome.fault, Introduction::from_block(**block)) {
            (None, Some(said)) if outcome.length == size_of::<Block>() as u64 => Knowledge::Known(said),
            (Some(Fault::PeerLost | Fault::NoMemory | Fault::Withdrawn), _) => {
                Knowledge::Failed(fault(&outcome, 0, comm).unwrap_or_else(|| Box::new(broken())))
            }
            _ => Knowledge::Failed(Box::new(broken())),
        };
    }

    /// Posts the receives of a round, each into its place; what has no place there is cut off.
    fn post(&mut self, endpoint: &mut Endpoint) -> Result<()> {
        let said = match &self.knows {
            Knowledge::Known(said) => *said,
            Knowledge::Failed(error) => return Err((**error).clone()),
            Knowledge::Awaited(..) => return Ok(()),
        };
        let (Some(partner), Some(buffer)) = (&self.partner, &self.buffer) else { return Ok(()) };
        if self.arrived.len() != said.partitions as usize {
            self.arrived = marks(said.partitions)?;
        }
        self.arrived.fill(false);
        let total = buffer.bytes();
        let room = |place: u32| said.bytes.min(total.saturating_sub(place as usize * said.bytes));
        let mut copies = Vec::new();
        if matches!(buffer, Buffer::Scattered(_)) {
            for place in 0..said.partitions {
                copies.push(Packed::new(room(place))?);
            }
        }
        let mut copies = copies.into_iter();
        self.missing = said.partitions;
        for place in 0..said.partitions {
            let packed = copies.next();
            let at = match (buffer, &packed) {
                (_, Some(packed)) => packed.at(),
                (Buffer::Run(MemoryRun { at, .. }), None) => at.wrapping_add(place as usize * said.bytes),
                (Buffer::Scattered(_), None) => continue,
            };
            let context = partner.context + PARTITION;
            let selector = Selector { context, peer: Some(partner.peer), tag: Some(said.tag(place)) };
            // SAFETY: the program keeps the buffer until the round is complete; a copy lives with its request.
            let request = unsafe { endpoint.post_receive(selector, at, room(place)) };
            self.under_way.push(ArrivingPart { place, request, packed });
        }
        Ok(())
    }

    fn take_in(&mut self, comm: usize, endpoint: &mut Endpoint) {
        let mut under_way = std::mem::take(&mut self.under_way);
        under_way.retain(|part| match endpoint.take_outcome(part.request) {
            None => true,
            Some(outcome) => {
                self.conclude(part, &outcome, comm);
                false
            }
        });
        self.under_way = under_way;
    }

    fn conclude(&mut self, part: &ArrivingPart, outcome: &Outcome, comm: usize) {
        if let (Some(packed), Some(Buffer::Scattered(target)), Knowledge::Known(said)) =
            (&part.packed, &self.buffer, &self.knows)
            && matches!(outcome.fault, None | Some(Fault::Truncated))
        {
            let arrived = usize::try_from(outcome.length).unwrap_or(usize::MAX).min(packed.bytes);
            // SAFETY: the program keeps the buffer until the round is complete, which it is not yet; the endpoint has
            // filled that many bytes.
            unsafe { target.unpack_part(part.place as usize * said.bytes, packed.at(), arrived) };
        }
        let error = match outcome.fault {
            Some(Fault::Truncated) => Some(Box::new(self.too_long().on(comm))),
            _ => fault(outcome, 0, comm),
        };
        self.error = self.error.take().or(error);
        self.arrived[part.place as usize] = true;
        self.missing -= 1;
    }

    fn too_long(&self) -> Error {
        let (partitions, bytes) = self.said();
        let detail = format!(
            "the sender's {partitions} partitions of {bytes} bytes from rank {} are longer than the {} partitions of {} \
             bytes here, which hold their beginning",
            self.source, self.partitions, self.bytes
        );
        Error::new(Class::Truncate, detail)
    }

    /// Partitions and bytes of each, as the sender says.
    fn said(&self) -> (u32, usize) {
        match &self.knows {
            Knowledge::Known(said) => (said.partitions, said.bytes),
            _ => (0, 0),
        }
    }

    pub fn is_complete(&self) -> bool {
        self.posted && self.missing == 0
    }

    /// Whether all bytes of one of our partitions are there, in a round that is under way.
    ///
    /// # Errors
    /// There is no such partition.
    pub fn has_arrived(&self, partition: i32) -> Result<bool> {
        let place = super::place(partition, self.partitions)? as usize;
        if self.is_complete() {
            return Ok(true);
        }
        let (partitions, bytes) = self.said();
        if !self.posted || bytes == 0 || self.bytes == 0 {
            return Ok(false);
        }
        let first = place * self.bytes / bytes;
        let end = ((place + 1) * self.bytes).div_ceil(bytes).min(partitions as usize);
        // What the sender does not send is there when all is.
        Ok(first < end && self.arrived[first..end].iter().all(|arrived| *arrived))
    }

    pub fn status(&self) -> Status {
        let Some(partner) = &self.partner else { return OperationEnd::NO_PROC.status };
        let (partitions, bytes) = self.said();
        let room = self.buffer.as_ref().map_or(0, Buffer::bytes);
        Status::new(self.source, partner.tag, (partitions as usize * bytes).min(room) as u64)
    }

    pub fn take_error(&mut self) -> Option<Box<Error>> {
        self.error.take()
    }
}

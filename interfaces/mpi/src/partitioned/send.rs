//! The sending side of a partitioned operation.

use super::{Block, Introduction, Partner};
use crate::comm::{INTRODUCTION, PARTITION};
use crate::error::{Class, Error, Result};
use crate::point::{Buffer, MemoryRun, Packed};
use crate::request::fault;
use weft_fabric::{Endpoint, Envelope, RequestId, SendMode};

/// A partitioned send.
pub(super) struct Send {
    /// `None`: to `MPI_PROC_NULL`.
    partner: Option<Partner>,
    said: Introduction,
    /// Where the message is; `None` without a partner.
    buffer: Option<Buffer>,
    /// The introduction, while it is under way.
    introducing: Option<(Box<Block>, RequestId)>,
    /// Which partitions the program has handed over in this round.
    ready: Vec<bool>,
    unready: u32,
    under_way: Vec<(RequestId, Option<Packed>)>,
    error: Option<Box<Error>>,
}

impl Send {
    /// # Errors
    /// There is no memory.
    pub fn new(partner: Option<Partner>, said: Introduction, buffer: Option<Buffer>) -> Result<Self> {
        let ready = marks(said.partitions)?;
        Ok(Self { partner, said, buffer, introducing: None, ready, unready: 0, under_way: Vec::new(), error: None })
    }

    pub fn introduction(&self) -> &Introduction {
        &self.said
    }

    /// Partitions that the program has not handed over in this round.
    pub fn unready(&self) -> u32 {
        self.unready
    }

    /// Tells the receiver how the message is divided.
    pub fn introduce(&mut self, endpoint: &mut Endpoint) {
        let Some(partner) = &self.partner else { return };
        let envelope = Envelope { context: partner.context + INTRODUCTION, tag: partner.tag, source: partner.source };
        let block = Box::new(self.said.block());
        let (at, length) = ((&raw const *block).cast(), size_of::<Block>());
        // SAFETY: the block lives in the operation until the request is complete.
        unsafe {
            if !endpoint.try_send(partner.peer, envelope, at, length) {
                let request = endpoint.post_send(partner.peer, envelope, at, length, SendMode::Standard);
                self.introducing = Some((block, request));
            }
        }
    }

    pub fn start(&mut self) {
        self.ready.fill(false);
        self.unready = self.said.partitions;
    }

    /// Whether the partitions may be handed over now.
    ///
    /// # Errors
    /// One that does not exist, or was handed over already.
    pub fn check(&self, partition: i32) -> Result<u32> {
        let place = super::place(partition, self.said.partitions)?;
        if self.ready[place as usize] {
            let detail = format!("partition {partition} is ready already; each can be so once after MPI_Start");
            return Err(Error::new(Class::Arg, detail));
        }
        Ok(place)
    }

    /// Sends a partition that was checked.
    ///
    /// # Safety
    /// The program's buffer is readable, and the partition stays unchanged until the round is complete.
    ///
    /// # Errors
    /// No memory for a packed copy; the partition is not ready then.
    pub unsafe fn hand_over(&mut self, place: u32, endpoint: &mut Endpoint) -> Result<()> {
        if let (Some(partner), Some(buffer)) = (&self.partner, &self.buffer) {
            let (tag, source) = (self.said.tag(place), partner.source);
            let envelope = Envelope { context: partner.context + PARTITION, tag, source };
            // SAFETY: the caller's promise; a packed copy lives until the request is complete.
            unsafe {
                let (MemoryRun { at, bytes }, packed) =
                    part(buffer, place as usize * self.said.bytes, self.said.bytes)?;
                if !endpoint.try_send_among_others(partner.peer, envelope, at, bytes) {
                    let request = endpoint.post_send(partner.peer, envelope, at, bytes, SendMode::Standard);
                    self.under_way.push((request, packed));
                }
            }
        }
        self.ready[place as usize] = true;
        self.unready -= 1;
        Ok(())
    }

    /// True once the introduction has left.
    pub fn step(&mut self, comm: usize, endpoint: &mut Endpoint) -> bool {
        if let Some((_, request)) = &self.introducing
            && endpoint.take_outcome(*request).is_some()
        {
            self.introducing = None;
        }
        let error = &mut self.error;
        self.under_way.retain(|(request, _)| match endpoint.take_outcome(*request) {
            None => true,
            Some(outcome) => {
                let fault = fault(&outcome, 0, comm);
                *error = error.take().or(fault);
                false
            }
        });
        self.introducing.is_none()
    }

    pub fn is_complete(&self) -> bool {
        self.unready == 0 && self.under_way.is_empty()
    }

    pub fn take_error(&mut self) -> Option<Box<Error>> {
        self.error.take()
    }
}

/// One mark for each partition, not set.
///
/// # Errors
/// There is no memory.
pub(super) fn marks(partitions: u32) -> Result<Vec<bool>> {
    let mut marks = Vec::new();
    if marks.try_reserve_exact(partitions as usize).is_err() {
        return Err(Error::new(Class::NoMem, format!("there is no memory for {partitions} partitions")));
    }
    marks.resize(partitions as usize, false);
    Ok(marks)
}

/// The packed bytes `from..from + bytes` of a buffer: in place, or in a copy that belongs to them.
///
/// # Safety
/// The buffer is readable.
unsafe fn part(buffer: &Buffer, from: usize, bytes: usize) -> Result<(MemoryRun, Option<Packed>)> {
    match buffer {
        Buffer::Run(run) => Ok((MemoryRun { at: run.at.wrapping_add(from), bytes }, None)),
        Buffer::Scattered(scattered) => {
            let packed = Packed::new(bytes)?;
            // SAFETY: the caller's promise, and the memory has room.
            unsafe { scattered.pack_part_to(from, packed.at(), bytes) };
            Ok((MemoryRun { at: packed.at(), bytes }, Some(packed)))
        }
    }
}

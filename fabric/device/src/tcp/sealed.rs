//! What a connection needs that is encrypted: records out of what is sent, and what was sent out of records.

use super::output::OutputQueue;
use super::socket::{Read, TcpSocket};
use crate::copying::CopyBuffer;
use std::io;
use weft_wire::tcp::record::{LONGEST, MOST_BYTES, RecordKeys, RecordOpening, Sealing};

/// Bytes of records that are received before they are decrypted: a whole one, and as much again.
const BUFFER_BYTES: usize = 2 * LONGEST;

pub struct Sealed {
    sealing: Sealing,
    opening: RecordOpening,
    /// The record that is being sent.
    record: Vec<u8>,
    /// What has been received and not decrypted.
    buffer: CopyBuffer,
    from: usize,
    to: usize,
}

impl Sealed {
    pub fn new(session: &RecordKeys) -> Self {
        Self {
            sealing: Sealing::new(&session.sends),
            opening: RecordOpening::new(&session.receives),
            record: Vec::new(),
            buffer: CopyBuffer::new(BUFFER_BYTES),
            from: 0,
            to: 0,
        }
    }

    /// The record of a packet, which is to be sent next.
    pub fn record_of(&mut self, front: &[u8], bulk: &[u8]) -> &[u8] {
        self.record.clear();
        self.sealing.seal(front, bulk, &mut self.record);
        &self.record
    }

    /// What waits to be sent, in records. Nothing of it has been sent.
    pub fn records_of(&mut self, waiting: &OutputQueue) -> OutputQueue {
        let mut records = OutputQueue::default();
        for piece in waiting.bytes().chunks(MOST_BYTES) {
            records.add(self.record_of(piece, &[]));
        }
        records
    }

    /// Takes in what has arrived.
    pub fn read(&mut self, socket: &TcpSocket) -> io::Result<Read> {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        } else if self.buffer.len() - self.from < LONGEST {
            self.buffer.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
        }
        let read = socket.read(&mut self.buffer[self.to..])?;
        if let Read::Bytes(count) = read {
            self.to += count;
        }
        Ok(read)
    }

    /// Decrypts the next record into `room`, which is as large as the largest piece; its bytes, or 0 if it has not come
    /// whole.
    ///
    /// # Errors
    /// It is not what was sent.
    pub fn open_next(&mut self, room: &mut [u8]) -> Result<usize, &'static str> {
        let bytes = &mut self.buffer[self.from..self.to];
        let needed = RecordOpening::needed(bytes)?;
        let Some(record) = bytes.get_mut(..needed).filter(|record| record.len() > 4) else { return Ok(0) };
        let piece = self.opening.open(record)?;
        room.get_mut(..piece.len()).ok_or("more of a packet than one has")?.copy_from_slice(piece);
        self.from += needed;
        Ok(piece.len())
    }
}

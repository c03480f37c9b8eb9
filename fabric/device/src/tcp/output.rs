//! Bytes that a socket had no room for yet, or that have no socket yet.

use super::socket::TcpSocket;
use crate::copying;
use std::io::{self, IoSlice};
use weft_wire::tcp::{FRONT_BYTES, LARGEST_PACKET, LARGEST_STREAMED, PacketFront};

/// Posts are refused if more than so many bytes would wait, which is how a receiver that does not keep up slows its
/// senders down.
const LIMIT_BYTES: usize = LARGEST_PACKET + SHORT_BYTES;
/// Packets up to this length have room also behind what is left of a long one.
const SHORT_BYTES: usize = 16 * 1024;
const SHORT_LIMIT_BYTES: usize = LARGEST_STREAMED + SHORT_BYTES;

/// Posts that may wait for company.
#[derive(Default)]
pub(super) struct Company {
    /// Posts may be followed by more before the next poll.
    pub gathering: bool,
    /// Peers that were sent something since the last poll which more may follow.
    pub written: Vec<u32>,
}

/// A queue of bytes.
#[derive(Default)]
pub struct OutputQueue {
    bytes: Vec<u8>,
    /// So many of them have left.
    gone: usize,
}

impl OutputQueue {
    pub fn is_empty(&self) -> bool {
        self.gone == self.bytes.len()
    }

    /// What waits.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.gone..]
    }

    fn waiting(&self) -> usize {
        self.bytes.len() - self.gone
    }

    /// Whether so many bytes may be added.
    pub fn has_room(&self, length: usize) -> bool {
        let limit = if length <= SHORT_BYTES { SHORT_LIMIT_BYTES } else { LIMIT_BYTES };
        self.is_empty() || self.waiting() + length <= limit
    }

    pub fn add(&mut self, bytes: &[u8]) {
        if self.is_empty() {
            self.bytes.clear();
            self.gone = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Sends what there is room for; true if anything has left.
    pub fn flush(&mut self, socket: &TcpSocket) -> io::Result<bool> {
        if self.is_empty() {
            return Ok(false);
        }
        let sent = socket.write(&[IoSlice::new(&self.bytes[self.gone..])], false)?;
        self.gone += sent;
        if self.is_empty() && self.bytes.capacity() > 4 * LIMIT_BYTES {
            *self = Self::default();
        } else if self.gone >= LIMIT_BYTES.max(self.waiting()) {
            self.bytes.drain(..self.gone);
            self.gone = 0;
        }
        Ok(sent > 0)
    }
}

/// From here on it matters where a payload stands.
const LONG_BYTES: usize = 4096;

/// The front of a packet with this bulk payload, with a gap where the kernel would be slow to copy that otherwise: it
/// keeps the bytes of a call from the beginning of a page on, unless some of the last are not gone.
pub(super) fn well_placed(front: PacketFront, bulk: &[u8]) -> PacketFront {
    if bulk.len() < LONG_BYTES {
        return front;
    }
    let (from, to) = (bulk.as_ptr() as usize, front.bytes().len());
    // Tests have gaps on every processor.
    let is_slow = if cfg!(test) { copying::is_slow(from, to) } else { copying::is_slow_for_the_kernel(from, to) };
    if is_slow { front.with_gap() } else { front }
}

const _: () = assert!(LIMIT_BYTES >= LARGEST_PACKET + FRONT_BYTES);

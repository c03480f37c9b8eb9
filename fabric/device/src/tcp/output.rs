//! Bytes that a socket had no room for yet, or that have no socket yet.

use super::socket::Socket;
use std::io::{self, IoSlice};
use weft_wire::tcp::{FRONT_BYTES, LARGEST_PACKET, LARGEST_STREAMED};

/// Posts are refused if more than so many bytes would wait, which is how a receiver that does not keep up slows its senders down.
const LIMIT_BYTES: usize = LARGEST_PACKET + SHORT_BYTES;
/// Packets up to this length have room also behind what is left of a long one.
const SHORT_BYTES: usize = 16 * 1024;
const SHORT_LIMIT_BYTES: usize = LARGEST_STREAMED + SHORT_BYTES;

/// A queue of bytes.
#[derive(Default)]
pub struct Output {
    bytes: Vec<u8>,
    /// So many of them have left.
    gone: usize,
}

impl Output {
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
    pub fn flush(&mut self, socket: &Socket) -> io::Result<bool> {
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

const _: () = assert!(LIMIT_BYTES >= LARGEST_PACKET + FRONT_BYTES);

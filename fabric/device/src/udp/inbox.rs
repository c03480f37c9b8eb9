//! Memory for what one look receives.

use crate::copying::CopyBuffer;
use std::net::SocketAddr;

/// Bytes of a slot: as much as the kernel puts together.
const SLOT_BYTES: usize = 1 << 16;

#[derive(Clone, Copy, Default)]
struct Note {
    from: Option<SocketAddr>,
    length: usize,
    /// The size of all datagrams in the slot but perhaps the last.
    size: usize,
}

/// Slots, each for one datagram, or for several of one sender that the kernel has put together. Memory that is never
/// written to costs nothing.
pub struct Inbox {
    bytes: CopyBuffer,
    notes: [Note; Inbox::SLOTS],
}

impl Inbox {
    pub const SLOTS: usize = 16;

    pub fn new() -> Self {
        let bytes = CopyBuffer::new(Self::SLOTS * SLOT_BYTES);
        Self { bytes, notes: [Note::default(); Self::SLOTS] }
    }

    pub fn slots(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.bytes.chunks_exact_mut(SLOT_BYTES)
    }

    /// Says what is in a slot: nothing, if it has no sender.
    pub fn note(&mut self, index: usize, from: Option<SocketAddr>, length: usize, size: Option<usize>) {
        let size = size.unwrap_or(length).max(1);
        self.notes[index] = Note { from, length: length.min(SLOT_BYTES), size };
    }

    /// The datagrams of the first `count` slots, each with its sender.
    pub fn datagrams(&self, count: usize) -> impl Iterator<Item = (SocketAddr, &[u8])> {
        let slots = self.bytes.chunks_exact(SLOT_BYTES).zip(&self.notes).take(count);
        slots
            .filter_map(|(slot, note)| Some((note.from?, &slot[..note.length], note.size)))
            .flat_map(|(from, bytes, size)| bytes.chunks(size).map(move |datagram| (from, datagram)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_together_is_taken_apart() {
        let mut inbox = Inbox::new();
        let from: SocketAddr = "10.0.0.1:5".parse().expect("an address");
        inbox.slots().next().expect("a slot")[..7].copy_from_slice(b"aabbccd");
        inbox.note(0, Some(from), 7, Some(2));
        inbox.note(1, None, 9, None);
        inbox.note(2, Some(from), 0, None);
        let got: Vec<_> = inbox.datagrams(3).map(|(at, bytes)| (at, bytes.to_vec())).collect();
        assert_eq!(got, [b"aa".to_vec(), b"bb".to_vec(), b"cc".to_vec(), b"d".to_vec()].map(|bytes| (from, bytes)));
    }
}

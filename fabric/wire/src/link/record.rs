//! The records of a stream: a packet each, or the end.
//!
//! | at | type | what |
//! |---|---|---|
//! | 0 | u64 | first word of a [cell](crate::cell), its stamp 0 |
//! | 8 | u64 | second word of a cell |
//! | 16 | bytes | inline payload or control words, as many as the first word says |
//! | then | u32 | bytes of bulk payload, if the first word says that there is some; at least 1 |
//! | then | bytes | bulk payload |
//!
//! The end is a record of 16 bytes with kind 255 and otherwise zero. Nothing follows it.

use crate::cell::{Head, INLINE_BYTES, decode};

/// Bytes of the two header words.
pub const HEAD_BYTES: usize = 16;
/// Bytes of the length of a bulk payload.
pub const LENGTH_BYTES: usize = 4;
/// Most bytes of a record that are not bulk payload.
pub const MOST_HEAD_BYTES: usize = HEAD_BYTES + INLINE_BYTES + LENGTH_BYTES;
/// The largest bulk payload of a record.
pub const LONGEST_BULK: usize = 64 << 10;
/// The end of a stream.
pub const END: [u8; HEAD_BYTES] = [0, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// What the first bytes of a record claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    Packet { head: Head, inline_bytes: usize, bulk: bool },
    End,
}

impl Opening {
    /// `None` for what no sender writes.
    #[inline]
    pub fn parse(first: u64, second: u64) -> Option<Self> {
        if first as u8 != 0 {
            return None;
        }
        if let Some(claim) = decode(first, second) {
            return Some(Self::Packet {
                head: claim.head,
                inline_bytes: claim.inline_bytes as usize,
                bulk: claim.bulk,
            });
        }
        (first == u64::from(END[1]) << 8 && second == 0).then_some(Self::End)
    }
}

/// The header words of a packet's record.
#[inline]
pub fn open(head: &Head, inline_bytes: usize, bulk: bool) -> [u8; HEAD_BYTES] {
    debug_assert!(inline_bytes <= INLINE_BYTES);
    let mut packed = [0; HEAD_BYTES];
    packed[..8].copy_from_slice(&head.first_word(inline_bytes as u8, bulk).to_le_bytes());
    packed[8..].copy_from_slice(&head.second_word().to_le_bytes());
    packed
}

/// Bytes of a record.
#[inline]
pub const fn bytes(inline_bytes: usize, bulk_bytes: usize) -> usize {
    HEAD_BYTES + inline_bytes + if bulk_bytes > 0 { LENGTH_BYTES + bulk_bytes } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Kind;

    fn words(bytes: [u8; HEAD_BYTES]) -> (u64, u64) {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        (word(0), word(8))
    }

    #[test]
    fn golden_bytes() {
        let head = Head { kind: Kind::Eager, context: 0x1122_3344, tag: -2, source: 7 };
        let golden = [0, 2, 8, 1, 0x44, 0x33, 0x22, 0x11, 0xfe, 0xff, 0xff, 0xff, 7, 0, 0, 0];
        assert_eq!(open(&head, 8, true), golden);
        let (first, second) = words(golden);
        assert_eq!(Opening::parse(first, second), Some(Opening::Packet { head, inline_bytes: 8, bulk: true }));
    }

    #[test]
    fn the_end_is_known() {
        let (first, second) = words(END);
        assert_eq!(Opening::parse(first, second), Some(Opening::End));
        assert_eq!(Opening::parse(first, 1), None);
        assert_eq!(Opening::parse(first | 1 << 32, second), None);
    }

    #[test]
    fn what_no_sender_writes_is_refused() {
        let (first, second) = words(open(&Head::control(Kind::Short), 48, false));
        assert!(Opening::parse(first, second).is_some());
        assert_eq!(Opening::parse(first | 0x80, second), None, "a stamp");
        assert_eq!(Opening::parse(first + (1 << 16), second), None, "49 inline bytes");
        assert_eq!(Opening::parse(0, 0), None, "no kind");
    }
}

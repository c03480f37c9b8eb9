//! The word of a slot: the number of the operation, and how many bytes its member brought.

use weft_fabric::Fault;

/// Low bits, which tell the bytes. The others count operations: 2^48 of them take most of a year.
const BITS: u32 = 16;
const MASK: u64 = (1 << BITS) - 1;
/// Up to here the bits are the bytes; above, what is left of them after a division, with the highest bit set. Then the
/// slot's payload begins with the bytes in full, eight of them, and eight with the row. So it is
/// for every operation in a row of several, however few its bytes are.
const EXACT: u64 = (1 << (BITS - 1)) - 1;
/// Instead of bytes: member 0 has found that the members differ.
const DIFFER: u64 = MASK;

/// Whether the payload of the slot says more than the word.
#[inline]
pub fn is_long(bytes: usize, row: usize) -> bool {
    bytes as u64 > EXACT || row > 1
}

/// What stands in the slot of a member that brought `bytes` to `operation`, one of the row `row`, 1 for none.
#[inline]
pub fn word(operation: u64, bytes: usize, row: usize) -> u64 {
    let is_long = is_long(bytes, row);
    let bytes = bytes as u64;
    let told = if is_long { (EXACT + 1) | (bytes % EXACT) } else { bytes };
    operation << BITS | told
}

/// What stands in the slot of member 0 when it has found that the members differ.
pub fn differs(operation: u64) -> u64 {
    operation << BITS | DIFFER
}

/// Whether the word belongs to the operation.
#[inline]
pub fn is_of(operation: u64, word: u64) -> bool {
    word >> BITS == operation
}

/// The bytes that a word tells; the slot's payload tells them in full where the word cannot.
///
/// `None`: member 0 has found that the members differ.
#[cold]
pub fn told(word: u64, in_full: impl FnOnce() -> u64) -> Option<u64> {
    match word & MASK {
        DIFFER => None,
        told if told <= EXACT => Some(told),
        _ => Some(in_full()),
    }
}

/// Why a member cannot go on with the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Differs {
    /// This member was called with another length than this one.
    Length {
        member: u32,
        /// What it brings, bytes; `None` where not this member differs but some of them do.
        bytes: Option<u64>,
    },
    /// A member is lost, or the context of the group is closed.
    Closed(Fault),
}

/// How a member's look at another one ends.
pub type Alike = Result<(), Differs>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_and_lengths_do_not_mix() {
        for bytes in [0, 1, 28 * 1024, 0x7fff, 0x8000, 1 << 20, usize::MAX] {
            for operation in [1, 2, 1 << 20, (1 << 48) - 1] {
                assert!(is_of(operation, word(operation, bytes, 1)) && is_of(operation, differs(operation)));
                assert!(!is_of(operation + 1, word(operation, bytes, 1)));
                assert_ne!(word(operation, bytes, 1), differs(operation));
                assert!(is_of(operation, word(operation, bytes, 2)) && word(operation, bytes, 2) != differs(operation));
                assert!(is_long(bytes, 1) || word(operation, bytes, 1) != word(operation, bytes, 2));
                assert_ne!(word(operation, bytes, 1), word(operation, bytes.wrapping_add(8), 1));
            }
        }
        assert_ne!(word(0, 1, 1), 0, "an empty slot belongs to no operation");
    }

    #[test]
    fn lengths_are_told_as_they_were_written() {
        assert_eq!(told(word(7, 40, 1), || 1 << 40), Some(40));
        assert_eq!(told(word(7, 1 << 40, 1), || 1 << 40), Some(1 << 40));
        assert_eq!(told(differs(7), || 1 << 40), None);
    }
}

//! A collective block: plain shared memory that the members of a communicator use by agreement.

use super::memory::Memory;
use crate::sync::{AtomicU64, Ordering};
use std::sync::Arc;

/// Blocks of the segment in a row. What the bytes mean is agreed by its users; access goes through atomics and copies.
#[derive(Clone)]
pub struct Block {
    _memory: Arc<Memory>,
    at: *mut u8,
    length: usize,
}

// SAFETY: every access is an atomic operation or a raw copy whose safety the caller vouches for.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    pub(super) fn new(memory: Arc<Memory>, at: *mut u8, length: usize) -> Self {
        Self { _memory: memory, at, length }
    }

    /// Bytes of the whole.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The 64-bit word at byte `offset`, a multiple of 8.
    #[inline]
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset + 8 <= self.length && offset.is_multiple_of(8), "no word at {offset}");
        // SAFETY: aligned and inside the block, which lives as long as the memory that we keep.
        unsafe { &*self.at.add(offset).cast() }
    }

    /// The address of `bytes` bytes at `offset`.
    #[inline]
    pub fn bytes(&self, offset: usize, bytes: usize) -> *mut u8 {
        assert!(offset + bytes <= self.length, "range {offset}+{bytes} outside the block of {}", self.length);
        // SAFETY: inside the block.
        unsafe { self.at.add(offset) }
    }

    /// Loads a word that another member publishes: what it wrote before is visible after.
    #[inline]
    pub fn observe(&self, offset: usize) -> u64 {
        self.word(offset).load(Ordering::Acquire)
    }

    /// Publishes what was written before together with `value`.
    #[inline]
    pub fn publish(&self, offset: usize, value: u64) {
        self.word(offset).store(value, Ordering::Release);
    }
}

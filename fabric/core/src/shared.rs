//! Collective blocks as interfaces see them.

use weft_device::shm::Segment;
pub use weft_device::shm::block::Block;

/// Hands out collective blocks of the segment.
pub struct SharedBlocks {
    segment: Segment,
}

impl SharedBlocks {
    pub(crate) fn new(segment: Segment) -> Self {
        Self { segment }
    }

    /// Takes `count` blocks in a row for a group whose members will all learn the index; `None` if there are no more.
    pub fn take(&self, count: usize) -> Option<usize> {
        self.segment.take_blocks(count)
    }

    /// Block `index`; `None` if a peer named one that does not exist.
    pub fn open(&self, index: usize) -> Option<Block> {
        (index < self.segment.blocks()).then(|| self.segment.block(index))
    }
}

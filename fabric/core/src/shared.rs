//! Collective blocks as interfaces see them.

use weft_device::shm::Segment;
pub use weft_device::shm::block::Block;
pub use weft_wire::segment::BLOCK_BYTES;

/// Hands out collective blocks of the segment.
#[derive(Clone)]
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

    /// Gives back what [`Self::take`] has handed out, once no member uses it any more. Its first word may be overwritten;
    /// it is zero again when the blocks are taken.
    pub fn give(&self, first: usize, count: usize) {
        if self.open(first, count).is_some() {
            self.segment.give_blocks(first, count);
        }
    }

    /// The `count` blocks from `first` on as one; `None` if a peer named some that do not exist.
    pub fn open(&self, first: usize, count: usize) -> Option<Block> {
        (first.checked_add(count)? <= self.segment.blocks() && count > 0).then(|| self.segment.block(first, count))
    }
}

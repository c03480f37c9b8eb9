//! Collective blocks as interfaces see them.

use std::sync::Once;
pub use weft_device::shm::block::Block;
use weft_device::shm::{NoBlocks, Segment};
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

    /// Takes `count` blocks in a row for a group whose members will all learn the index; `None` if there are no more,
    /// or no memory for them, which is said once.
    pub fn take(&self, count: usize) -> Option<usize> {
        match self.segment.take_blocks(count) {
            Ok(first) => Some(first),
            Err(NoBlocks::Used) => None,
            Err(error @ NoBlocks::Memory { .. }) => {
                static SAID: Once = Once::new();
                SAID.call_once(|| eprintln!("weft: {error}; collective operations go by messages"));
                None
            }
        }
    }

    /// Gives back what [`Self::take`] has handed out, once no member uses it any more. Its first word may be
    /// overwritten; it is zero again when the blocks are taken.
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

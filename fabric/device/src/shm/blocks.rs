//! Who has which collective blocks: those never used come from a counter; those given back stand in lists, one for each
//! length of a run of blocks. A list's head is in the header, its links are in the first words of the runs themselves.
//!
//! Heads and links are claims of the peers: what names no blocks of the segment ends the list.
//!
//! ORDER: give-blocks. Whoever gives a run back is done with it (release); whoever takes it comes after that (acquire).

use super::segment::Segment;
use crate::sync::Ordering;
use std::io;
use weft_wire::segment::{BLOCK_BYTES, MOST_BLOCKS_IN_A_ROW, header};

/// Why there are no collective blocks.
#[derive(Debug, thiserror::Error)]
pub enum NoBlocks {
    #[error("all collective blocks of the segment are in use")]
    Used,
    #[error("no shared memory for {count} collective blocks: {cause}")]
    Memory { count: usize, cause: io::Error },
}

/// The lower half of a head: 1 + the first run's first block, 0 for an empty list. The upper half counts changes, so
/// that a head which has gone and come back meanwhile is not mistaken for the old one.
const INDEX: u64 = 0xffff_ffff;

impl Segment {
    /// Collective blocks that nobody uses, `count` in a row, with memory behind them. The first word of the first one
    /// is zero; the rest is as it was given back.
    pub fn take_blocks(&self, count: usize) -> Result<usize, NoBlocks> {
        self.take_given_back(count).map_or_else(|| self.take_unused(count), Ok)
    }

    fn take_unused(&self, count: usize) -> Result<usize, NoBlocks> {
        let next = self.views.header_u64(header::NEXT_BLOCK);
        let after = |first: u64| first.checked_add(count as u64).filter(|after| *after <= self.blocks() as u64);
        let first = next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after).map_err(|_| NoBlocks::Used)?;
        let populated = self.views.memory.populate(self.views.geometry.block(first as usize), count * BLOCK_BYTES);
        populated.map(|()| first as usize).map_err(|cause| {
            // They cannot stand in a list, whose links are in the blocks. If others were taken meanwhile, these are
            // lost.
            let _ = next.compare_exchange(first + count as u64, first, Ordering::Relaxed, Ordering::Relaxed);
            NoBlocks::Memory { count, cause }
        })
    }

    fn take_given_back(&self, count: usize) -> Option<usize> {
        let head = self.views.header_u64(header::given_back(count)?);
        let mut seen = head.load(Ordering::Acquire);
        loop {
            let first = (seen & INDEX).checked_sub(1)? as usize;
            if first + count > self.blocks() {
                return None;
            }
            let block = self.views.block(first, 1);
            let next = block.word(0).load(Ordering::Relaxed) & INDEX;
            // ORDER: give-blocks
            match head.compare_exchange(seen, changed(seen, next), Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    block.word(0).store(0, Ordering::Relaxed);
                    return Some(first);
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Gives blocks back that [`Self::take_blocks`] has handed out together, and that no process uses any more.
    pub fn give_blocks(&self, first: usize, count: usize) {
        let Some(head) = header::given_back(count).map(|at| self.views.header_u64(at)) else { return };
        let block = self.views.block(first, 1);
        let mut seen = head.load(Ordering::Relaxed);
        loop {
            block.word(0).store(seen & INDEX, Ordering::Relaxed);
            // ORDER: give-blocks
            match head.compare_exchange(seen, changed(seen, first as u64 + 1), Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }
}

fn changed(head: u64, index: u64) -> u64 {
    (head >> 32).wrapping_add(1) << 32 | index
}

const _: () = assert!(header::given_back(MOST_BLOCKS_IN_A_ROW).is_some());

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn what_was_given_back_is_taken_before_what_was_never_used() {
        let segment = Segment::create(1).expect("segment");
        let (a, b, long) = (segment.take_blocks(1).ok(), segment.take_blocks(1).ok(), segment.take_blocks(3).ok());
        let (a, b, long) = (a.expect("first"), b.expect("second"), long.expect("run"));
        segment.give_blocks(a, 1);
        segment.give_blocks(long, 3);
        segment.give_blocks(b, 1);
        assert_eq!((segment.take_blocks(1).ok(), segment.take_blocks(1).ok()), (Some(b), Some(a)));
        assert_eq!(segment.take_blocks(1).ok(), Some(long + 3), "a longer run is not cut");
        assert_eq!(segment.take_blocks(3).ok(), Some(long));
        assert_eq!(segment.block(long, 3).observe(0), 0);
    }

    #[test]
    fn too_long_a_run_leaves_what_there_is() {
        let segment = Segment::create(1).expect("segment");
        assert_eq!(segment.take_blocks(segment.blocks() + 1).ok(), None);
        for block in 0..segment.blocks() {
            assert_eq!(segment.take_blocks(1).ok(), Some(block));
        }
        assert_eq!(segment.take_blocks(1).ok(), None);
    }

    #[test]
    fn a_list_that_leads_out_of_the_segment_is_empty() {
        let segment = Segment::create(1).expect("segment");
        let head = segment.views.header_u64(header::given_back(1).expect("a list"));
        for nonsense in [segment.blocks() as u64 + 1, INDEX, u64::MAX] {
            head.store(nonsense, Ordering::Relaxed);
            assert!(segment.take_blocks(1).is_ok_and(|first| first < segment.blocks()));
        }
    }

    #[test]
    fn no_run_has_two_owners() {
        let segment = Segment::create(1).expect("segment");
        let owned = std::sync::Mutex::new(HashSet::new());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let first = segment.take_blocks(2).expect("never more than four runs");
                        assert!(owned.lock().expect("no panic").insert(first), "run {first} is owned already");
                        assert!(owned.lock().expect("no panic").remove(&first));
                        segment.give_blocks(first, 2);
                    }
                });
            }
        });
        assert!(segment.take_blocks(1).is_ok_and(|first| first <= 8), "no more than four runs were used");
    }
}

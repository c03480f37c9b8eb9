//! Locks of a window in memory that its members on one host share, two for each of them: the one that programs take,
//! and the one of the accumulate family.
//!
//! A lock is one word: bit 0, somebody waits; bits 1 to 31, how many hold it together; upper half, 1 + the rank that
//! holds it alone. Whoever cannot get it sets bit 0 and waits through the fabric; whoever makes it free sees the bit in
//! the same step and wakes the members of the host.
//!
//! ORDER: window-lock. What was done under a lock comes before it is given back (release), and after it was taken
//! (acquire).

use std::sync::atomic::{AtomicU64, Ordering};
use weft_fabric::shared::{BLOCK_BYTES, Block, SharedBlocks};

const WAITING: u64 = 1;
const TOGETHER: u64 = 2;
const ALONE: u32 = 32;
/// A member's words have a line for themselves.
const LINE: usize = 64;
/// Most members of one host.
pub const MOST: usize = BLOCK_BYTES / LINE;

/// Which lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhichLock {
    Program = 0,
    Accumulate = 8,
}

pub enum WindowWords {
    /// In a collective block, which the host's first member gives back.
    Shared { block: Block, blocks: SharedBlocks, first: usize, is_mine: bool },
    /// Of a member that shares them with nobody.
    Own([AtomicU64; 2]),
}

impl WindowWords {
    pub fn own() -> Self {
        Self::Own([AtomicU64::new(0), AtomicU64::new(0)])
    }

    /// Takes a block for `members`; what stands in it before is cleared.
    pub fn take(blocks: &SharedBlocks, members: usize) -> Option<usize> {
        if members > MOST {
            return None;
        }
        let first = blocks.take(1)?;
        let block = blocks.open(first, 1)?;
        for member in 0..members {
            for which in [WhichLock::Program, WhichLock::Accumulate] {
                block.word(member * LINE + which as usize).store(0, Ordering::Relaxed);
            }
        }
        Some(first)
    }

    pub fn word(&self, place: u32, which: WhichLock) -> &AtomicU64 {
        match self {
            Self::Shared { block, .. } => block.word(place as usize * LINE + which as usize),
            Self::Own(words) => &words[which as usize / 8],
        }
    }

    /// The window is gone, and all members have left it.
    pub fn give_back(&self) {
        if let Self::Shared { blocks, first, is_mine: true, .. } = self {
            blocks.give(*first, 1);
        }
    }
}

/// Takes the lock if it is free; else says that somebody waits.
#[inline]
pub fn try_lock(word: &AtomicU64, alone: bool, me: u32) -> bool {
    let mut seen = word.load(Ordering::Relaxed);
    loop {
        let is_free = if alone { seen & !WAITING == 0 } else { seen >> ALONE == 0 };
        let next = match (is_free, alone) {
            (true, true) => seen | u64::from(me + 1) << ALONE,
            (true, false) => seen + TOGETHER,
            (false, _) if seen & WAITING != 0 => return false,
            (false, _) => seen | WAITING,
        };
        // ORDER: window-lock
        match word.compare_exchange_weak(seen, next, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return is_free,
            Err(now) => seen = now,
        }
    }
}

/// Gives the lock back; true if others wait for it, who are to be woken.
#[inline]
pub fn unlock(word: &AtomicU64, alone: bool) -> bool {
    let mut seen = word.load(Ordering::Relaxed);
    loop {
        let rest = if alone { seen & ((1 << ALONE) - 1) } else { seen.wrapping_sub(TOGETHER) };
        let is_free = rest & !WAITING == 0;
        let next = if is_free { 0 } else { rest };
        // ORDER: window-lock
        match word.compare_exchange_weak(seen, next, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return is_free && seen & WAITING != 0,
            Err(now) => seen = now,
        }
    }
}

/// The rank that holds the lock alone.
pub fn holder(word: &AtomicU64) -> Option<u32> {
    ((word.load(Ordering::Relaxed) >> ALONE) as u32).checked_sub(1)
}

/// Whether anybody holds it.
pub fn is_held(word: &AtomicU64) -> bool {
    word.load(Ordering::Relaxed) & !WAITING != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_together_keep_out_who_wants_it_alone() {
        let word = AtomicU64::new(0);
        assert!(try_lock(&word, false, 0) && try_lock(&word, false, 1));
        assert!(!try_lock(&word, true, 2));
        assert_eq!(holder(&word), None);
        assert!(!unlock(&word, false), "one still holds it");
        assert!(unlock(&word, false), "the one that waits is to be woken");
        assert_eq!(word.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn who_holds_it_alone_is_known_and_keeps_out_everybody() {
        let word = AtomicU64::new(0);
        assert!(try_lock(&word, true, 7));
        assert_eq!(holder(&word), Some(7));
        assert!(!try_lock(&word, false, 1) && !try_lock(&word, true, 2));
        assert!(unlock(&word, true));
        assert!(try_lock(&word, true, 0) && !unlock(&word, true), "nobody has waited since");
    }

    #[test]
    fn counting_under_the_lock_loses_nothing() {
        let (word, count) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for me in 0..3 {
                let (word, count) = (&word, &count);
                scope.spawn(move || {
                    for _ in 0..2000 {
                        while !try_lock(word, true, me) {
                            std::thread::yield_now();
                        }
                        let seen = count.load(Ordering::Relaxed);
                        count.store(seen + 1, Ordering::Relaxed);
                        unlock(word, true);
                    }
                });
            }
        });
        assert_eq!(count.load(Ordering::Relaxed), 6000);
    }
}

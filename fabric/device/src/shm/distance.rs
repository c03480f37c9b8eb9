//! How far apart two cores are, which decides how bulk bytes are stored for the other one.
//!
//! A line that one core has just written costs another one that reads it 2 to 6 ns where both share a cache, and 30 to 40
//! where they do not: then it comes out of the other core's cache, and nothing fetches it ahead. Stored past the caches the
//! same bytes come out of memory in a stream, at about 6 ns a line wherever the cores are. Nobody tells a process where its
//! cores are, and those of a virtual machine move, so the reader measures, now and then, what ordinarily stored bytes
//! cost it, and leaves the figure where the writer finds it. A writer that has changed to the other way goes back for a
//! few pieces from time to time, so that there is something to measure.
//!
//! Both figures are claims: a peer that lies makes its own messages slower.

use crate::sys;

/// Shorter pieces are always stored ordinarily, and tell nothing.
pub const LEAST_BYTES: usize = 2048;
/// Picoseconds a line from which on the cores are far apart.
const FAR_PS: u64 = 15_000;
/// Counts for no more: the reader may have been interrupted.
const MOST_PS: u64 = 40_000;
/// What handling a piece costs besides reading it, and the clock.
const OVERHEAD_NS: u64 = 100;
const READS_PER_LOOK: u32 = 8;
const WRITES_PER_LOOK: u32 = 32;
/// Enough for a few looks of the reader.
const WRITES_PER_TRIAL: u32 = 4 * READS_PER_LOOK;
/// Pieces stored past the caches between two trials of the ordinary way, at first and at last.
const FIRST_GAP: u32 = 1024;
const LAST_GAP: u32 = 8192;

/// The reader's side.
#[derive(Default)]
pub struct Reading {
    reads: u32,
    level_ps: u64,
}

impl Reading {
    /// A piece that was stored ordinarily is about to be read; answers when, if it is one to measure.
    #[inline]
    pub fn begin(&mut self, bytes: usize) -> Option<u64> {
        if bytes < LEAST_BYTES {
            return None;
        }
        self.reads = self.reads.wrapping_add(1);
        self.reads.is_multiple_of(READS_PER_LOOK).then(sys::now_ns)
    }

    /// It has been read; answers the new figure, picoseconds a line, a mean of the last few.
    pub fn end(&mut self, since_ns: u64, bytes: usize) -> u64 {
        self.record(sys::now_ns().saturating_sub(since_ns), bytes)
    }

    fn record(&mut self, ns: u64, bytes: usize) -> u64 {
        let sample = ns.saturating_sub(OVERHEAD_NS).saturating_mul(1000) / (bytes as u64).div_ceil(64).max(1);
        let sample = sample.min(MOST_PS);
        self.level_ps = (3 * self.level_ps + sample) / 4;
        self.level_ps
    }
}

/// The writer's side.
pub struct Writing {
    /// Pieces until the reader's figure is looked at, or, in a trial, until it ends.
    left: u32,
    is_far: bool,
    in_trial: bool,
    gap: u32,
}

impl Default for Writing {
    fn default() -> Self {
        Self { left: WRITES_PER_LOOK, is_far: false, in_trial: false, gap: FIRST_GAP }
    }
}

impl Writing {
    /// Whether the next piece is to be stored past the caches; `level_ps` finds the reader's figure.
    #[inline]
    pub fn passes_caches(&mut self, bytes: usize, level_ps: impl FnOnce() -> u64) -> bool {
        if bytes < LEAST_BYTES {
            return false;
        }
        if self.left == 0 {
            self.look(level_ps());
        }
        self.left -= 1;
        self.is_far && !self.in_trial
    }

    #[cold]
    fn look(&mut self, level_ps: u64) {
        let is_far = level_ps >= FAR_PS;
        if self.is_far && is_far && !self.in_trial {
            (self.in_trial, self.left) = (true, WRITES_PER_TRIAL);
            return;
        }
        self.gap = if self.in_trial && is_far { (2 * self.gap).min(LAST_GAP) } else { FIRST_GAP };
        (self.is_far, self.in_trial) = (is_far, false);
        self.left = if is_far { self.gap } else { WRITES_PER_LOOK };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 8192;

    /// Pieces that cost the reader so much if they are stored ordinarily; answers how many were not.
    fn pass(writing: &mut Writing, reading: &mut Reading, level: &mut u64, pieces: u32, ns_a_line: u64) -> u32 {
        (0..pieces)
            .filter(|piece| {
                let passes = writing.passes_caches(BYTES, || *level);
                if !passes && piece % READS_PER_LOOK == 0 {
                    *level = reading.record(OVERHEAD_NS + ns_a_line * 128, BYTES);
                }
                passes
            })
            .count() as u32
    }

    #[test]
    fn a_far_reader_is_noticed_and_a_near_one_again() {
        let (mut writing, mut reading, mut level) = (Writing::default(), Reading::default(), 0);
        assert_eq!(pass(&mut writing, &mut reading, &mut level, 10_000, 4), 0);
        let passed = pass(&mut writing, &mut reading, &mut level, 100_000, 35);
        assert!(passed > 98_500, "{passed} of 100000");
        let passed = pass(&mut writing, &mut reading, &mut level, 100_000, 4);
        assert!(passed < 3 * LAST_GAP, "{passed} of 100000");
    }

    #[test]
    fn one_interruption_changes_nothing() {
        let (mut writing, mut reading, mut level) = (Writing::default(), Reading::default(), 0);
        pass(&mut writing, &mut reading, &mut level, 1_000, 4);
        level = reading.record(10_000_000, BYTES);
        assert_eq!(pass(&mut writing, &mut reading, &mut level, 1_000, 4), 0);
    }

    #[test]
    fn short_pieces_are_stored_ordinarily_and_not_measured() {
        let mut writing = Writing { is_far: true, left: 1, ..Writing::default() };
        assert!(!writing.passes_caches(LEAST_BYTES - 1, || u64::MAX));
        assert!(writing.passes_caches(LEAST_BYTES, || u64::MAX));
        assert!((0..100).all(|_| Reading::default().begin(LEAST_BYTES - 1).is_none()));
    }
}

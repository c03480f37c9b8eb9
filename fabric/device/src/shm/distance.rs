//! How bulk bytes are best stored for a reader on another core: as ever, or past the caches.
//!
//! A line that one core has written and another one has read costs its writer a message between caches when it is
//! written again, and its reader another one. That is little where both share a cache, and much where they do not: 1 to
//! 40 ns a line have been met. Stored past the caches the same bytes come out of memory in a stream, at much the same
//! cost wherever the cores are. Nobody tells a process where its cores are, and those of a virtual machine move. So
//! both sides measure, now and then: the writer what storing costs it, the reader what reading does, which it leaves
//! where the writer finds it. The writer takes the way that costs both together less, and tries the other one for a few
//! pieces from time to time.
//!
//! The reader's figures are claims: a peer that lies makes its own messages slower.

use crate::sys;

/// Shorter pieces are always stored ordinarily, and tell nothing.
pub const LEAST_BYTES: usize = 2048;
/// Pieces are of two classes, below this length and from it on: what is done once for a piece counts more in short
/// ones.
const LONG_BYTES: usize = 6144;
const CLASSES: usize = 2;
/// Picoseconds a line that count at most: whoever took longer was interrupted. Four of them fit into a word.
const MOST_PS: u16 = 60_000;
const PIECES_PER_SAMPLE: u32 = 8;
/// Enough for a few samples of both sides.
const PIECES_PER_TRIAL: u32 = 4 * PIECES_PER_SAMPLE;
/// Pieces between two trials, at first and at last.
const FIRST_GAP: u32 = 1024;
const LAST_GAP: u32 = 16_384;

fn class_of(bytes: usize) -> usize {
    usize::from(bytes >= LONG_BYTES)
}

/// What a line costs stored either way: as ever, and past the caches. 0 while that was not measured.
#[derive(Clone, Copy, Default)]
struct Costs([u16; 2]);

impl Costs {
    /// An interruption makes a sample longer and nothing makes one shorter, so it falls at once and rises slowly.
    fn note(&mut self, past: bool, ns: u64, bytes: usize) {
        let lines = (bytes as u64).div_ceil(64).max(1);
        let sample = (ns.saturating_mul(1000) / lines).clamp(1, MOST_PS.into()) as u16;
        let level = &mut self.0[usize::from(past)];
        *level = if *level == 0 || sample < *level { sample } else { *level + (sample - *level) / 8 };
    }
}

/// The reader's side.
#[derive(Default)]
pub struct Reading {
    pieces: u32,
    costs: [Costs; CLASSES],
}

/// A piece that is about to be stored or read.
#[derive(Clone, Copy)]
pub struct BulkPiece {
    /// It is stored past the caches.
    pub past: bool,
    bytes: usize,
    /// When, if it is one to measure.
    since_ns: Option<u64>,
}

impl Reading {
    #[inline]
    pub fn begin(&mut self, bytes: usize, past: bool) -> BulkPiece {
        if bytes < LEAST_BYTES {
            return BulkPiece { past, bytes, since_ns: None };
        }
        self.pieces = self.pieces.wrapping_add(1);
        BulkPiece { past, bytes, since_ns: self.pieces.is_multiple_of(PIECES_PER_SAMPLE).then(sys::now_ns) }
    }

    /// It has been read; the word for the writer, if there is a new one.
    #[inline]
    pub fn end(&mut self, piece: BulkPiece) -> Option<u64> {
        let since_ns = piece.since_ns?;
        Some(self.record(piece.past, sys::now_ns().saturating_sub(since_ns), piece.bytes))
    }

    fn record(&mut self, past: bool, ns: u64, bytes: usize) -> u64 {
        self.costs[class_of(bytes)].note(past, ns, bytes);
        let levels = self.costs.iter().flat_map(|costs| costs.0);
        levels.rev().fold(0, |word, level| word << 16 | u64::from(level))
    }
}

/// What the reader says of a class.
fn said(word: u64, class: usize) -> Costs {
    Costs([0, 1].map(|way| (word >> (16 * (2 * class + way))) as u16))
}

/// The writer's side.
#[derive(Default)]
pub struct Writing {
    classes: [Storing; CLASSES],
}

/// How pieces of one class are stored.
struct Storing {
    past: bool,
    in_trial: bool,
    /// Pieces until a trial begins or ends.
    left: u32,
    gap: u32,
    costs: Costs,
}

impl Default for Storing {
    fn default() -> Self {
        Self { past: false, in_trial: false, left: PIECES_PER_TRIAL, gap: FIRST_GAP, costs: Costs::default() }
    }
}

impl Writing {
    /// How the next piece is to be stored; `word` finds what the reader says.
    #[inline]
    pub fn begin(&mut self, bytes: usize, word: impl FnOnce() -> u64) -> BulkPiece {
        if bytes < LEAST_BYTES {
            return BulkPiece { past: false, bytes, since_ns: None };
        }
        let class = class_of(bytes);
        let storing = &mut self.classes[class];
        if storing.left == 0 {
            storing.look(said(word(), class));
        }
        storing.left -= 1;
        let since_ns = storing.left.is_multiple_of(PIECES_PER_SAMPLE).then(sys::now_ns);
        BulkPiece { past: storing.past != storing.in_trial, bytes, since_ns }
    }

    /// It has been stored.
    #[inline]
    pub fn end(&mut self, piece: BulkPiece) {
        if let Some(since_ns) = piece.since_ns {
            let ns = sys::now_ns().saturating_sub(since_ns);
            self.classes[class_of(piece.bytes)].costs.note(piece.past, ns, piece.bytes);
        }
    }
}

impl Storing {
    #[cold]
    fn look(&mut self, reader: Costs) {
        if !self.in_trial {
            (self.in_trial, self.left) = (true, PIECES_PER_TRIAL);
            return;
        }
        let cost = |way: usize| u32::from(self.costs.0[way]) + u32::from(reader.0[way]);
        let known = self.costs.0.into_iter().chain(reader.0).all(|level| level != 0);
        // What is about as good is left to the caches: who reads the bytes next may find them there.
        let past = known && 8 * cost(1) < 7 * cost(0);
        self.gap = if past == self.past { (2 * self.gap).min(LAST_GAP) } else { FIRST_GAP };
        (self.past, self.in_trial, self.left) = (past, false, self.gap);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a line costs, in nanoseconds: stored and read, as ever and past the caches.
    #[derive(Clone, Copy)]
    struct Cores {
        store: [u64; 2],
        read: [u64; 2],
    }

    const NEAR: Cores = Cores { store: [1, 3], read: [2, 5] };
    const FAR: Cores = Cores { store: [15, 3], read: [25, 5] };

    #[derive(Default)]
    struct Both {
        writing: Writing,
        reading: Reading,
        word: u64,
    }

    impl Both {
        /// Moves so many pieces; how many were stored past the caches.
        fn pass(&mut self, bytes: usize, pieces: u32, cores: Cores) -> u32 {
            let lines = bytes as u64 / 64;
            (0..pieces)
                .filter(|_| {
                    let piece = self.writing.begin(bytes, || self.word);
                    let way = usize::from(piece.past);
                    if piece.since_ns.is_some() {
                        let costs = &mut self.writing.classes[class_of(bytes)].costs;
                        costs.note(piece.past, cores.store[way] * lines, bytes);
                    }
                    if self.reading.begin(bytes, piece.past).since_ns.is_some() {
                        self.word = self.reading.record(piece.past, cores.read[way] * lines, bytes);
                    }
                    piece.past
                })
                .count() as u32
        }
    }

    #[test]
    fn far_cores_are_noticed_and_near_ones_again() {
        for bytes in [2048, 8192] {
            let mut both = Both::default();
            let passed = both.pass(bytes, 10_000, NEAR);
            assert!((PIECES_PER_TRIAL..400).contains(&passed), "{passed} of 10000 while they are near");
            both.pass(bytes, 2 * LAST_GAP, FAR);
            let passed = both.pass(bytes, 100_000, FAR);
            assert!(passed > 98_500, "{passed} of 100000 while they are far");
            both.pass(bytes, 2 * LAST_GAP, NEAR);
            let passed = both.pass(bytes, 100_000, NEAR);
            assert!(passed < 1_500, "{passed} of 100000 when they are near again");
        }
    }

    #[test]
    fn short_and_long_pieces_are_judged_apart() {
        let mut both = Both::default();
        for _ in 0..100 {
            both.pass(2048, 1000, NEAR);
            both.pass(8192, 1000, FAR);
        }
        assert!(both.pass(2048, 1000, NEAR) <= PIECES_PER_TRIAL);
        assert!(both.pass(8192, 1000, FAR) >= 1000 - PIECES_PER_TRIAL);
    }

    #[test]
    fn one_interruption_changes_nothing() {
        let mut both = Both::default();
        both.pass(8192, 10_000, NEAR);
        both.word = both.reading.record(false, 10_000_000, 8192);
        assert!(both.pass(8192, 1_000, NEAR) <= PIECES_PER_TRIAL);
    }

    #[test]
    fn short_pieces_are_stored_ordinarily_and_not_measured() {
        let mut writing = Writing::default();
        for _ in 0..10 * FIRST_GAP {
            let piece = writing.begin(LEAST_BYTES - 1, || u64::MAX);
            assert!(!piece.past && piece.since_ns.is_none());
            assert!(Reading::default().begin(LEAST_BYTES - 1, false).since_ns.is_none());
        }
    }

    #[test]
    fn a_reader_that_says_anything_does_no_harm() {
        let mut writing = Writing::default();
        for word in [0, 1, u64::MAX, 0x1234_0000_ffff_0001].into_iter().cycle().take(100_000) {
            let piece = writing.begin(8192, || word);
            writing.end(piece);
        }
    }
}

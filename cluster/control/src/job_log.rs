//! What the ranks of a job have written lately: a ring in memory that the launcher has and the daemon of its host
//! reads.
//!
//! The head has four numbers of 8 bytes: what this is, the bytes of the ring, and two positions, of the oldest piece
//! and behind the last. Positions count all bytes since the job began; where a position lies in the ring is its rest by
//! the ring's length. A piece is the rank, its length with the stream in the highest bit, and its bytes.
//!
//! The launcher writes in an order ([`LogRing::add`]) that lets who reads at the same time see what is whole: the
//! oldest position moves on before bytes are written over, and the last one after they are there. So one who reads
//! head, ring and head again drops what lies before the second head's oldest position ([`LogHead::keep`]).
//!
//! What is read is a claim of the user's process.
//!
//! Test: `cargo test -p weft-cluster job_log`.

use std::collections::VecDeque;

/// What the kernel calls the memory.
pub const MEMORY_NAME: &std::ffi::CStr = c"weft-log";
/// Bytes of the head.
pub const HEAD_BYTES: usize = 32;
/// The longest ring that is read.
pub const MOST_RING_BYTES: u64 = 64 << 20;
const MAGIC: u64 = u64::from_le_bytes(*b"weft-lg1");
/// Before the bytes of a piece.
const PIECE_HEAD: usize = 8;
/// Longest piece, with its head.
const MOST_PIECE_BYTES: u64 = 4096;
const IS_ERROR: u32 = 1 << 31;

/// What one write of a rank was, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPiece<'a> {
    pub rank: u32,
    /// To standard error.
    pub is_error: bool,
    pub bytes: &'a [u8],
}

/// The launcher's half.
#[derive(Debug)]
pub struct LogRing {
    capacity: u64,
    oldest: u64,
    end: u64,
    /// The length of each piece that is there, the oldest first.
    lengths: VecDeque<u64>,
}

/// Bytes, and where they are written.
pub type LogWrite = (u64, Vec<u8>);

impl LogRing {
    /// A ring of so many bytes, 64 at least.
    pub fn new(bytes: u64) -> Self {
        Self { capacity: bytes.clamp(64, MOST_RING_BYTES), oldest: 0, end: 0, lengths: VecDeque::new() }
    }

    /// What is written first, at the begin of the memory.
    pub fn head(&self) -> [u8; HEAD_BYTES] {
        let mut head = [0; HEAD_BYTES];
        for (at, word) in [MAGIC, self.capacity, self.oldest, self.end].into_iter().enumerate() {
            head[at * 8..at * 8 + 8].copy_from_slice(&word.to_le_bytes());
        }
        head
    }

    /// What a rank has written; it is to be written in this order.
    pub fn add(&mut self, rank: u32, is_error: bool, bytes: &[u8]) -> Vec<LogWrite> {
        // A piece of a quarter leaves some of what came before it, and so does a short one of what is kept at the end.
        let most = (self.capacity / 4).min(MOST_PIECE_BYTES) as usize - PIECE_HEAD;
        bytes.chunks(most).flat_map(|part| self.add_part(rank, is_error, part)).collect()
    }

    fn add_part(&mut self, rank: u32, is_error: bool, bytes: &[u8]) -> Vec<LogWrite> {
        let length = bytes.len() as u32 | if is_error { IS_ERROR } else { 0 };
        let piece = [&rank.to_le_bytes()[..], &length.to_le_bytes(), bytes].concat();
        let mut writes = Vec::new();
        let end = self.end + piece.len() as u64;
        while let Some(first) = self.lengths.front().copied().filter(|_| end - self.oldest > self.capacity) {
            self.oldest += first;
            self.lengths.pop_front();
            writes = vec![(16, self.oldest.to_le_bytes().to_vec())];
        }
        let at = self.end % self.capacity;
        let (first, rest) = piece.split_at(piece.len().min((self.capacity - at) as usize));
        writes.push((HEAD_BYTES as u64 + at, first.to_vec()));
        if !rest.is_empty() {
            writes.push((HEAD_BYTES as u64, rest.to_vec()));
        }
        self.lengths.push_back(piece.len() as u64);
        self.end = end;
        writes.push((24, end.to_le_bytes().to_vec()));
        writes
    }
}

/// The head as somebody else has read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogHead {
    pub capacity: u64,
    pub oldest: u64,
    pub end: u64,
}

impl LogHead {
    /// Nothing where it means nothing.
    pub fn read(head: &[u8; HEAD_BYTES]) -> Option<Self> {
        let word = |at: usize| u64::from_le_bytes(head[at * 8..at * 8 + 8].try_into().unwrap_or_default());
        let (capacity, oldest, end) = (word(1), word(2), word(3));
        let is_sound = word(0) == MAGIC && capacity <= MOST_RING_BYTES && end.checked_sub(oldest)? <= capacity;
        is_sound.then_some(Self { capacity, oldest, end })
    }

    /// From where on there is something for one who has read up to `from`.
    pub fn begin(&self, from: u64) -> u64 {
        from.clamp(self.oldest, self.end)
    }

    /// Where the bytes between two positions lie in the memory: places and lengths, one or two.
    pub fn places(&self, from: u64, to: u64) -> Vec<(u64, usize)> {
        if from >= to || self.capacity == 0 {
            return Vec::new();
        }
        let at = from % self.capacity;
        let first = (to - from).min(self.capacity - at);
        let rest = to - from - first;
        let place = |at: u64, length: u64| (HEAD_BYTES as u64 + at, length as usize);
        [place(at, first), place(0, rest)].into_iter().filter(|(_, length)| *length > 0).collect()
    }

    /// Drops of what was read from position `from` on what may have been written over meanwhile, as this head, read
    /// later, says; answers where the rest begins.
    pub fn keep(&self, from: u64, bytes: &mut Vec<u8>) -> u64 {
        let gone = self.oldest.saturating_sub(from).min(bytes.len() as u64);
        bytes.drain(..gone as usize);
        from + gone
    }
}

/// The pieces in these bytes, which begin with one. It ends where they mean nothing.
pub fn pieces(mut bytes: &[u8]) -> impl Iterator<Item = LogPiece<'_>> {
    std::iter::from_fn(move || {
        let (head, rest) = bytes.split_first_chunk::<PIECE_HEAD>()?;
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (rank, length) = (word(0), word(4));
        let (piece, rest) = rest.split_at_checked((length & !IS_ERROR) as usize)?;
        bytes = rest;
        Some(LogPiece { rank, is_error: length & IS_ERROR != 0, bytes: piece })
    })
}

/// The last whole pieces that are no longer than this together.
pub fn last_pieces(bytes: &[u8], most: usize) -> &[u8] {
    let mut rest = bytes;
    while rest.len() > most {
        let Some(first) = pieces(rest).next() else { return &[] };
        rest = &rest[PIECE_HEAD + first.bytes.len()..];
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The memory with what was written to it.
    fn write(memory: &mut Vec<u8>, (at, bytes): &LogWrite) {
        let end = *at as usize + bytes.len();
        memory.resize(memory.len().max(end), 0);
        memory[*at as usize..end].copy_from_slice(bytes);
    }

    fn head(memory: &[u8]) -> LogHead {
        LogHead::read(memory.first_chunk().expect("a head")).expect("sound")
    }

    fn read(memory: &[u8], from: u64, to: u64) -> Vec<u8> {
        let places = head(memory).places(from, to);
        places.into_iter().flat_map(|(at, length)| memory[at as usize..at as usize + length].to_vec()).collect()
    }

    #[test]
    fn the_oldest_go_first_and_what_is_left_is_whole() {
        let mut ring = LogRing::new(128);
        let mut memory = ring.head().to_vec();
        for number in 0..20u8 {
            ring.add(number.into(), number % 2 == 1, &[number; 5]).iter().for_each(|piece| write(&mut memory, piece));
        }
        let head = head(&memory);
        assert_eq!(head.end, 20 * 13);
        let bytes = read(&memory, head.begin(0), head.end);
        let found: Vec<u32> = pieces(&bytes).map(|piece| piece.rank).collect();
        assert_eq!(found, (11..20).collect::<Vec<_>>(), "128 / 13 of them");
        assert!(
            pieces(&bytes).all(|piece| piece.bytes == [piece.rank as u8; 5] && piece.is_error == (piece.rank % 2 == 1))
        );
        assert_eq!(pieces(last_pieces(&bytes, 30)).map(|piece| piece.rank).collect::<Vec<_>>(), [18, 19]);
        assert_eq!(head.begin(head.end + 7), head.end);
    }

    #[test]
    fn long_writes_are_cut_and_no_head_is_believed() {
        let mut ring = LogRing::new(64);
        let mut memory = ring.head().to_vec();
        ring.add(3, false, &[7; 20]).iter().for_each(|piece| write(&mut memory, piece));
        let head = head(&memory);
        let bytes = read(&memory, 0, head.end);
        assert_eq!(pieces(&bytes).map(|piece| piece.bytes.len()).collect::<Vec<_>>(), [8, 8, 4]);
        memory[24..32].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(LogHead::read(memory.first_chunk().unwrap()), None, "longer than the ring");
        assert_eq!(LogHead::read(&[0; 32]), None);
    }

    #[test]
    fn a_long_write_is_kept_nearly_whole_before_a_short_one() {
        let mut ring = LogRing::new(1 << 20);
        let mut memory = ring.head().to_vec();
        for bytes in [&vec![1; 200_000][..], &[2; 100]] {
            ring.add(0, false, bytes).iter().for_each(|piece| write(&mut memory, piece));
        }
        let bytes = read(&memory, 0, head(&memory).end);
        let kept = last_pieces(&bytes, 1 << 16).len();
        assert!(kept > (1 << 16) - MOST_PIECE_BYTES as usize, "{kept}");
    }

    proptest! {
        /// Who reads between any two writes of the launcher sees whole pieces, in order.
        #[test]
        fn whoever_reads_meanwhile_sees_whole_pieces(
            lengths in proptest::collection::vec(0usize..90, 1..40), stop in 0usize..200, later in 0usize..8,
        ) {
            let mut ring = LogRing::new(256);
            let first = ring.head().to_vec();
            let writes: Vec<LogWrite> = lengths.iter().enumerate()
                .flat_map(|(number, length)| ring.add(number as u32, false, &vec![number as u8; *length])).collect();
            let mut memory = first;
            let stop = stop.min(writes.len());
            writes[..stop].iter().for_each(|piece| write(&mut memory, piece));
            let before = head(&memory);
            memory.resize(HEAD_BYTES + 256, 0);
            // Some more is written before the ring is read, as the worst that can happen.
            let end = (stop + later).min(writes.len());
            writes[stop..end].iter().for_each(|piece| write(&mut memory, piece));
            let mut bytes = read(&memory, before.oldest, before.end);
            let after = head(&memory);
            after.keep(before.oldest, &mut bytes);
            let found: Vec<_> = pieces(&bytes).collect();
            prop_assert_eq!(found.iter().map(|piece| 8 + piece.bytes.len()).sum::<usize>(), bytes.len());
            prop_assert!(found.iter().all(|piece| piece.bytes.iter().all(|byte| *byte == piece.rank as u8)));
            prop_assert!(found.is_sorted_by_key(|piece| piece.rank));
        }

        #[test]
        fn whatever_stands_there_is_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..100), most in 0usize..50) {
            let _ = (pieces(&bytes).count(), last_pieces(&bytes, most).len());
        }
    }
}

//! How large a datagram the path carries.
//!
//! Beginning with a size that is known to pass or believed to, larger ones are tried with datagrams that carry nothing
//! but padding (as RFC 8899 does). A path that swallows large datagrams while small ones pass (a black hole) is noticed
//! because the same first bytes are lost again and again, or because nothing is answered any more; then the smallest
//! size is used, and larger ones are tried again later.

/// A size is given up after so many tries.
const TRIES: u32 = 3;
/// Sizes nearer to each other than this are one.
const NEAR_BYTES: usize = 64;
/// The first bytes of the stream are lost so often before the path is suspected.
const SUSPICIOUS: u32 = 4;
const RETRY_AFTER_NS: u64 = 5_000_000_000;
const FIRST_RETRY_NS: u64 = 500_000_000;

/// Sizes of datagrams, headers of UDP and below not counted.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Passes everywhere.
    pub smallest: usize,
    /// To begin with.
    pub first: usize,
    /// The most that the device can send.
    pub largest: usize,
}

pub struct Path {
    sizes: Sizes,
    size: usize,
    /// The next size to try, and how often it has been.
    wanted: usize,
    /// The least size that did not pass.
    failed: usize,
    tries: u32,
    /// Whether a try is on its way.
    trying: bool,
    try_at_ns: u64,
    head: u64,
    head_lost: u32,
}

impl Path {
    pub fn new(sizes: Sizes, now_ns: u64) -> Self {
        let largest = sizes.largest.max(sizes.smallest);
        Self {
            sizes: Sizes { largest, ..sizes },
            size: sizes.first.clamp(sizes.smallest, largest),
            wanted: largest,
            failed: usize::MAX,
            tries: 0,
            trying: false,
            try_at_ns: now_ns,
            head: 0,
            head_lost: 0,
        }
    }

    /// The largest datagram to send.
    #[inline]
    pub fn size(&self) -> usize {
        self.size
    }

    fn done(&self) -> bool {
        self.size + NEAR_BYTES > self.sizes.largest
    }

    /// When a larger size is to be tried; `u64::MAX` if none is.
    pub fn try_at_ns(&self) -> u64 {
        if self.done() || self.trying { u64::MAX } else { self.try_at_ns }
    }

    /// The size to try now.
    pub fn wanted(&self, now_ns: u64) -> Option<usize> {
        (now_ns >= self.try_at_ns()).then_some(self.wanted)
    }

    pub fn handle_tried(&mut self) {
        self.trying = true;
        self.tries += 1;
    }

    /// A datagram of this size has arrived; true if the path is now known to carry more.
    #[inline]
    pub fn handle_arrived(&mut self, now_ns: u64, bytes: usize) -> bool {
        if bytes <= self.size {
            return false;
        }
        self.size = bytes;
        self.step(now_ns);
        true
    }

    /// A datagram without payload was lost; its size says whether it was a try.
    pub fn handle_try_lost(&mut self, now_ns: u64, bytes: usize) {
        if bytes <= self.size {
            return;
        }
        self.trying = false;
        if self.tries >= TRIES {
            self.failed = self.failed.min(bytes);
            self.step(now_ns);
        }
    }

    /// The next size lies between what passes and what does not, if they are not near to each other.
    fn step(&mut self, now_ns: u64) {
        (self.trying, self.tries) = (false, 0);
        let middle = self.size.midpoint(self.failed.min(self.sizes.largest));
        if self.failed != usize::MAX && middle >= self.size + NEAR_BYTES {
            self.wanted = middle;
        } else {
            (self.wanted, self.failed, self.try_at_ns) = (self.sizes.largest, usize::MAX, now_ns + RETRY_AFTER_NS);
        }
    }

    /// A datagram of this size was lost that held the first byte that has not arrived, at position `acked`. True if the
    /// size has fallen.
    pub fn handle_first_lost(&mut self, now_ns: u64, acked: u64, bytes: usize) -> bool {
        if bytes <= self.sizes.smallest {
            return false;
        }
        self.head_lost = if self.head == acked { self.head_lost + 1 } else { 1 };
        self.head = acked;
        self.head_lost >= SUSPICIOUS && self.fall_back(now_ns)
    }

    /// So many questions in a row had no answer. True if the size has fallen.
    pub fn handle_silence(&mut self, now_ns: u64, questions: u32) -> bool {
        questions >= SUSPICIOUS - 1 && self.fall_back(now_ns)
    }

    fn fall_back(&mut self, now_ns: u64) -> bool {
        let falls = self.size > self.sizes.smallest;
        self.size = self.sizes.smallest;
        (self.head_lost, self.failed) = (0, usize::MAX);
        self.step(now_ns);
        self.try_at_ns = now_ns + FIRST_RETRY_NS;
        falls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes { smallest: 1_200, first: 1_400, largest: 9_000 };

    /// Tries sizes over a path that carries `carries` until nothing is tried for a while.
    fn settle(path: &mut Path, carries: usize, now_ns: u64) -> usize {
        while let Some(size) = path.wanted(now_ns) {
            path.handle_tried();
            if size <= carries {
                path.handle_arrived(now_ns, size);
            } else {
                path.handle_try_lost(now_ns, size);
            }
        }
        path.size()
    }

    #[test]
    fn the_largest_size_is_tried_first() {
        let mut path = Path::new(SIZES, 0);
        assert_eq!(path.wanted(0), Some(9_000));
        path.handle_tried();
        assert_eq!(path.wanted(0), None, "one at a time");
        assert!(path.handle_arrived(0, 9_000));
        assert_eq!(path.wanted(u64::MAX - 1), None);
    }

    #[test]
    fn the_size_of_the_path_is_found_between() {
        let mut path = Path::new(SIZES, 0);
        let found = settle(&mut path, 4_000, 0);
        assert!((4_000 - 2 * NEAR_BYTES..=4_000).contains(&found), "{found}");
        assert_eq!(settle(&mut path, 9_000, RETRY_AFTER_NS), 9_000, "it is tried again later");
    }

    #[test]
    fn a_black_hole_is_left_and_looked_at_again() {
        let mut path = Path::new(SIZES, 0);
        path.handle_arrived(0, 9_000);
        let falls: Vec<bool> = (0..4).map(|_| path.handle_first_lost(7, 100, 9_000)).collect();
        assert_eq!((falls, path.size()), (vec![false, false, false, true], 1_200));
        assert_eq!(path.try_at_ns(), 7 + FIRST_RETRY_NS);
    }

    #[test]
    fn losses_in_different_places_are_no_black_hole() {
        let mut path = Path::new(SIZES, 0);
        assert!((0..100).all(|at| !path.handle_first_lost(0, at, 1_400)));
    }
}

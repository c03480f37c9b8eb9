//! One bit for each of the last [`SPAN`] numbers of a count.

/// Numbers that are kept apart. Two numbers that are so far from each other share a bit.
pub const SPAN: u64 = 2048;
const WORDS: usize = SPAN as usize / 64;

pub struct BitRing {
    words: [u64; WORDS],
}

#[inline]
fn place(number: u64) -> (usize, u32) {
    ((number / 64) as usize % WORDS, (number % 64) as u32)
}

/// The lowest `count` bits.
#[inline]
fn low(count: u64) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

impl BitRing {
    pub fn new() -> Self {
        Self { words: [0; WORDS] }
    }

    #[inline]
    pub fn set(&mut self, number: u64) {
        let (word, bit) = place(number);
        self.words[word] |= 1 << bit;
    }

    #[inline]
    pub fn clear(&mut self, number: u64) {
        let (word, bit) = place(number);
        self.words[word] &= !(1 << bit);
    }

    #[inline]
    pub fn test(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        self.words[word] >> bit & 1 == 1
    }

    /// The bits of `first` (lowest) to `first + 63`.
    #[inline]
    pub fn word(&self, first: u64) -> u64 {
        let (word, bit) = place(first);
        let low = self.words[word] >> bit;
        if bit == 0 { low } else { low | self.words[(word + 1) % WORDS] << (64 - bit) }
    }

    /// Clears `from..to`; all if that is more than there are.
    pub fn clear_range(&mut self, from: u64, to: u64) {
        if to - from >= SPAN {
            self.words = [0; WORDS];
            return;
        }
        let mut at = from;
        while at < to {
            let (word, bit) = place(at);
            let count = (64 - u64::from(bit)).min(to - at);
            self.words[word] &= !(low(count) << bit);
            at += count;
        }
    }

    /// The first set bit of `from..to`, which are at most [`SPAN`] numbers.
    #[inline]
    pub fn first(&self, from: u64, to: u64) -> Option<u64> {
        let mut at = from;
        while at < to {
            let word = self.word(at) & low(to - at);
            if word != 0 {
                return Some(at + u64::from(word.trailing_zeros()));
            }
            at += 64;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_ring_is_a_set_of_its_last_numbers(start in any::<u32>(), steps in prop::collection::vec((0u8..3, 0..SPAN, 0..300u64), 1..60)) {
            let start = u64::from(start);
            let (mut ring, mut oracle) = (BitRing::new(), BTreeSet::new());
            for (what, offset, length) in steps {
                let (number, end) = (start + offset, (start + offset + length).min(start + SPAN));
                match what {
                    0 => {
                        ring.set(number);
                        oracle.insert(number);
                    }
                    1 => {
                        ring.clear(number);
                        oracle.remove(&number);
                    }
                    _ => {
                        ring.clear_range(number, end.max(number));
                        oracle.retain(|kept| *kept < number || *kept >= end);
                    }
                }
                prop_assert_eq!(ring.test(number), oracle.contains(&number));
                prop_assert_eq!(ring.first(start, start + SPAN), oracle.first().copied());
                prop_assert_eq!(ring.first(number, end.max(number)), oracle.range(number..end.max(number)).next().copied());
                let first = start + offset.min(SPAN - 64);
                let expected = (0..64).filter(|bit| oracle.contains(&(first + bit))).fold(0, |word, bit| word | 1u64 << bit);
                prop_assert_eq!(ring.word(first), expected);
            }
        }
    }
}

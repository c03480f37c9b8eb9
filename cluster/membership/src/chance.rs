//! Random numbers from a seed, and the mixing of bits.

/// A sequence of random numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(mix(seed ^ 0x5bd1_e995_9e37_79b9))
    }

    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// One of the numbers below `bound`; 0 for a bound of 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(bound)) >> 64) as u64
    }

    /// Whether something happens that does so with this probability.
    pub fn happens(&mut self, probability: f64) -> bool {
        ((self.word() >> 11) as f64) < probability * (1u64 << 53) as f64
    }
}

/// A permutation of the words in which each bit of the result depends on all bits (the finaliser of SplitMix64).
pub(crate) fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

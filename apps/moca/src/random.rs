//! One sequence of random numbers for all processes. A number is made of its place in the sequence (by the mixing
//! function of SplitMix64), so nobody waits for those before.
//!
//! Orca's program has a global generator, too, with a period of 134456: fewer numbers than a step of many particles
//! takes in a second. So this one is another; the seed is the same.

use serde::{Deserialize, Serialize};

const SEED: u64 = 554_321;

/// A place in the sequence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GlobalRandom {
    drawn: u64,
}

impl GlobalRandom {
    /// The sequence from another start: its numbers are apart from those of other starts.
    pub fn start(number: u32) -> Self {
        Self { drawn: u64::from(number) << 48 }
    }

    /// From 0 to 1.
    #[inline]
    pub fn next(&mut self) -> f64 {
        self.drawn += 1;
        let mut bits = SEED.wrapping_add(self.drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ bits >> 31) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A direction, as a point at a distance of 1.
    pub fn direction(&mut self) -> [f64; 3] {
        loop {
            let point = [0; 3].map(|_| self.next() - 0.5);
            let squared: f64 = point.iter().map(|part| part * part).sum();
            if squared <= 0.25 {
                return point.map(|part| part / squared.sqrt());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spread_evenly() {
        let mut random = GlobalRandom::start(1);
        let mut counts = [0; 10];
        (0..100_000).for_each(|_| counts[(10.0 * random.next()) as usize] += 1);
        assert!(counts.iter().all(|count| (9600..10400).contains(count)), "{counts:?}");
    }
}

//! The random numbers of the C library (`random` of glibc, whose method its documentation and many pages describe), so
//! that maps are those of Orca's `boxMaker`.

/// Numbers of 31 bits, each the sum of two before it.
pub struct SumRandom {
    last: [u32; Self::LENGTH],
    at: usize,
}

impl SumRandom {
    const LENGTH: usize = 31;
    /// The second number of a sum is so many before the next one; the first is `LENGTH` before it.
    const SHORT: usize = 3;
    /// So many are not used.
    const WARM: usize = 310;

    pub fn new(seed: u32) -> Self {
        let mut last = [0; Self::LENGTH];
        let mut number = u64::from(seed.max(1));
        for place in &mut last {
            *place = number as u32;
            number = number * 16807 % 0x7fff_ffff;
        }
        let mut random = Self { last, at: Self::SHORT };
        for _ in 0..Self::WARM {
            random.next();
        }
        random
    }

    pub fn next(&mut self) -> u32 {
        let short = self.last[(self.at + Self::LENGTH - Self::SHORT) % Self::LENGTH];
        let sum = self.last[self.at].wrapping_add(short);
        self.last[self.at] = sum;
        self.at = (self.at + 1) % Self::LENGTH;
        sum >> 1
    }

    /// One of so many.
    pub fn below(&mut self, count: usize) -> usize {
        self.next() as usize % count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_c_library() {
        let mut random = SumRandom::new(1);
        assert_eq!([0; 4].map(|_| random.next()), [1_804_289_383, 846_930_886, 1_681_692_777, 1_714_636_915]);
    }
}

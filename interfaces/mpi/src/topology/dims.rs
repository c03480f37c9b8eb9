//! Balanced grids for `MPI_Dims_create` (MPI 5.0, section 8.5.2).

/// Factors of `n` into `count` numbers in falling order that are as close to each other as possible: the largest one
/// is as small as it can be, then the second one, and so on.
///
/// `n` and `count` are at least 1.
pub fn balance(n: u32, count: usize) -> Vec<u32> {
    let divisors = divisors(n);
    let mut factors = Vec::with_capacity(count);
    let mut rest = n;
    for left in (1..=count as u32).rev() {
        let bound = factors.last().copied().unwrap_or(n);
        let fits = |&&factor: &&u32| {
            rest.is_multiple_of(factor) && factor <= bound && splits(rest / factor, left - 1, factor, &divisors)
        };
        let factor = *divisors.iter().find(fits).expect("the bound came from a split that exists");
        factors.push(factor);
        rest /= factor;
    }
    factors
}

/// Whether `n` is a product of `count` factors of at most `bound`.
fn splits(n: u32, count: u32, bound: u32, divisors: &[u32]) -> bool {
    if n == 1 {
        return true;
    }
    if u64::from(bound).checked_pow(count).is_some_and(|most| most < u64::from(n)) {
        return false;
    }
    let candidates = divisors.iter().rev().filter(|&&factor| factor > 1 && factor <= bound && n.is_multiple_of(factor));
    count > 0 && candidates.into_iter().any(|&factor| splits(n / factor, count - 1, factor, divisors))
}

/// All divisors, rising.
fn divisors(n: u32) -> Vec<u32> {
    let small: Vec<u32> = (1..=n.isqrt()).filter(|&divisor| n.is_multiple_of(divisor)).collect();
    let large = small.iter().rev().map(|divisor| n / divisor).filter(|&divisor| divisor > n.isqrt());
    small.iter().copied().chain(large).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_close_to_each_other() {
        let cases: [(u32, usize, &[u32]); 10] = [
            (6, 2, &[3, 2]),
            (7, 2, &[7, 1]),
            (12, 2, &[4, 3]),
            (12, 3, &[3, 2, 2]),
            (16, 3, &[4, 2, 2]),
            (24, 3, &[4, 3, 2]),
            (60, 3, &[5, 4, 3]),
            (1, 4, &[1, 1, 1, 1]),
            (36, 2, &[6, 6]),
            (2310, 3, &[15, 14, 11]),
        ];
        for (n, count, expected) in cases {
            assert_eq!(balance(n, count), expected, "{n} in {count}");
        }
    }

    #[test]
    fn products_are_exact_and_falling_for_every_small_number() {
        for n in 1..500 {
            for count in 1..5 {
                let factors = balance(n, count);
                assert_eq!(factors.iter().product::<u32>(), n);
                assert!(factors.is_sorted_by(|a, b| a >= b) && factors.len() == count);
            }
        }
    }

    #[test]
    fn large_numbers_end_quickly() {
        assert_eq!(balance(1 << 30, 3), [1 << 10, 1 << 10, 1 << 10]);
        assert_eq!(balance(2_147_483_647, 3), [2_147_483_647, 1, 1]);
        assert_eq!(balance(735_134_400, 6).iter().product::<u32>(), 735_134_400);
    }
}

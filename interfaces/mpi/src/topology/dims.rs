//! Balanced grids for `MPI_Dims_create` (MPI 5.0, section 8.5.2).

/// Factors of `n` into `count` numbers in falling order that are as close to each other as possible: the largest and
/// the smallest one differ by as little as can be. Among those the largest one is as large as it can be, then the
/// smallest of the others, then the next: so do other libraries.
///
/// `n` and `count` are at least 1.
pub fn balance(n: u32, count: usize) -> Vec<u32> {
    let divisors = divisors(n);
    let spread = |factors: &[u32]| factors[0] - factors[factors.len() - 1];
    let mut best: Option<Vec<u32>> = None;
    for &largest in &divisors {
        let low = best.as_deref().map_or(1, |best| largest.saturating_sub(spread(best)));
        if let Some(others) = closest(n / largest, count - 1, (low, largest), &divisors) {
            best = Some(std::iter::once(largest).chain(others).collect());
        }
    }
    best.expect("n itself and ones")
}

/// The factors of `n` in falling order, all between `low` and `high`, of which the last is the largest possible, then
/// the last but one, and so on; `None` if there are none.
fn closest(n: u32, count: usize, (low, high): (u32, u32), divisors: &[u32]) -> Option<Vec<u32>> {
    if !splits(n, count as u32, (low, high), divisors) {
        return None;
    }
    let mut rising: Vec<u32> = Vec::with_capacity(count);
    let mut rest = n;
    for left in (0..count as u32).rev() {
        let bound = rising.last().copied().unwrap_or(low);
        let fits = |&&factor: &&u32| {
            (bound..=high).contains(&factor)
                && rest.is_multiple_of(factor)
                && splits(rest / factor, left, (factor, high), divisors)
        };
        let factor = *divisors.iter().rev().find(fits).expect("the bounds came from a split that exists");
        rising.push(factor);
        rest /= factor;
    }
    rising.reverse();
    Some(rising)
}

/// Whether `n` is a product of `count` factors between `low` and `high`.
fn splits(n: u32, count: u32, (low, high): (u32, u32), divisors: &[u32]) -> bool {
    if count == 0 {
        return n == 1;
    }
    let power = |base: u32| u64::from(base).checked_pow(count).unwrap_or(u64::MAX);
    if power(high) < u64::from(n) || power(low) > u64::from(n) {
        return false;
    }
    let mut candidates =
        divisors.iter().rev().filter(|&&factor| (low..=high).contains(&factor) && n.is_multiple_of(factor));
    candidates.any(|&factor| splits(n / factor, count - 1, (low, factor), divisors))
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
        let cases: [(u32, usize, &[u32]); 15] = [
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
            // 24 x 24 x 13 has a smaller largest factor, but is spread wider.
            (7488, 3, &[26, 18, 16]),
            // 20 x 18 x 14 is spread as wide.
            (5040, 3, &[21, 16, 15]),
            // 29 x 12 x 12 x 7 x 7 has as large a largest and as small a smallest factor.
            (204_624, 5, &[29, 14, 9, 8, 7]),
            (17, 1, &[17]),
            (2, 20, &[2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
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
    fn no_other_factors_are_closer() {
        for n in 1..700u32 {
            for a in (1..=n).filter(|a| n.is_multiple_of(*a)) {
                for b in (1..=n / a).filter(|b| (n / a).is_multiple_of(*b)) {
                    let c = n / a / b;
                    let (found, spread) = (balance(n, 3), a.max(b).max(c) - a.min(b).min(c));
                    assert!(found[0] - found[2] <= spread, "{n}: {found:?} is spread wider than {a} x {b} x {c}");
                }
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

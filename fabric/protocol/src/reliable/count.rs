//! Counts of 64 bits of which the lower half travels.

/// Where counts begin is given by 32 bits; so much is added, so that nothing is ever below zero.
pub const EPOCH: u64 = 1 << 32;

/// The count nearest to `near` whose lower half is `low`.
#[inline]
pub fn expand(near: u64, low: u32) -> u64 {
    near.wrapping_add_signed(i64::from(low.wrapping_sub(near as u32) as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_go_on_across_the_wrap_of_their_lower_half() {
        for near in [EPOCH, EPOCH + 5, 2 * EPOCH - 3, 2 * EPOCH, 7 * EPOCH + 1234] {
            for distance in [-1000i64, -4, -1, 0, 1, 2, 5, 1 << 30] {
                let count = near.wrapping_add_signed(distance);
                assert_eq!(expand(near, count as u32), count, "{near} {distance}");
            }
        }
    }
}

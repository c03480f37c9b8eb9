//! Real numbers of two bytes (binary16), which this compiler has no type for. Calculated as floats and rounded once: a
//! float has more than twice as many digits, so sums and products are those that two-byte arithmetic gives.

use super::arithmetic::{Number, OrderedNumber};

/// The bits of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Half(u16);

/// Digits behind the point of a float that a half number lacks.
const LOST: u32 = 13;
/// What lies between the exponents.
const BIAS: u32 = 127 - 15;

impl Half {
    fn widen(self) -> f32 {
        let sign = u32::from(self.0 & 0x8000) << 16;
        let (exponent, digits) = (u32::from(self.0 >> 10 & 0x1f), u32::from(self.0 & 0x3ff));
        let bits = match exponent {
            0 => return f32::from_bits(sign | 1.0f32.to_bits()) * digits as f32 / (1 << 24) as f32,
            0x1f => 0xff << 23 | digits << LOST,
            _ => (exponent + BIAS) << 23 | digits << LOST,
        };
        f32::from_bits(sign | bits)
    }

    /// The nearest one; of two the even one.
    fn nearest(value: f32) -> Self {
        let sign = (value.to_bits() >> 16) as u16 & 0x8000;
        let bits = value.to_bits() & 0x7fff_ffff;
        let magnitude = match bits {
            0x7f80_0001.. => 0x7e00,
            // The first that rounds to 65536 and above, infinity with them.
            0x477f_f000.. => 0x7c00,
            // From the smallest normal number on; a carry out of the digits is one more in the exponent.
            0x3880_0000.. => rounded(bits - (BIAS << 23), LOST),
            // Multiples of 2^-24.
            0x3300_0000.. => {
                let shift = 126 - (bits >> 23);
                rounded(bits & 0x7f_ffff | 0x80_0000, shift)
            }
            _ => 0,
        };
        Self(sign | magnitude)
    }
}

/// The upper bits, rounded by the `shift` lower ones.
fn rounded(bits: u32, shift: u32) -> u16 {
    let (kept, rest, half) = (bits >> shift, bits & ((1 << shift) - 1), 1 << (shift - 1));
    let up = rest > half || rest == half && kept & 1 == 1;
    (kept + u32::from(up)) as u16
}

impl Number for Half {
    #[inline]
    fn sum(self, other: Self) -> Self {
        Self::nearest(self.widen() + other.widen())
    }

    #[inline]
    fn prod(self, other: Self) -> Self {
        Self::nearest(self.widen() * other.widen())
    }
}

impl OrderedNumber for Half {
    #[inline]
    fn min(self, other: Self) -> Self {
        if self.widen() < other.widen() { self } else { other }
    }

    #[inline]
    fn max(self, other: Self) -> Self {
        if self.widen() > other.widen() { self } else { other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_survives_the_way_to_a_float_and_back() {
        for bits in 0..=u16::MAX {
            let half = Half(bits);
            let back = Half::nearest(half.widen());
            if half.widen().is_nan() {
                assert!(back.widen().is_nan(), "{bits:#x}");
            } else {
                assert_eq!(back, half, "{bits:#x} is {}", half.widen());
            }
        }
    }

    #[test]
    fn values_and_roundings_are_those_of_binary16() {
        let one_third = f32::from_bits(0x3eaa_aaab);
        for (bits, value) in
            [(0x3c00, 1.0), (0xc000, -2.0), (0x7bff, 65504.0), (0x0001, 5.960_464_5e-8), (0x3555, 0.333_251_95)]
        {
            assert_eq!(Half(bits).widen(), value, "{bits:#x}");
        }
        assert_eq!(Half::nearest(one_third), Half(0x3555));
        assert_eq!([Half::nearest(65519.0), Half::nearest(65520.0)], [Half(0x7bff), Half(0x7c00)]);
        // Ties go to the even one: 1 + 2^-11 down, 1 + 3 * 2^-11 up; half of the smallest number to nothing.
        assert_eq!([Half::nearest(1.000_488_3), Half::nearest(1.001_464_8)], [Half(0x3c00), Half(0x3c02)]);
        assert_eq!([Half::nearest(2.980_232_2e-8), Half::nearest(2.99e-8)], [Half(0), Half(1)]);
        assert_eq!(Half::nearest(-0.0), Half(0x8000));
    }

    #[test]
    fn sums_products_and_extremes() {
        let (two, three) = (Half::nearest(2.0), Half::nearest(3.0));
        assert_eq!([two.sum(three).widen(), two.prod(three).widen()], [5.0, 6.0]);
        assert_eq!([OrderedNumber::min(two, three), OrderedNumber::max(two, three)], [two, three]);
    }
}

//! What one element of each representation does under each operation.

/// A number in memory that operations understand. Integers wrap around on overflow.
pub(super) trait Number: Copy {
    fn sum(self, other: Self) -> Self;
    fn prod(self, other: Self) -> Self;
}

/// Numbers with an order. Where it has no answer (a NaN) the right operand stands.
pub(super) trait OrderedNumber: Copy {
    fn min(self, other: Self) -> Self;
    fn max(self, other: Self) -> Self;
}

/// Bit patterns; also the logical operations on their truth (not zero).
pub(super) trait Bits: Copy {
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn truth(self) -> bool;
    fn from_truth(truth: bool) -> Self;
}

macro_rules! integers {
    ($($int:ty),*) => { $(
        impl Number for $int {
            #[inline(always)]
            fn sum(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn prod(self, other: Self) -> Self { self.wrapping_mul(other) }
        }
        impl OrderedNumber for $int {
            #[inline(always)]
            fn min(self, other: Self) -> Self { if other < self { other } else { self } }
            #[inline(always)]
            fn max(self, other: Self) -> Self { if other > self { other } else { self } }
        }
        impl Bits for $int {
            #[inline(always)]
            fn and(self, other: Self) -> Self { self & other }
            #[inline(always)]
            fn or(self, other: Self) -> Self { self | other }
            #[inline(always)]
            fn xor(self, other: Self) -> Self { self ^ other }
            #[inline(always)]
            fn truth(self) -> bool { self != 0 }
            #[inline(always)]
            fn from_truth(truth: bool) -> Self { truth as $int }
        }
    )* };
}

macro_rules! floats {
    ($($float:ty),*) => { $(
        impl Number for $float {
            #[inline(always)]
            fn sum(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn prod(self, other: Self) -> Self { self * other }
        }
        impl OrderedNumber for $float {
            #[inline(always)]
            fn min(self, other: Self) -> Self { if self < other { self } else { other } }
            #[inline(always)]
            fn max(self, other: Self) -> Self { if self > other { self } else { other } }
        }
    )* };
}

integers!(i8, i16, i32, i64, u8, u16, u32, u64);
floats!(f32, f64);

/// A complex number: real part, imaginary part.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Complex<T>(pub T, pub T);

macro_rules! complexes {
    ($($float:ty),*) => { $(
        impl Number for Complex<$float> {
            #[inline(always)]
            fn sum(self, other: Self) -> Self { Self(self.0 + other.0, self.1 + other.1) }
            #[inline(always)]
            fn prod(self, other: Self) -> Self {
                Self(self.0 * other.0 - self.1 * other.1, self.0 * other.1 + self.1 * other.0)
            }
        }
    )* };
}

complexes!(f32, f64);

//! The functions that reductions are given: what becomes of each pair of elements of two arrays.
//!
//! ByteString have an order and no arithmetic. Of complex numbers the one that is farther from 0 is the larger one.

use std::ffi::{c_char, c_int, c_long, c_short, c_uint, c_ulong, c_ushort, c_void};

use crate::errors::Code;

#[derive(Clone, Copy)]
enum Fold {
    Larger,
    Smaller,
    Sum,
    Product,
}

trait FoldedElement: Copy + PartialOrd {
    fn sum(self, other: Self) -> Self;
    fn product(self, other: Self) -> Self;

    /// Whether `other` takes the place of `self`.
    fn is_less(self, other: Self) -> bool {
        self < other
    }

    fn fold(self, other: Self, how: Fold) -> Self {
        match how {
            Fold::Larger if self.is_less(other) => other,
            Fold::Smaller if other.is_less(self) => other,
            Fold::Larger | Fold::Smaller => self,
            Fold::Sum => self.sum(other),
            Fold::Product => self.product(other),
        }
    }
}

macro_rules! integers {
    ($($of:ty)+) => { $(
        impl FoldedElement for $of {
            fn sum(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            fn product(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        }
    )+ };
}

integers! { i8 u8 c_short c_ushort c_int c_uint c_long c_ulong }

macro_rules! floats {
    ($($of:ty)+) => { $(
        impl FoldedElement for $of {
            fn sum(self, other: Self) -> Self {
                self + other
            }

            fn product(self, other: Self) -> Self {
                self * other
            }
        }

        impl FoldedElement for [$of; 2] {
            fn sum(self, other: Self) -> Self {
                [self[0] + other[0], self[1] + other[1]]
            }

            fn product(self, other: Self) -> Self {
                [self[0] * other[0] - self[1] * other[1], self[0] * other[1] + self[1] * other[0]]
            }

            fn is_less(self, other: Self) -> bool {
                let square = |number: Self| number[0] * number[0] + number[1] * number[1];
                square(self) < square(other)
            }
        }
    )+ };
}

floats! { f32 f64 }

/// # Safety
/// There are so many elements in both arrays.
unsafe fn fold_all<N: FoldedElement>(how: Fold, into: *mut c_void, from: *const c_void, count: usize) {
    let (into, from) = (into.cast::<N>(), from.cast::<N>());
    for at in 0..count {
        // SAFETY: as the caller says; what a program has anywhere lies anywhere.
        unsafe {
            let folded = into.add(at).read_unaligned().fold(from.add(at).read_unaligned(), how);
            into.add(at).write_unaligned(folded);
        }
    }
}

/// Folds `from` into `into`, whose elements have the type of a number (`PVM_INT` and so on).
///
/// # Safety
/// There are `count` elements in both arrays.
unsafe fn fold(how: Fold, kind: c_int, into: *mut c_void, from: *const c_void, count: c_int) -> Result<(), Code> {
    let count = usize::try_from(count).map_err(|_| Code::BAD_PARAM)?;
    if count != 0 && (into.is_null() || from.is_null()) {
        return Err(Code::BAD_PARAM);
    }
    let by_order = matches!(how, Fold::Larger | Fold::Smaller);
    // SAFETY: as the caller says.
    unsafe {
        match kind {
            1 if by_order => fold_all::<c_char>(how, into, from, count),
            2 => fold_all::<c_short>(how, into, from, count),
            3 => fold_all::<c_int>(how, into, from, count),
            4 => fold_all::<f32>(how, into, from, count),
            5 => fold_all::<[f32; 2]>(how, into, from, count),
            6 => fold_all::<f64>(how, into, from, count),
            7 => fold_all::<[f64; 2]>(how, into, from, count),
            8 => fold_all::<c_long>(how, into, from, count),
            9 => fold_all::<c_ushort>(how, into, from, count),
            10 => fold_all::<c_uint>(how, into, from, count),
            11 => fold_all::<c_ulong>(how, into, from, count),
            _ => return Err(Code::BAD_PARAM),
        }
    }
    Ok(())
}

macro_rules! functions {
    ($($name:ident $fortran:ident $how:ident)+) => { $(
        /// # Safety
        /// There are `count` elements of the type in both arrays; the pointers to numbers are those of numbers.
        #[allow(non_snake_case)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            kind: *const c_int,
            into: *mut c_void,
            from: *const c_void,
            count: *const c_int,
            info: *mut c_int,
        ) {
            // SAFETY: as the caller says.
            unsafe {
                let done = fold(Fold::$how, *kind, into, from, *count);
                *info = done.map_or_else(|error| error.0, |()| 0);
            }
        }

        /// As the function of C.
        ///
        /// # Safety
        /// As there.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $fortran(
            kind: *const c_int,
            into: *mut c_void,
            from: *const c_void,
            count: *const c_int,
            info: *mut c_int,
        ) {
            // SAFETY: as the caller says.
            unsafe { $name(kind, into, from, count, info) };
        }
    )+ };
}

functions! {
    PvmMax pvmmax_ Larger
    PvmMin pvmmin_ Smaller
    PvmSum pvmsum_ Sum
    PvmProduct pvmproduct_ Product
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded<N: Copy, const COUNT: usize>(how: Fold, kind: c_int, mut x: [N; COUNT], y: [N; COUNT]) -> [N; COUNT] {
        let count = COUNT as c_int;
        // SAFETY: two arrays.
        unsafe { fold(how, kind, x.as_mut_ptr().cast(), y.as_ptr().cast(), count) }.expect("a type");
        x
    }

    #[test]
    fn pairs_of_all_types_are_folded() {
        assert_eq!(folded(Fold::Larger, 1, [1_i8, -5], [0, 7]), [1, 7]);
        assert_eq!(folded(Fold::Smaller, 2, [1_i16, -5], [0, 7]), [0, -5]);
        assert_eq!(folded(Fold::Sum, 3, [i32::MAX, 4], [1, 7]), [i32::MIN, 11]);
        assert_eq!(folded(Fold::Product, 4, [1.5_f32, 4.0], [2.0, 7.0]), [3.0, 28.0]);
        assert_eq!(folded(Fold::Product, 5, [[1.0_f32, 2.0]], [[3.0, 4.0]]), [[-5.0, 10.0]]);
        assert_eq!(folded(Fold::Larger, 6, [1.0_f64, f64::NAN], [f64::NAN, 2.0])[0], 1.0);
        assert_eq!(folded(Fold::Smaller, 7, [[3.0_f64, 4.0], [0.0, 1.0]], [[-4.9, 0.0], [5.0, 5.0]])[0], [-4.9, 0.0]);
        assert_eq!(folded(Fold::Sum, 8, [1_i64], [2]), [3]);
        assert_eq!(folded(Fold::Larger, 9, [1_u16], [u16::MAX]), [u16::MAX]);
        assert_eq!(folded(Fold::Larger, 10, [1_u32], [u32::MAX]), [u32::MAX]);
        assert_eq!(folded(Fold::Larger, 11, [1_u64], [u64::MAX]), [u64::MAX]);
    }

    #[test]
    fn what_has_no_arithmetic_or_is_no_type_is_refused() {
        let (mut x, y) = ([0_u64; 2], [0_u64; 2]);
        for (how, kind, count) in [(Fold::Sum, 1, 1), (Fold::Larger, 0, 1), (Fold::Larger, 12, 1), (Fold::Sum, 3, -1)] {
            // SAFETY: nothing is read.
            let done = unsafe { fold(how, kind, x.as_mut_ptr().cast(), y.as_ptr().cast(), count) };
            assert_eq!(done, Err(Code::BAD_PARAM));
        }
    }
}

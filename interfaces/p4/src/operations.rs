//! P4's operations on numbers, for `p4_global_op`: the first array becomes what the operation makes of both.

use std::ffi::{c_char, c_int};

/// Applies `f` to each two numbers.
///
/// # Safety
/// `into` and `from` have `count` numbers each.
unsafe fn each<T: Copy>(into: *mut c_char, from: *const c_char, count: c_int, f: impl Fn(T, T) -> T) {
    let (into, from): (*mut T, *const T) = (into.cast(), from.cast());
    for at in 0..count.max(0) as usize {
        // SAFETY: the caller's promise; a buffer of a message may lie anywhere.
        unsafe { into.add(at).write_unaligned(f(into.add(at).read_unaligned(), from.add(at).read_unaligned())) };
    }
}

/// Operations with their names for C, and for Fortran, where the count is given by its address.
macro_rules! operations {
    ($($name:ident $fortran:ident: $type:ty = $f:expr;)*) => {
        $(
            /// # Safety
            /// Both arrays have `count` numbers.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(into: *mut c_char, from: *mut c_char, count: c_int) {
                // SAFETY: the caller's promise.
                unsafe { each::<$type>(into, from, count, $f) };
            }

            /// # Safety
            /// Both arrays have so many numbers as stand at `count`.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $fortran(into: *mut c_char, from: *mut c_char, count: *const c_int) {
                // SAFETY: the caller's promise.
                unsafe { each::<$type>(into, from, *count, $f) };
            }
        )*
    };
}

operations! {
    p4_int_sum_op p4intsumop_: i32 = i32::wrapping_add;
    p4_int_mult_op p4intmultop_: i32 = i32::wrapping_mul;
    p4_int_max_op p4intmaxop_: i32 = i32::max;
    p4_int_min_op p4intminop_: i32 = i32::min;
    p4_int_absmax_op p4intabsmaxop_: i32 = |a: i32, b: i32| a.wrapping_abs().max(b.wrapping_abs());
    p4_int_absmin_op p4intabsminop_: i32 = |a: i32, b: i32| a.wrapping_abs().min(b.wrapping_abs());
    p4_flt_sum_op p4fltsumop_: f32 = |a, b| a + b;
    p4_flt_mult_op p4fltmultop_: f32 = |a, b| a * b;
    p4_flt_max_op p4fltmaxop_: f32 = f32::max;
    p4_flt_min_op p4fltminop_: f32 = f32::min;
    p4_flt_absmax_op p4fltabsmaxop_: f32 = |a: f32, b: f32| a.abs().max(b.abs());
    p4_flt_absmin_op p4fltabsminop_: f32 = |a: f32, b: f32| a.abs().min(b.abs());
    p4_dbl_sum_op p4dblsumop_: f64 = |a, b| a + b;
    p4_dbl_mult_op p4dblmultop_: f64 = |a, b| a * b;
    p4_dbl_max_op p4dblmaxop_: f64 = f64::max;
    p4_dbl_min_op p4dblminop_: f64 = f64::min;
    p4_dbl_absmax_op p4dblabsmaxop_: f64 = |a: f64, b: f64| a.abs().max(b.abs());
    p4_dbl_absmin_op p4dblabsminop_: f64 = |a: f64, b: f64| a.abs().min(b.abs());
}

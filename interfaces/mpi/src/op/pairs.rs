//! Minimum and maximum with location (MPI 5.0, section 6.9.4): of equal values the lower index wins.

use super::kernels::{Kernel, zip};
use super::predefined::Predefined;
#[cfg(target_arch = "x86_64")]
use super::x87;
use crate::datatype::Scalar;

/// A value and its index, laid out as the C struct.
#[derive(Clone, Copy)]
#[repr(C)]
struct Pair<V, I> {
    value: V,
    index: I,
}

/// The kernel for a pair type, or none when there is no such type.
pub(super) fn kernel(op: Predefined, value: Scalar, index: Scalar) -> Option<Kernel> {
    match (value, index) {
        (Scalar::F32, Scalar::I32) => located::<f32, i32>(op),
        (Scalar::F64, Scalar::I32) => located::<f64, i32>(op),
        (Scalar::Long, Scalar::I32) => located::<i64, i32>(op),
        (Scalar::I32, Scalar::I32) => located::<i32, i32>(op),
        (Scalar::I16, Scalar::I32) => located::<i16, i32>(op),
        (Scalar::F32, Scalar::F32) => located::<f32, f32>(op),
        (Scalar::F64, Scalar::F64) => located::<f64, f64>(op),
        #[cfg(target_arch = "x86_64")]
        (Scalar::F80, Scalar::I32) => x87::pair_kernel(op),
        _ => None,
    }
}

fn located<V: Copy + PartialOrd, I: Copy + PartialOrd>(op: Predefined) -> Option<Kernel> {
    match op {
        Predefined::Minloc => Some(minloc::<V, I>),
        Predefined::Maxloc => Some(maxloc::<V, I>),
        _ => None,
    }
}

/// # Safety
/// As [`Kernel`].
unsafe fn minloc<V: Copy + PartialOrd, I: Copy + PartialOrd>(a: *const u8, b: *const u8, out: *mut u8, count: usize) {
    // SAFETY: handed on.
    unsafe { zip::<Pair<V, I>>(a, b, out, count, |x, y| better(x, y, x.value < y.value)) }
}

/// # Safety
/// As [`Kernel`].
unsafe fn maxloc<V: Copy + PartialOrd, I: Copy + PartialOrd>(a: *const u8, b: *const u8, out: *mut u8, count: usize) {
    // SAFETY: handed on.
    unsafe { zip::<Pair<V, I>>(a, b, out, count, |x, y| better(x, y, x.value > y.value)) }
}

/// The left pair if its value wins or ties with a lower index.
#[inline(always)]
fn better<V: Copy + PartialOrd, I: Copy + PartialOrd>(x: Pair<V, I>, y: Pair<V, I>, wins: bool) -> Pair<V, I> {
    if wins || (x.value == y.value && x.index < y.index) { x } else { y }
}

//! Minimum and maximum with location (MPI 5.0, section 6.9.4): of equal values the lower index wins.

use super::predefined::PredefinedOperation;
#[cfg(target_arch = "x86_64")]
use super::x87;
use crate::datatype::Scalar;
use weft_collective::run::Kernel;

/// A value and its index, laid out as the C struct.
#[derive(Clone, Copy)]
#[repr(C)]
struct IndexedPair<V, I> {
    value: V,
    index: I,
}

/// The kernel for a pair type, or none when there is no such type.
pub(super) fn kernel(op: PredefinedOperation, value: Scalar, index: Scalar) -> Option<Kernel> {
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

fn located<V: Copy + PartialOrd, I: Copy + PartialOrd>(op: PredefinedOperation) -> Option<Kernel> {
    match op {
        PredefinedOperation::Minloc => Some(minloc::<V, I>),
        PredefinedOperation::Maxloc => Some(maxloc::<V, I>),
        _ => None,
    }
}

/// # Safety
/// As [`Kernel`].
unsafe fn minloc<V: Copy + PartialOrd, I: Copy + PartialOrd>(a: *const u8, b: *const u8, out: *mut u8, count: usize) {
    // SAFETY: handed on.
    unsafe { locate::<V, I>(a, b, out, count, |x, y| x < y) }
}

/// # Safety
/// As [`Kernel`].
unsafe fn maxloc<V: Copy + PartialOrd, I: Copy + PartialOrd>(a: *const u8, b: *const u8, out: *mut u8, count: usize) {
    // SAFETY: handed on.
    unsafe { locate::<V, I>(a, b, out, count, |x, y| x > y) }
}

/// The left pair where its value `wins`, or is equal and has the lower index. What lies between the value and the
/// index, or behind them, is not ours to write.
///
/// # Safety
/// As [`Kernel`].
#[inline(always)]
unsafe fn locate<V: Copy + PartialOrd, I: Copy + PartialOrd>(
    a: *const u8,
    b: *const u8,
    out: *mut u8,
    count: usize,
    wins: impl Fn(V, V) -> bool,
) {
    let (a, b, out) = (a.cast::<IndexedPair<V, I>>(), b.cast::<IndexedPair<V, I>>(), out.cast::<IndexedPair<V, I>>());
    for at in 0..count {
        // SAFETY: the caller's; fields are read and written wherever the program has put them.
        unsafe {
            let read = |from: *const IndexedPair<V, I>| {
                ((&raw const (*from).value).read_unaligned(), (&raw const (*from).index).read_unaligned())
            };
            let ((left, left_index), (right, right_index)) = (read(a.add(at)), read(b.add(at)));
            let is_left = wins(left, right) || (left == right && left_index < right_index);
            let (value, index) = if is_left { (left, left_index) } else { (right, right_index) };
            (&raw mut (*out.add(at)).value).write_unaligned(value);
            (&raw mut (*out.add(at)).index).write_unaligned(index);
        }
    }
}

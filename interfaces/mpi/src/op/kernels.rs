//! The loops: `out[i] = a[i] op b[i]` over unaligned memory, one instance per operation and representation, plain
//! enough for the compiler to vectorise.

use super::arithmetic::{Bits, Complex, Number, OrderedNumber};
use super::half::Half;
use super::predefined::PredefinedOperation;
#[cfg(target_arch = "x86_64")]
use super::x87;
use crate::datatype::Scalar;
use weft_collective::run::Kernel;

/// # Safety
/// As [`Kernel`].
#[inline(always)]
pub(super) unsafe fn zip<T: Copy>(a: *const u8, b: *const u8, out: *mut u8, count: usize, f: impl Fn(T, T) -> T) {
    let (a, b, out) = (a.cast::<T>(), b.cast::<T>(), out.cast::<T>());
    if std::ptr::eq(b, out) {
        for i in 0..count {
            // SAFETY: the caller's elements; the same pointer on both sides lets the compiler vectorise without a check
            // for overlap.
            unsafe { out.add(i).write_unaligned(f(a.add(i).read_unaligned(), out.add(i).read_unaligned())) };
        }
        return;
    }
    for i in 0..count {
        // SAFETY: the caller's elements.
        unsafe { out.add(i).write_unaligned(f(a.add(i).read_unaligned(), b.add(i).read_unaligned())) };
    }
}

macro_rules! kernels {
    ($bound:ident: $($name:ident = $f:expr;)*) => { $(
        /// # Safety
        /// As [`Kernel`].
        unsafe fn $name<T: $bound>(a: *const u8, b: *const u8, out: *mut u8, count: usize) {
            // SAFETY: handed on.
            unsafe { zip::<T>(a, b, out, count, $f) }
        }
    )* };
}

kernels! { Number: sum = T::sum; prod = T::prod; }
kernels! { OrderedNumber: min = T::min; max = T::max; }
kernels! { Bits:
    band = T::and;
    bor = T::or;
    bxor = T::xor;
    land = |x, y| T::from_truth(x.truth() & y.truth());
    lor = |x, y| T::from_truth(x.truth() | y.truth());
    lxor = |x, y| T::from_truth(x.truth() ^ y.truth());
}

/// The kernel of an operation on single numbers, or none when it is not defined for them.
pub(super) fn scalar(op: PredefinedOperation, scalar: Scalar) -> Option<Kernel> {
    match scalar {
        Scalar::I8 | Scalar::Char => integer::<i8>(op),
        Scalar::U8 => integer::<u8>(op),
        Scalar::I16 => integer::<i16>(op),
        Scalar::U16 => integer::<u16>(op),
        Scalar::I32 => integer::<i32>(op),
        Scalar::U32 => integer::<u32>(op),
        Scalar::I64 | Scalar::Long => integer::<i64>(op),
        Scalar::U64 | Scalar::Ulong => integer::<u64>(op),
        Scalar::F16 => number::<Half>(op).or_else(|| ordered::<Half>(op)),
        Scalar::F32 => number::<f32>(op).or_else(|| ordered::<f32>(op)),
        Scalar::F64 => number::<f64>(op).or_else(|| ordered::<f64>(op)),
        Scalar::C32 => number::<Complex<f32>>(op),
        Scalar::C64 => number::<Complex<f64>>(op),
        Scalar::Byte | Scalar::Bool | Scalar::Logical1 => bits::<u8>(op),
        Scalar::Logical2 => bits::<u16>(op),
        Scalar::Logical4 => bits::<u32>(op),
        Scalar::Logical8 => bits::<u64>(op),
        #[cfg(target_arch = "x86_64")]
        Scalar::F80 => x87::kernel(op),
        #[cfg(target_arch = "x86_64")]
        Scalar::C80 => x87::complex_kernel(op),
        _ => None,
    }
}

fn integer<T: Number + OrderedNumber + Bits>(op: PredefinedOperation) -> Option<Kernel> {
    number::<T>(op).or_else(|| ordered::<T>(op)).or_else(|| bits::<T>(op))
}

fn number<T: Number>(op: PredefinedOperation) -> Option<Kernel> {
    match op {
        PredefinedOperation::Sum => Some(sum::<T>),
        PredefinedOperation::Prod => Some(prod::<T>),
        _ => None,
    }
}

fn ordered<T: OrderedNumber>(op: PredefinedOperation) -> Option<Kernel> {
    match op {
        PredefinedOperation::Min => Some(min::<T>),
        PredefinedOperation::Max => Some(max::<T>),
        _ => None,
    }
}

fn bits<T: Bits>(op: PredefinedOperation) -> Option<Kernel> {
    match op {
        PredefinedOperation::Band => Some(band::<T>),
        PredefinedOperation::Bor => Some(bor::<T>),
        PredefinedOperation::Bxor => Some(bxor::<T>),
        PredefinedOperation::Land => Some(land::<T>),
        PredefinedOperation::Lor => Some(lor::<T>),
        PredefinedOperation::Lxor => Some(lxor::<T>),
        _ => None,
    }
}

/// The size in memory of a predefined element with its padding.
fn stride_of(scalars: &[Scalar]) -> usize {
    let align = scalars.iter().map(|scalar| scalar.align()).max().unwrap_or(1);
    let end = scalars.iter().fold(0, |end: i64, scalar| up(end, scalar.align()) + scalar.size());
    up(end, align) as usize
}

fn up(value: i64, align: i64) -> i64 {
    (value + align - 1) / align * align
}

/// The result is the left operand.
pub(super) fn replace(scalars: &[Scalar]) -> Kernel {
    match stride_of(scalars) {
        1 => left::<1>,
        2 => left::<2>,
        4 => left::<4>,
        8 => left::<8>,
        16 => left::<16>,
        _ => left::<32>,
    }
}

/// The result is the right operand.
pub(super) fn keep(scalars: &[Scalar]) -> Kernel {
    match stride_of(scalars) {
        1 => right::<1>,
        2 => right::<2>,
        4 => right::<4>,
        8 => right::<8>,
        16 => right::<16>,
        _ => right::<32>,
    }
}

/// # Safety
/// As [`Kernel`].
unsafe fn left<const SIZE: usize>(a: *const u8, _: *const u8, out: *mut u8, count: usize) {
    // SAFETY: the caller's elements of SIZE bytes; `copy` allows the two to be the same.
    unsafe { std::ptr::copy(a, out, count * SIZE) };
}

/// # Safety
/// As [`Kernel`].
unsafe fn right<const SIZE: usize>(_: *const u8, b: *const u8, out: *mut u8, count: usize) {
    if !std::ptr::eq(b, out) {
        // SAFETY: as in `left`.
        unsafe { std::ptr::copy(b, out, count * SIZE) };
    }
}

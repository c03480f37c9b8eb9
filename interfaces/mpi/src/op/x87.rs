//! `long double` of x86-64: 80-bit floats in 16 bytes. Rust has no such type, so each operation is a few x87
//! instructions.
//!
//! SAFETY invariant X87: every block pushes as much as it pops, touches only the bytes that its pointers name (10 of 16
//! per number), and declares all eight stack registers as overwritten.

use std::arch::asm;

use super::predefined::PredefinedOperation;
use weft_collective::run::Kernel;

/// Bytes from one number to the next, and from one pair (value, int, padding) to the next.
const NUMBER: usize = 16;
const PAIR: usize = 32;

/// `out = a <op> b` for one instruction that pops.
macro_rules! binary {
    ($name:ident, $instruction:literal) => {
        /// # Safety
        /// `a` and `b` are readable and `out` is writable for one number.
        unsafe fn $name(a: *const u8, b: *const u8, out: *mut u8) {
            // SAFETY: X87.
            unsafe {
                asm!(
                    "fld tbyte ptr [{a}]",
                    "fld tbyte ptr [{b}]",
                    $instruction,
                    "fstp tbyte ptr [{out}]",
                    a = in(reg) a, b = in(reg) b, out = in(reg) out,
                    out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                    out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                    options(nostack),
                );
            }
        }
    };
}

binary!(add, "faddp st(1), st");
binary!(subtract, "fsubp st(1), st");
binary!(multiply, "fmulp st(1), st");

/// How two numbers compare.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compared {
    Less,
    Equal,
    Greater,
    Unordered,
}

/// # Safety
/// `a` and `b` are readable for one number.
unsafe fn compare(a: *const u8, b: *const u8) -> Compared {
    let (above, equal, unordered): (u8, u8, u8);
    // SAFETY: X87; `fucomip` pops one number and sets the flags, `fstp` pops the other.
    unsafe {
        asm!(
            "fld tbyte ptr [{b}]",
            "fld tbyte ptr [{a}]",
            "fucomip st, st(1)",
            "seta {above}",
            "sete {equal}",
            "setp {unordered}",
            "fstp st(0)",
            a = in(reg) a, b = in(reg) b,
            above = out(reg_byte) above, equal = out(reg_byte) equal, unordered = out(reg_byte) unordered,
            out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
            out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
            options(nostack, readonly),
        );
    }
    match (unordered, equal, above) {
        (1, ..) => Compared::Unordered,
        (_, 1, _) => Compared::Equal,
        (_, _, 1) => Compared::Greater,
        _ => Compared::Less,
    }
}

/// Copies the left element if it is wanted, else the right one.
///
/// # Safety
/// All are valid for `len` bytes; the result may be one of the operands.
unsafe fn choose(left: bool, a: *const u8, b: *const u8, out: *mut u8, len: usize) {
    // SAFETY: the caller's elements; `copy` allows source and target to be the same.
    unsafe { std::ptr::copy(if left { a } else { b }, out, len) };
}

/// # Safety
/// As [`Kernel`].
#[inline(always)]
unsafe fn each(
    a: *const u8,
    b: *const u8,
    out: *mut u8,
    bytes: usize,
    step: usize,
    f: impl Fn(*const u8, *const u8, *mut u8),
) {
    for at in (0..bytes).step_by(step) {
        f(a.wrapping_add(at), b.wrapping_add(at), out.wrapping_add(at));
    }
}

macro_rules! kernels {
    ($($name:ident, $step:expr, $f:expr;)*) => { $(
        /// # Safety
        /// As [`Kernel`].
        unsafe fn $name(a: *const u8, b: *const u8, out: *mut u8, count: usize) {
            // SAFETY: the caller's elements, one at a time.
            unsafe {
                each(a, b, out, count * $step, $step, $f);
            }
        }
    )* };
}

kernels! {
    sum, NUMBER, |a, b, out| add(a, b, out);
    prod, NUMBER, |a, b, out| multiply(a, b, out);
    min, NUMBER, |a, b, out| choose(compare(a, b) == Compared::Less, a, b, out, NUMBER);
    max, NUMBER, |a, b, out| choose(compare(a, b) == Compared::Greater, a, b, out, NUMBER);
    complex_prod, 2 * NUMBER, |a, b, out| complex_multiply(a, b, out);
    minloc, PAIR, |a, b, out| locate(Compared::Less, a, b, out);
    maxloc, PAIR, |a, b, out| locate(Compared::Greater, a, b, out);
}

/// Both parts of a complex number are numbers of their own.
///
/// # Safety
/// As [`Kernel`].
unsafe fn complex_sum(a: *const u8, b: *const u8, out: *mut u8, count: usize) {
    // SAFETY: a complex element is two numbers side by side.
    unsafe { sum(a, b, out, 2 * count) }
}

/// # Safety
/// All are valid for one complex number; the result may be one of the operands.
unsafe fn complex_multiply(a: *const u8, b: *const u8, out: *mut u8) {
    let mut parts = [[0u8; NUMBER]; 4];
    let [p, q, r, s] = &mut parts;
    let (a_im, b_im, out_im) = (a.wrapping_add(NUMBER), b.wrapping_add(NUMBER), out.wrapping_add(NUMBER));
    // SAFETY: the products go to local memory first, so that the result may be an operand.
    unsafe {
        multiply(a, b, p.as_mut_ptr());
        multiply(a_im, b_im, q.as_mut_ptr());
        multiply(a, b_im, r.as_mut_ptr());
        multiply(a_im, b, s.as_mut_ptr());
        subtract(p.as_ptr(), q.as_ptr(), out);
        add(r.as_ptr(), s.as_ptr(), out_im);
    }
}

/// # Safety
/// All are valid for one pair of a number and an int behind it.
unsafe fn locate(wins: Compared, a: *const u8, b: *const u8, out: *mut u8) {
    // SAFETY: the int stands right behind the number.
    unsafe {
        let index = |pair: *const u8| pair.add(NUMBER).cast::<i32>().read_unaligned();
        let compared = compare(a, b);
        let left = compared == wins || (compared == Compared::Equal && index(a) < index(b));
        choose(left, a, b, out, NUMBER + size_of::<i32>());
    }
}

/// The kernel for one number.
pub(super) fn kernel(op: PredefinedOperation) -> Option<Kernel> {
    match op {
        PredefinedOperation::Sum => Some(sum),
        PredefinedOperation::Prod => Some(prod),
        PredefinedOperation::Min => Some(min),
        PredefinedOperation::Max => Some(max),
        _ => None,
    }
}

/// The kernel for two numbers that are one complex.
pub(super) fn complex_kernel(op: PredefinedOperation) -> Option<Kernel> {
    match op {
        PredefinedOperation::Sum => Some(complex_sum),
        PredefinedOperation::Prod => Some(complex_prod),
        _ => None,
    }
}

/// The kernel for a number and an int.
pub(super) fn pair_kernel(op: PredefinedOperation) -> Option<Kernel> {
    match op {
        PredefinedOperation::Minloc => Some(minloc),
        PredefinedOperation::Maxloc => Some(maxloc),
        _ => None,
    }
}

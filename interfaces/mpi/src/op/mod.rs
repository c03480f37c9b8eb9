//! Reduction operations: the predefined ones and those of the program (MPI 5.0, section 6.9).
//!
//! Reductions work on raw memory without alignment, element by element, so that they can run on buffers of the program and on
//! shared memory alike. Not here: communication, handles, which rank's data stands left or right.
//!
//! Tests: every allowed combination against plain formulas (`tests`).

pub mod abi;
mod arithmetic;
mod half;
mod kernels;
mod pairs;
mod predefined;
#[cfg(target_arch = "x86_64")]
mod x87;

#[cfg(test)]
mod tests;

use std::ffi::c_void;

pub use kernels::Kernel;
pub use predefined::Predefined;

use crate::datatype::Datatype;
use crate::error::{Class, Error, Result};

/// A user function of the form with C `int` lengths: input, input and output, length, handle of the datatype.
pub type UserFn = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut i32, *mut usize);

/// A user function of the large form.
pub type UserFnLarge = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut i64, *mut usize);

/// The program's function.
#[derive(Clone, Copy, Debug)]
pub enum Function {
    Int(UserFn),
    Large(UserFnLarge),
}

/// A reduction operation.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    Predefined(Predefined),
    User { function: Function, commute: bool },
}

/// The elements of a reduction.
#[derive(Clone, Copy, Debug)]
pub struct Elements<'a> {
    pub count: i64,
    pub datatype: &'a Datatype,
    /// The value of the datatype's handle, which a user function receives.
    pub handle: usize,
}

impl Op {
    /// Whether the order of operands may be changed.
    pub fn is_commutative(&self) -> bool {
        match self {
            Self::Predefined(op) => !matches!(op, Predefined::Replace | Predefined::NoOp),
            Self::User { commute, .. } => *commute,
        }
    }

    /// Refuses a predefined operation on a type that it is not defined for. User operations take every type.
    #[inline]
    pub fn check(&self, datatype: &Datatype) -> Result<()> {
        match self {
            Self::Predefined(op) => op.check(datatype),
            Self::User { .. } => Ok(()),
        }
    }

    /// `inout = input op inout`, element by element.
    ///
    /// # Safety
    /// Both buffers are valid for the elements, `inout` also for writing; they do not overlap, or are the same.
    pub unsafe fn reduce(&self, input: *const u8, inout: *mut u8, elements: Elements<'_>) -> Result<()> {
        match self {
            Self::Predefined(op) => {
                let kernel = op.kernel(elements.datatype)?;
                // SAFETY: the caller's promise; the kernel was chosen for this type.
                unsafe { kernel(input, inout, inout, elements.count.max(0) as usize) };
                Ok(())
            }
            // SAFETY: the caller's promise.
            Self::User { function, .. } => unsafe { function.call(input, inout, elements) },
        }
    }

    /// `out = a op b`, element by element; saves copying one operand first.
    ///
    /// # Safety
    /// All buffers are valid for the elements, `out` for writing; `out` may be `a` or `b` but not overlap them otherwise.
    pub unsafe fn reduce_into(&self, a: *const u8, b: *const u8, out: *mut u8, elements: Elements<'_>) -> Result<()> {
        match self {
            Self::Predefined(op) => {
                let kernel = op.kernel(elements.datatype)?;
                // SAFETY: the caller's promise; the kernel was chosen for this type.
                unsafe { kernel(a, b, out, elements.count.max(0) as usize) };
                Ok(())
            }
            // SAFETY: the caller's promise.
            Self::User { function, .. } => unsafe { user_into(*function, a, b, out, elements) },
        }
    }
}

/// `out = a op b` with a function that only knows `inout = in op inout`.
///
/// # Safety
/// As [`Op::reduce_into`].
unsafe fn user_into(
    function: Function,
    a: *const u8,
    b: *const u8,
    out: *mut u8,
    elements: Elements<'_>,
) -> Result<()> {
    let Elements { count, datatype, .. } = elements;
    let aliased = std::ptr::eq(a, out) && !std::ptr::eq(b, out);
    let size = datatype.packed_size(count).filter(|&size| size <= isize::MAX as u64);
    let size =
        size.ok_or_else(|| Error::new(Class::Count, format!("{count} elements of {datatype:?} are too many bytes")))?;
    // SAFETY: the caller's promise; the copies keep to the data of the elements, gaps stay as they are.
    unsafe {
        if !aliased {
            if !std::ptr::eq(b, out) {
                copy(b, out, elements, size as usize);
            }
            return function.call(a, out, elements);
        }
        // The left operand stands where the result goes: keep it aside in a buffer of the same shape.
        let span = Span::of(elements)?;
        let mut aside = vec![0u8; span.len];
        let left = aside.as_mut_ptr().wrapping_offset(span.lowest.wrapping_neg() as isize);
        copy(a, left, elements, size as usize);
        copy(b, out, elements, size as usize);
        function.call(left, out, elements)
    }
}

/// The bytes that elements touch, relative to the buffer's address.
struct Span {
    lowest: i64,
    len: usize,
}

impl Span {
    fn of(elements: Elements<'_>) -> Result<Self> {
        let Elements { count, datatype, .. } = elements;
        let wide = || {
            let last = i128::from(datatype.extent()) * i128::from((count - 1).max(0));
            let lowest = i128::from(datatype.true_lower_bound()) + last.min(0);
            (lowest, last.abs() + i128::from(datatype.true_extent()))
        };
        let (lowest, len) = wide();
        match (i64::try_from(lowest), isize::try_from(len)) {
            (Ok(lowest), Ok(len)) => Ok(Self { lowest, len: len as usize }),
            _ => Err(Error::new(Class::Count, format!("{count} elements of {datatype:?} span more than 2^63-1 bytes"))),
        }
    }
}

/// Copies the data of the elements between two buffers of their shape.
///
/// # Safety
/// Both buffers are valid for the elements and do not overlap.
unsafe fn copy(from: *const u8, to: *mut u8, elements: Elements<'_>, size: usize) {
    const PIECE: usize = 4096;
    let Elements { count, datatype, .. } = elements;
    // SAFETY: the caller's promise; the piece buffer is as long as what is moved through it.
    unsafe {
        if let Some((disp, len)) = datatype.contiguous_span(count) {
            let (from, to) = (from.wrapping_offset(disp as isize), to.wrapping_offset(disp as isize));
            std::ptr::copy_nonoverlapping(from, to, len as usize);
            return;
        }
        let mut piece = [0u8; PIECE];
        for done in (0..size).step_by(PIECE) {
            let len = datatype.pack(from, count, done as u64, &mut piece);
            datatype.unpack(to, count, done as u64, &piece[..len]);
        }
    }
}

impl Function {
    /// Calls the program's function, in pieces if its length argument is too narrow.
    ///
    /// # Safety
    /// As [`Op::reduce`].
    unsafe fn call(self, input: *const u8, inout: *mut u8, elements: Elements<'_>) -> Result<()> {
        let Elements { count, datatype, handle } = elements;
        let mut handle = crate::program::handle(crate::handle::Kind::Datatype, handle);
        let mut done = 0;
        while done < count {
            let offset = done.wrapping_mul(datatype.extent()) as isize;
            let (left, right) = (input.wrapping_offset(offset).cast_mut().cast(), inout.wrapping_offset(offset).cast());
            let mut large = match self {
                Self::Int(_) => (count - done).min(i64::from(i32::MAX)),
                Self::Large(_) => count - done,
            };
            let step = large;
            let mut int = large as i32;
            // SAFETY: the program vouches for its function; the buffers hold the elements from `done` on.
            unsafe {
                match self {
                    Self::Int(function) => function(left, right, &mut int, &mut handle),
                    Self::Large(function) => function(left, right, &mut large, &mut handle),
                }
            }
            done += step;
        }
        Ok(())
    }
}

//! Reduction operations: the predefined ones and those of the program (MPI 5.0, section 6.9).
//!
//! Reductions work on raw memory without alignment, element by element, so that they can run on buffers of the program
//! and on shared memory alike. Not here: communication, handles, which rank's data stands left or right.
//!
//! Tests: every allowed combination against plain formulas (`tests`).

pub mod abi;
mod arithmetic;
mod defined;
mod half;
mod kernels;
mod pairs;
mod predefined;
#[cfg(target_arch = "x86_64")]
mod x87;

#[cfg(test)]
mod tests;

use std::ffi::c_void;

pub use predefined::PredefinedOperation;
pub use weft_collective::run::Kernel;

use crate::datatype::Datatype;
use crate::error::Result;

/// A user function of the form with C `int` lengths: input, input and output, length, handle of the datatype.
pub type UserFn = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut i32, *mut usize);

/// A user function of the large form.
pub type UserFnLarge = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut i64, *mut usize);

/// The program's function.
#[derive(Clone, Copy, Debug)]
pub enum UserFunction {
    Int(UserFn),
    Large(UserFnLarge),
}

/// A reduction operation.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    Predefined(PredefinedOperation),
    User { function: UserFunction, commute: bool },
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
            Self::Predefined(op) => !matches!(op, PredefinedOperation::Replace | PredefinedOperation::NoOp),
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
}

impl UserFunction {
    /// Calls the program's function, in pieces if its length argument is too narrow.
    ///
    /// # Safety
    /// As [`Op::reduce`].
    unsafe fn call(self, input: *const u8, inout: *mut u8, elements: Elements<'_>) -> Result<()> {
        let Elements { count, datatype, handle } = elements;
        let mut handle = crate::program::handle(crate::handle::HandleKind::Datatype, handle);
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

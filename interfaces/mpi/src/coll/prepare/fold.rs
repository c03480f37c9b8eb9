//! How an operation folds elements of a datatype.

use crate::datatype::Datatype;
use crate::error::{Class, Error, Result};
use crate::op::{Elements, Op, PredefinedOperation};
use std::sync::Arc;
use weft_collective::run::{Combine, Folding};

/// The folding of `op` over `datatype`, and whether the order of ranks may be changed. `handle` is the datatype's,
/// which a user's function is given.
///
/// # Errors
/// An operation that is not defined for the type, or not for collectives.
pub fn folding(op: &Op, datatype: &Datatype, handle: usize) -> Result<(Folding, bool)> {
    op.check(datatype)?;
    if let Op::Predefined(predefined @ (PredefinedOperation::Replace | PredefinedOperation::NoOp)) = op {
        let detail = format!("op MPI_{} is for one-sided accumulation only", predefined.name());
        return Err(Error::new(Class::Op, detail));
    }
    if let Op::Predefined(predefined) = op {
        let folding = Folding { combine: Combine::Kernel(predefined.kernel(datatype)?), foreign: false };
        return Ok((folding, op.is_commutative()));
    }
    let (op, datatype) = (*op, datatype.clone());
    let commutative = op.is_commutative();
    let combine = move |left: *const u8, into: *mut u8, count: u64| {
        let elements = Elements { count: count as i64, datatype: &datatype, handle };
        // SAFETY: a run folds views of this datatype that do not overlap.
        let outcome = unsafe { op.reduce(left, into, elements) };
        debug_assert!(outcome.is_ok(), "the operation was checked for the type");
    };
    Ok((Folding { combine: Combine::Function(Arc::new(combine)), foreign: true }, commutative))
}

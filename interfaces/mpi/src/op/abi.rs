//! Bodies of the functions on reduction operations.

use super::{Elements, Op, PredefinedOperation, UserFunction};
use crate::abi::{CountCallback, Described, IN_PLACE, OP_NULL};
use crate::error::{Class, Error, Result};
use crate::handle::HandleTable;
use crate::world::WORLD;
use std::ffi::c_void;

/// Puts the predefined operations in their places.
pub(crate) fn define_predefined(ops: &mut HandleTable<Op>) {
    for op in PredefinedOperation::ALL {
        ops.define(op as usize, Op::Predefined(op));
    }
}

pub unsafe fn create(function: CountCallback, commute: i32) -> Result<usize> {
    if function.at == 0 {
        return Err(Error::new(Class::Arg, "user_fn is a null pointer"));
    }
    // SAFETY: the program says that this is a function of this type (MPI 5.0, section 6.9.5).
    let function = unsafe {
        if function.wide {
            UserFunction::Large(std::mem::transmute::<usize, super::UserFnLarge>(function.at))
        } else {
            UserFunction::Int(std::mem::transmute::<usize, super::UserFn>(function.at))
        }
    };
    let handle = WORLD.enter().ops.insert(Op::User { function, commute: commute != 0 });
    Ok(handle)
}

pub unsafe fn free(op: *mut usize) -> Result<()> {
    // SAFETY: the program's handle.
    unsafe {
        WORLD.enter().ops.remove(*op)?;
        *op = OP_NULL;
    }
    Ok(())
}

pub fn commutative(op: usize) -> Result<i32> {
    Ok(WORLD.enter().ops.get(op)?.is_commutative() as i32)
}

/// May run a function of the program: nothing is held while it does.
fn check_two_buffers(input: *const c_void, inout: *const c_void, count: i64) -> Result<()> {
    let refused = |detail: &str| Err(Error::new(Class::Buffer, detail));
    if input as usize == IN_PLACE || inout as usize == IN_PLACE {
        return refused("MPI_IN_PLACE is no buffer here; inbuf and inoutbuf must be two arrays");
    }
    if count > 0 && input == inout {
        return refused("inbuf and inoutbuf are the same array; they must be two");
    }
    Ok(())
}

pub unsafe fn reduce_local(input: *const c_void, what: Described, op: usize) -> Result<()> {
    let Described { buffer: inout, count, datatype } = what;
    if count < 0 {
        return Err(Error::new(Class::Count, format!("count {count} is negative")));
    }
    check_two_buffers(input, inout, count)?;
    let (op, kind) = {
        let world = WORLD.enter();
        (*world.ops.get(op)?, world.types.get(datatype)?.clone())
    };
    kind.check_communication()?;
    op.check(&kind)?;
    let elements = Elements { count, datatype: &kind, handle: datatype };
    // SAFETY: the program's buffers of count elements, which do not overlap.
    unsafe { op.reduce(input.cast(), inout.cast_mut().cast(), elements) }
}

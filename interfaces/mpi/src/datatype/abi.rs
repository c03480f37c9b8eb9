//! Bodies of the datatype functions: questions, life and addresses. Constructors and packing stand beside.

mod construct;
mod decode;
mod pack;

pub use construct::*;
pub use decode::*;
pub use pack::*;

use super::{Combiner, Datatype};
use crate::abi::DATATYPE_NULL;
use crate::error::{Class, Error, Result};
use crate::handle::HandleTable;
use crate::world::{WORLD, World};
use std::ffi::c_void;

/// Puts the predefined types in their places.
pub(crate) fn define_predefined(types: &mut HandleTable<Datatype>) {
    for datatype in Datatype::all_predefined() {
        let code = datatype.code().expect("predefined types have codes");
        types.define(usize::from(code), datatype.clone());
    }
}

fn of(handle: usize) -> Result<Datatype> {
    WORLD.enter().types.get(handle).cloned()
}

/// What the type with this handle answers. Programs ask for sizes element by element, so the type is not counted for
/// it.
#[inline]
fn ask<R>(handle: usize, question: impl FnOnce(&Datatype) -> R) -> Result<R> {
    match Datatype::predefined(handle) {
        Some(datatype) => Ok(question(datatype)),
        None => WORLD.enter().types.get(handle).map(question),
    }
}

/// A handle for a type that may be known already: predefined ones, and those of Fortran that are always the same.
fn known_handle(world: &mut World, datatype: &Datatype) -> usize {
    if let Some(code) = datatype.code() {
        return usize::from(code);
    }
    let known = world.types.iter().find(|(_, other)| other.same(datatype)).map(|(handle, _)| handle);
    known.unwrap_or_else(|| world.types.insert(datatype.clone()))
}

pub fn size(datatype: usize) -> Result<i64> {
    ask(datatype, Datatype::size)
}

/// Lower bound and extent.
pub fn get_extent(datatype: usize) -> Result<(i64, i64)> {
    ask(datatype, |datatype| (datatype.lower_bound(), datatype.extent()))
}

pub fn get_true_extent(datatype: usize) -> Result<(i64, i64)> {
    ask(datatype, |datatype| (datatype.true_lower_bound(), datatype.true_extent()))
}

pub unsafe fn commit(datatype: *mut usize) -> Result<()> {
    // SAFETY: the program's handle.
    ask(unsafe { *datatype }, Datatype::commit)
}

/// A copy has the attributes that their copy functions let through.
pub unsafe fn dup(datatype: usize, out: *mut usize) -> Result<()> {
    let (copy, attributes) = {
        let mut world = WORLD.enter();
        let copy = world.types.named("oldtype", datatype)?.dup();
        (copy, world.labels_of_type(datatype)?.attributes.clone())
    };
    // SAFETY: the program's place for the handle.
    let attributes = attributes.copy(datatype).inspect_err(|_| unsafe { *out = DATATYPE_NULL })?;
    let mut world = WORLD.enter();
    let handle = world.types.insert(copy);
    if attributes.last().is_some() {
        world.labels_of_type(handle)?.attributes = attributes;
    }
    // SAFETY: the program's place for the handle.
    unsafe { *out = handle };
    Ok(())
}

/// Runs the delete functions of the attributes, the last one set first, then forgets the handle; what is under way with
/// the type goes on.
pub unsafe fn free(datatype: *mut usize) -> Result<()> {
    // SAFETY: the program's handle.
    let handle = unsafe { *datatype };
    let kind = of(handle)?;
    let fortran = matches!(kind.combiner(), Combiner::F90Real | Combiner::F90Complex | Combiner::F90Integer);
    if fortran || kind.code().is_some() {
        return Err(Error::new(
            Class::Type,
            format!("datatype ({handle:#x}, {kind:?}) is predefined and cannot be freed"),
        ));
    }
    loop {
        let last = WORLD.enter().labels_of_type(handle)?.attributes.last();
        let Some(attribute) = last else { break };
        attribute.delete(handle)?;
        WORLD.enter().labels_of_type(handle)?.attributes.forget(&attribute);
    }
    let mut world = WORLD.enter();
    world.types.remove(handle)?;
    world.drop_labels_of_type(handle);
    // SAFETY: as above.
    unsafe { *datatype = DATATYPE_NULL };
    Ok(())
}

pub fn get_address(location: *const c_void) -> Result<isize> {
    Ok(location as isize)
}

pub unsafe fn aint_add(base: isize, displacement: isize) -> isize {
    base.wrapping_add(displacement)
}

pub unsafe fn aint_diff(first: isize, second: isize) -> isize {
    first.wrapping_sub(second)
}

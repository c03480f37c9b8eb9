//! Bodies of the functions that make datatypes.

use super::{known_handle, of};
use crate::abi::{Counts, DATATYPE_NULL, slice_of};
use crate::datatype::{ArrayOrder, ConstructorForm, Datatype, Distribution, TypeClass};
use crate::error::{Class, Error, Result};
use crate::world::WORLD;

fn width(wide: bool) -> ConstructorForm {
    if wide { ConstructorForm::Count } else { ConstructorForm::Int }
}

/// The numbers of an array of the program's.
unsafe fn numbers(counts: Counts, length: i64, what: &str) -> Result<Vec<i64>> {
    if length < 0 {
        return Err(Error::new(Class::Count, format!("{what} {length} is negative")));
    }
    if length > 0 && counts.is_null() {
        return Err(Error::new(Class::Arg, format!("an array of {length} numbers is a null pointer")));
    }
    // SAFETY: the program's array has that many numbers.
    Ok((0..length as usize).map(|place| unsafe { counts.get(place) }).collect())
}

unsafe fn ints(at: *const i32, length: i32) -> Result<Vec<i64>> {
    // SAFETY: as the caller says.
    Ok(unsafe { slice_of(at, length, "ndims")? }.iter().map(|&number| i64::from(number)).collect())
}

/// The type that another one is made of, by the name of the argument.
fn made_of(argument: &'static str, handle: usize) -> Result<Datatype> {
    WORLD.enter().types.named(argument, handle).cloned()
}

fn insert(datatype: Datatype) -> Result<usize> {
    Ok(WORLD.enter().types.insert(datatype))
}

pub fn contiguous(count: i64, old: usize, wide: bool) -> Result<usize> {
    insert(Datatype::contiguous(count, &made_of("oldtype", old)?, width(wide))?)
}

pub fn vector(count: i64, length: i64, stride: i64, old: usize, wide: bool) -> Result<usize> {
    insert(Datatype::vector(count, length, stride, &made_of("oldtype", old)?, width(wide))?)
}

pub fn create_hvector(count: i64, length: i64, stride: i64, old: usize, wide: bool) -> Result<usize> {
    insert(Datatype::hvector(count, length, stride, &made_of("oldtype", old)?, width(wide))?)
}

/// Blocks at displacements in elements, or in bytes: each with its length, or all of one length.
macro_rules! indexed {
    ($($several:ident, $alike:ident: $of_several:ident, $of_alike:ident;)*) => {$(
        pub unsafe fn $several(
            count: i64,
            lengths: Counts,
            displacements: Counts,
            old: usize,
            wide: bool,
        ) -> Result<usize> {
            // SAFETY: the program's arrays of count numbers.
            unsafe {
                let lengths = numbers(lengths, count, "count")?;
                let displacements = numbers(displacements, count, "count")?;
                insert(Datatype::$of_several(&lengths, &displacements, &made_of("oldtype", old)?, width(wide))?)
            }
        }

        pub unsafe fn $alike(
            count: i64,
            length: i64,
            displacements: Counts,
            old: usize,
            wide: bool,
        ) -> Result<usize> {
            // SAFETY: the program's array of count numbers.
            unsafe {
                let displacements = numbers(displacements, count, "count")?;
                insert(Datatype::$of_alike(length, &displacements, &made_of("oldtype", old)?, width(wide))?)
            }
        }
    )*};
}

indexed! {
    indexed, create_indexed_block: indexed, indexed_block;
    create_hindexed, create_hindexed_block: hindexed, hindexed_block;
}

pub unsafe fn create_struct(
    count: i64,
    lengths: Counts,
    displacements: Counts,
    types: *const usize,
    wide: bool,
) -> Result<usize> {
    // SAFETY: the program's arrays of count elements.
    unsafe {
        let (lengths, displacements) = (numbers(lengths, count, "count")?, numbers(displacements, count, "count")?);
        let types = (0..count as usize)
            .map(|place| made_of("array_of_types", *types.add(place)))
            .collect::<Result<Vec<_>>>()?;
        insert(Datatype::structure(&lengths, &displacements, &types, width(wide))?)
    }
}

pub fn create_resized(old: usize, lb: i64, extent: i64, wide: bool) -> Result<usize> {
    insert(Datatype::resized(&made_of("oldtype", old)?, lb, extent, width(wide))?)
}

pub unsafe fn create_subarray(
    ndims: i32,
    sizes: Counts,
    subsizes: Counts,
    starts: Counts,
    order: i32,
    old: usize,
    wide: bool,
) -> Result<usize> {
    let (n, order) = (i64::from(ndims), ArrayOrder::from_code(i64::from(order))?);
    // SAFETY: the program's arrays of ndims numbers.
    unsafe {
        let (sizes, subsizes) = (numbers(sizes, n, "ndims")?, numbers(subsizes, n, "ndims")?);
        let starts = numbers(starts, n, "ndims")?;
        insert(Datatype::subarray(&sizes, &subsizes, &starts, order, &made_of("oldtype", old)?, width(wide))?)
    }
}

#[expect(clippy::too_many_arguments, reason = "these are the arguments that the standard gives it")]
pub unsafe fn create_darray(
    size: i32,
    rank: i32,
    ndims: i32,
    sizes: Counts,
    distributions: *const i32,
    arguments: *const i32,
    grid: *const i32,
    order: i32,
    old: usize,
    wide: bool,
) -> Result<usize> {
    let (size, rank, order) = (i64::from(size), i64::from(rank), ArrayOrder::from_code(i64::from(order))?);
    // SAFETY: the program's arrays of ndims numbers.
    unsafe {
        let sizes = numbers(sizes, i64::from(ndims), "ndims")?;
        let distributions = ints(distributions, ndims)?.into_iter().map(Distribution::from_code);
        let distributions = distributions.collect::<Result<Vec<_>>>()?;
        let (arguments, grid) = (ints(arguments, ndims)?, ints(grid, ndims)?);
        let old = made_of("oldtype", old)?;
        let made = Datatype::darray(size, rank, &sizes, &distributions, &arguments, &grid, order, &old, width(wide))?;
        insert(made)
    }
}

/// The handle of a type that always has the same.
fn known(datatype: &Datatype) -> Result<usize> {
    Ok(known_handle(&mut WORLD.enter(), datatype))
}

pub fn create_f90_real(precision: i32, range: i32) -> Result<usize> {
    known(&Datatype::f90_real(i64::from(precision), i64::from(range))?)
}

pub fn create_f90_complex(precision: i32, range: i32) -> Result<usize> {
    known(&Datatype::f90_complex(i64::from(precision), i64::from(range))?)
}

pub fn create_f90_integer(range: i32) -> Result<usize> {
    known(&Datatype::f90_integer(i64::from(range))?)
}

pub fn match_size(class: i32, size: i32) -> Result<usize> {
    let class = TypeClass::from_code(i64::from(class))?;
    known(Datatype::match_size(class, i64::from(size))?)
}

/// A pair that is not predefined has no type.
pub fn get_value_index(value: usize, index: usize) -> Result<usize> {
    match Datatype::value_index(&of(value)?, &of(index)?) {
        Some(pair) => known(&pair),
        None => Ok(DATATYPE_NULL),
    }
}

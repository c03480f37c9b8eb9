//! What no rule of the generator fits.

use crate::{number, values};
use std::ffi::c_void;
use std::sync::atomic::{AtomicI32, Ordering};
use weft_mpi::abi as ours;
use weft_mpi::datatype::abi::get_extent as bounds;
use weft_mpi::error::Result;

/// This is not the standard ABI, and says so, by which programs that can use either tell the two apart.
pub fn abi_get_version() -> Result<(i32, i32)> {
    Ok((-1, -1))
}

/// Places for values of predefined attributes that mean something else here; `MPI_Comm_get_attr` gives out addresses.
static VALUES: [AtomicI32; 7] = [const { AtomicI32::new(0) }; 7];

/// Replaces the address of a predefined attribute's value. The key is ours.
///
/// # Safety
/// The call has stored the address, if it set the flag.
pub unsafe fn attribute(keyval: i32, value: *mut c_void, flag: *mut i32) {
    let (place, change): (usize, fn(i32) -> i32) = match keyval {
        ours::IO => (0, number::rank_theirs),
        ours::HOST => (1, number::rank_theirs),
        ours::LASTUSEDCODE => (2, number::code_theirs),
        ours::WIN_CREATE_FLAVOR => (3, |flavor| values::flavor_theirs(flavor).unwrap_or(flavor)),
        ours::WIN_MODEL => (4, |model| values::model_theirs(model).unwrap_or(model)),
        _ => return,
    };
    // SAFETY: as the caller says; these attributes are addresses of integers.
    unsafe {
        if flag.is_null() || *flag == 0 {
            return;
        }
        let value = value.cast::<*const i32>();
        let changed = change(**value);
        *value = stored(place, changed);
    }
}

/// An address that holds this value for ever. Windows differ in theirs, so each of their values has a place.
fn stored(place: usize, value: i32) -> *const i32 {
    static SMALL: [AtomicI32; 5] =
        [AtomicI32::new(0), AtomicI32::new(1), AtomicI32::new(2), AtomicI32::new(3), AtomicI32::new(4)];
    if place >= 3
        && let Some(small) = usize::try_from(value).ok().and_then(|value| SMALL.get(value))
    {
        return small.as_ptr();
    }
    VALUES[place].store(value, Ordering::Relaxed);
    VALUES[place].as_ptr()
}

/// Orders and distributions among the integers that a datatype was made with.
///
/// # Safety
/// The call has stored `max` integers at most.
pub unsafe fn contents(datatype: usize, integers: *mut i32, max: i64) {
    let Ok((combiner, stored)) = made(datatype) else { return };
    let stored = stored.min(max).max(0) as usize;
    if integers.is_null() || stored == 0 {
        return;
    }
    // SAFETY: as the caller says.
    let integers = unsafe { std::slice::from_raw_parts_mut(integers, stored) };
    let last = stored - 1;
    match combiner {
        // The order comes last.
        ours::COMBINER_SUBARRAY => integers[last] = number::order_theirs(integers[last]),
        // size, rank, ndims, gsizes, distribs, dargs, psizes, order (MPI 5.0, section 5.1.13); the large form has its
        // gsizes elsewhere.
        ours::COMBINER_DARRAY => {
            integers[last] = number::order_theirs(integers[last]);
            let ndims = integers.get(2).map_or(0, |&ndims| ndims.max(0) as usize);
            let first = if stored == 4 * ndims + 4 { 3 + ndims } else { 3 };
            for integer in integers.iter_mut().skip(first).take(ndims) {
                *integer = number::order_theirs(*integer);
            }
            for integer in integers.iter_mut().skip(first + ndims).take(ndims) {
                *integer = number::distribution_argument_theirs(*integer);
            }
        }
        _ => {}
    }
}

/// The combiner of a datatype and the number of integers that it was made with.
fn made(datatype: usize) -> Result<(i32, i64)> {
    let (mut integers, mut addresses, mut counts, mut datatypes, mut combiner) = (0, 0, 0, 0, 0);
    // SAFETY: places for the numbers.
    unsafe {
        weft_mpi::datatype::abi::get_envelope_large(
            datatype,
            &mut integers,
            &mut addresses,
            &mut counts,
            &mut datatypes,
            &mut combiner,
        )?;
    }
    Ok((combiner, integers))
}

/// The address of a detached buffer, which may have been the library's own.
///
/// # Safety
/// `address` is null or where the call has stored it.
pub unsafe fn buffer(address: *mut c_void) {
    let address = address.cast::<usize>();
    // SAFETY: as the caller says.
    unsafe {
        if !address.is_null() && *address == ours::BUFFER_AUTOMATIC {
            *address = values::BUFFER_AUTOMATIC;
        }
    }
}

/// The length of a string that was cut to `room`.
///
/// # Safety
/// `length` is null or the program's place for the length.
pub unsafe fn clip(length: *mut i32, room: i32) {
    // SAFETY: as the caller says.
    unsafe {
        if !length.is_null() {
            *length = (*length).min(room - 1);
        }
    }
}

pub fn type_extent(datatype: usize) -> Result<isize> {
    Ok(bounds(datatype)?.1 as isize)
}

pub fn type_lb(datatype: usize) -> Result<isize> {
    Ok(bounds(datatype)?.0 as isize)
}

pub fn type_ub(datatype: usize) -> Result<isize> {
    let (low, extent) = bounds(datatype)?;
    Ok((low + extent) as isize)
}

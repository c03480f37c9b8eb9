//! Bodies of the functions on statuses.

use crate::abi::{CountOut, Status, UNDEFINED};
use crate::datatype::Datatype;
use crate::error::{Class, Error, Result};
use crate::world::WORLD;

fn missing() -> Error {
    Error::new(Class::Arg, "status is MPI_STATUS_IGNORE")
}

unsafe fn read<'a>(status: *const Status) -> Result<&'a Status> {
    // SAFETY: the program's status, if any.
    unsafe { status.as_ref() }.ok_or_else(missing)
}

unsafe fn write<'a>(status: *mut Status) -> Result<&'a mut Status> {
    // SAFETY: the program's status, if any.
    unsafe { status.as_mut() }.ok_or_else(missing)
}

fn type_of(handle: usize) -> Result<Datatype> {
    WORLD.enter().types.get(handle).cloned()
}

pub(crate) unsafe fn get_source(status: *const Status, source: *mut i32) -> Result<()> {
    // SAFETY: the program's place.
    unsafe { *source = read(status)?.source };
    Ok(())
}

pub(crate) unsafe fn get_tag(status: *const Status, tag: *mut i32) -> Result<()> {
    // SAFETY: the program's place.
    unsafe { *tag = read(status)?.tag };
    Ok(())
}

pub(crate) unsafe fn get_error(status: *const Status, error: *mut i32) -> Result<()> {
    // SAFETY: the program's place.
    unsafe { *error = read(status)?.error };
    Ok(())
}

pub(crate) unsafe fn set_source(status: *mut Status, source: i32) -> Result<()> {
    // SAFETY: as the caller says.
    unsafe { write(status)?.source = source };
    Ok(())
}

pub(crate) unsafe fn set_tag(status: *mut Status, tag: i32) -> Result<()> {
    // SAFETY: as the caller says.
    unsafe { write(status)?.tag = tag };
    Ok(())
}

pub(crate) unsafe fn set_error(status: *mut Status, error: i32) -> Result<()> {
    // SAFETY: as the caller says.
    unsafe { write(status)?.error = error };
    Ok(())
}

pub(crate) unsafe fn set_cancelled(status: *mut Status, flag: i32) -> Result<()> {
    // SAFETY: as the caller says.
    unsafe { write(status)?.set_cancelled(flag != 0) };
    Ok(())
}

pub(crate) unsafe fn test_cancelled(status: *const Status, flag: *mut i32) -> Result<()> {
    // SAFETY: the program's place.
    unsafe { *flag = read(status)?.is_cancelled() as i32 };
    Ok(())
}

/// Whole elements of the type in the message.
pub(crate) unsafe fn get_count(status: *const Status, datatype: usize, count: CountOut) -> Result<()> {
    // SAFETY: the program's status and its place for the count.
    unsafe {
        let bytes = read(status)?.bytes();
        count.set(type_of(datatype)?.whole_count(bytes).unwrap_or(i64::from(UNDEFINED)));
    }
    Ok(())
}

/// Basic elements in the message.
fn basic_count(bytes: u64, datatype: usize) -> Result<i64> {
    Ok(type_of(datatype)?.basic_count(bytes).unwrap_or(i64::from(UNDEFINED)))
}

pub(crate) unsafe fn get_elements(status: *const Status, datatype: usize, count: CountOut) -> Result<()> {
    // SAFETY: the program's status and its place for the count.
    unsafe { count.set(basic_count(read(status)?.bytes(), datatype)?) };
    Ok(())
}

pub(crate) unsafe fn get_elements_x(status: *const Status, datatype: usize, count: *mut i64) -> Result<()> {
    // SAFETY: the program's status and its place for the count.
    unsafe { *count = basic_count(read(status)?.bytes(), datatype)? };
    Ok(())
}

pub(crate) unsafe fn set_elements(status: *mut Status, datatype: usize, count: i64) -> Result<()> {
    let wrong = || Error::new(Class::Count, format!("count {count} is negative or too large"));
    let bytes = type_of(datatype)?.bytes_of_basic(count).filter(|_| count >= 0).ok_or_else(wrong)?;
    // SAFETY: as the caller says.
    unsafe { write(status)?.set_bytes(bytes) };
    Ok(())
}

pub(crate) unsafe fn set_elements_x(status: *mut Status, datatype: usize, count: i64) -> Result<()> {
    // SAFETY: as the caller says.
    unsafe { set_elements(status, datatype, count) }
}

//! Bodies of the status functions. Those that may be called at any time know only predefined datatypes outside of
//! the time from start to end.

use crate::abi::{CountOut, Status, UNDEFINED};
use crate::datatype::Datatype;
use crate::error::{Class, Error, Result};
use crate::handle::Kind;
use crate::world::WORLD;

/// The datatype of a handle.
fn find(datatype: usize) -> Result<Datatype> {
    if WORLD.is_open() {
        return WORLD.enter().types.get(datatype).cloned();
    }
    let predefined = Datatype::predefined(datatype).cloned();
    predefined.ok_or_else(|| Kind::Datatype.unknown("datatype", datatype))
}

/// `MPI_Get_count`.
pub unsafe fn get_count(status: *const Status, datatype: usize, count: CountOut) -> Result<()> {
    // SAFETY: the program's status and count.
    unsafe {
        let whole = find(datatype)?.whole_count((*status).bytes());
        count.set(whole.unwrap_or(UNDEFINED as i64));
    }
    Ok(())
}

/// `MPI_Get_elements`.
pub unsafe fn get_elements(status: *const Status, datatype: usize, count: CountOut) -> Result<()> {
    // SAFETY: the program's status and count.
    unsafe {
        let basic = find(datatype)?.basic_count((*status).bytes());
        count.set(basic.unwrap_or(UNDEFINED as i64));
    }
    Ok(())
}

/// `MPI_Get_elements_x`.
pub unsafe fn get_elements_x(status: *const Status, datatype: usize, count: *mut i64) -> Result<()> {
    // SAFETY: the same with another count.
    unsafe { get_elements(status, datatype, CountOut { at: count.cast(), wide: true }) }
}

/// `MPI_Status_set_elements`.
pub unsafe fn set_elements(status: *mut Status, datatype: usize, count: i64) -> Result<()> {
    let bytes = find(datatype)?.bytes_of_basic(count).ok_or_else(|| {
        Error::new(Class::Count, format!("count {count} of basic elements is negative or not possible with datatype"))
    })?;
    // SAFETY: the program's status.
    unsafe { (*status).set_bytes(bytes) };
    Ok(())
}

/// `MPI_Status_set_cancelled`.
pub unsafe fn set_cancelled(status: *mut Status, flag: i32) -> Result<()> {
    // SAFETY: the program's status.
    unsafe { (*status).set_cancelled(flag != 0) };
    Ok(())
}

/// `MPI_Test_cancelled`.
pub unsafe fn test_cancelled(status: *const Status, flag: *mut i32) -> Result<()> {
    // SAFETY: the program's status and flag.
    unsafe { *flag = (*status).is_cancelled() as i32 };
    Ok(())
}

/// `MPI_Status_get_source`.
pub unsafe fn get_source(status: *const Status, source: *mut i32) -> Result<()> {
    // SAFETY: the program's status and number; so below.
    unsafe { *source = (*status).source };
    Ok(())
}

/// `MPI_Status_get_tag`.
pub unsafe fn get_tag(status: *const Status, tag: *mut i32) -> Result<()> {
    // SAFETY: as above.
    unsafe { *tag = (*status).tag };
    Ok(())
}

/// `MPI_Status_get_error`.
pub unsafe fn get_error(status: *const Status, error: *mut i32) -> Result<()> {
    // SAFETY: as above.
    unsafe { *error = (*status).error };
    Ok(())
}

/// `MPI_Status_set_source`.
pub unsafe fn set_source(status: *mut Status, source: i32) -> Result<()> {
    // SAFETY: as above.
    unsafe { (*status).source = source };
    Ok(())
}

/// `MPI_Status_set_tag`.
pub unsafe fn set_tag(status: *mut Status, tag: i32) -> Result<()> {
    // SAFETY: as above.
    unsafe { (*status).tag = tag };
    Ok(())
}

/// `MPI_Status_set_error`.
pub unsafe fn set_error(status: *mut Status, error: i32) -> Result<()> {
    // SAFETY: as above.
    unsafe { (*status).error = error };
    Ok(())
}

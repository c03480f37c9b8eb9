//! Bodies of the status functions. Those that may be called at any time know only predefined datatypes outside of
//! the time from start to end.

use crate::abi::{Status, UNDEFINED};
use crate::datatype::Datatype;
use crate::error::{Class, Error, Result};
use crate::handle::HandleKind;
use crate::world::WORLD;

/// The datatype of a handle.
fn find(datatype: usize) -> Result<Datatype> {
    if WORLD.is_open() {
        return WORLD.enter().types.get(datatype).cloned();
    }
    let predefined = Datatype::predefined(datatype).cloned();
    predefined.ok_or_else(|| HandleKind::Datatype.unknown("datatype", datatype))
}

/// `MPI_Get_count`.
pub unsafe fn get_count(status: *const Status, datatype: usize) -> Result<i64> {
    // SAFETY: the program's status; so below.
    let bytes = unsafe { (*status).bytes() };
    Ok(find(datatype)?.whole_count(bytes).unwrap_or(UNDEFINED as i64))
}

/// `MPI_Get_elements`.
pub unsafe fn get_elements(status: *const Status, datatype: usize) -> Result<i64> {
    // SAFETY: as above.
    let bytes = unsafe { (*status).bytes() };
    Ok(find(datatype)?.basic_count(bytes).unwrap_or(UNDEFINED as i64))
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
pub unsafe fn test_cancelled(status: *const Status) -> Result<i32> {
    // SAFETY: as above.
    Ok(unsafe { (*status).is_cancelled() as i32 })
}

/// `MPI_Status_get_source`.
pub unsafe fn get_source(status: *const Status) -> Result<i32> {
    // SAFETY: as above.
    Ok(unsafe { (*status).source })
}

/// `MPI_Status_get_tag`.
pub unsafe fn get_tag(status: *const Status) -> Result<i32> {
    // SAFETY: as above.
    Ok(unsafe { (*status).tag })
}

/// `MPI_Status_get_error`.
pub unsafe fn get_error(status: *const Status) -> Result<i32> {
    // SAFETY: as above.
    Ok(unsafe { (*status).error })
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

//! Bodies of the functions that pack and unpack.

use super::of;
use crate::abi::{CountOut, Described, text_of};
use crate::datatype::Datatype;
use crate::error::{Class, Error, Result};
use crate::world::WORLD;
use std::ffi::{c_char, c_void};

/// Bytes of `count` elements, by the program's own measure or the external one.
fn measured(count: i64, bytes: impl FnOnce(i64) -> Option<u64>) -> Result<i64> {
    if count < 0 {
        return Err(Error::new(Class::Count, format!("count {count} is negative")));
    }
    let bytes = bytes(count).and_then(|bytes| i64::try_from(bytes).ok());
    bytes.ok_or_else(|| Error::new(Class::Count, format!("count {count} makes more bytes than can be counted")))
}

/// The part of the packed buffer that the call may use: `need` bytes from `position` on.
fn check_room(position: i64, need: i64, size: i64, what: &str) -> Result<()> {
    if position < 0 || position > size {
        return Err(Error::new(Class::Arg, format!("position {position}, but the buffer has positions 0 to {size}")));
    }
    if need > size - position {
        let detail = format!("{need} bytes do not fit into {what} {size} from position {position} on");
        return Err(Error::new(Class::Truncate, detail));
    }
    Ok(())
}

fn usable(datatype: usize) -> Result<Datatype> {
    let datatype = of(datatype)?;
    datatype.check_communication()?;
    Ok(datatype)
}

/// As [`usable`] for a call with a communicator, which has to be one. A predefined type is not counted.
#[inline]
fn with_usable<R>(comm: usize, handle: usize, act: impl FnOnce(&Datatype) -> Result<R>) -> Result<R> {
    let derived;
    let datatype = {
        let world = WORLD.enter();
        world.comms.get(comm)?;
        match Datatype::predefined(handle) {
            Some(datatype) => datatype,
            None => {
                derived = world.types.get(handle)?.clone();
                &derived
            }
        }
    };
    datatype.check_communication()?;
    act(datatype)
}

pub unsafe fn pack(what: Described, outbuf: *mut c_void, outsize: i64, position: CountOut, comm: usize) -> Result<()> {
    with_usable(comm, what.datatype, |datatype| {
        let need = measured(what.count, |count| datatype.packed_size(count))?;
        // SAFETY: the program's buffers and position.
        unsafe {
            let start = position.get();
            check_room(start, need, outsize, "outsize")?;
            datatype.pack_to(what.buffer.cast(), what.count, 0, outbuf.cast::<u8>().add(start as usize), need as usize);
            position.set(start + need);
        }
        Ok(())
    })
}

pub unsafe fn unpack(
    inbuf: *const c_void,
    insize: i64,
    position: CountOut,
    what: Described,
    comm: usize,
) -> Result<()> {
    with_usable(comm, what.datatype, |datatype| {
        let need = measured(what.count, |count| datatype.packed_size(count))?;
        // SAFETY: the program's buffers and position.
        unsafe {
            let start = position.get();
            check_room(start, need, insize, "insize")?;
            let packed = inbuf.cast::<u8>().add(start as usize);
            datatype.unpack_from(what.buffer.cast_mut().cast(), what.count, 0, packed, need as usize);
            position.set(start + need);
        }
        Ok(())
    })
}

pub fn pack_size(incount: i64, datatype: usize, comm: usize) -> Result<i64> {
    with_usable(comm, datatype, |datatype| measured(incount, |count| datatype.packed_size(count)))
}

/// The one external representation of the standard (MPI 5.0, section 14.5.2).
unsafe fn check_datarep(datarep: *const c_char) -> Result<()> {
    // SAFETY: a C string of the program.
    let name = unsafe { text_of(datarep, "datarep")? };
    let other = || Error::new(Class::Arg, format!("datarep `{name}` is not external32"));
    if name == "external32" { Ok(()) } else { Err(other()) }
}

pub unsafe fn pack_external(
    datarep: *const c_char,
    what: Described,
    outbuf: *mut c_void,
    outsize: i64,
    position: CountOut,
) -> Result<()> {
    let datatype = usable(what.datatype)?;
    let need = measured(what.count, |count| datatype.external_size(count))?;
    // SAFETY: the program's string, buffers and position.
    unsafe {
        check_datarep(datarep)?;
        let start = position.get();
        check_room(start, need, outsize, "outsize")?;
        let out = std::slice::from_raw_parts_mut(outbuf.cast::<u8>().add(start as usize), need as usize);
        datatype.pack_external(what.buffer.cast(), what.count, out);
        position.set(start + need);
    }
    Ok(())
}

pub unsafe fn unpack_external(
    datarep: *const c_char,
    inbuf: *const c_void,
    insize: i64,
    position: CountOut,
    what: Described,
) -> Result<()> {
    let datatype = usable(what.datatype)?;
    let need = measured(what.count, |count| datatype.external_size(count))?;
    // SAFETY: the program's string, buffers and position.
    unsafe {
        check_datarep(datarep)?;
        let start = position.get();
        check_room(start, need, insize, "insize")?;
        let data = std::slice::from_raw_parts(inbuf.cast::<u8>().add(start as usize), need as usize);
        datatype.unpack_external(what.buffer.cast_mut().cast(), what.count, data);
        position.set(start + need);
    }
    Ok(())
}

pub unsafe fn pack_external_size(datarep: *const c_char, incount: i64, datatype: usize) -> Result<i64> {
    let datatype = usable(datatype)?;
    // SAFETY: the program's string.
    unsafe { check_datarep(datarep)? };
    measured(incount, |count| datatype.external_size(count))
}

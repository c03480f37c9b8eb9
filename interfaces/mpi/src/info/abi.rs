//! Bodies of the info functions.

use super::{copy_of, infos, insert};
use crate::abi::{INFO_ENV, INFO_NULL, MAX_INFO_KEY, MAX_INFO_VAL, gives, store_string, text_of};
use crate::error::{Class, Error, Result, Unit};
use crate::handle::HandleKind;
use std::ffi::{c_char, c_void};

/// A key as the program gave it.
unsafe fn key_of(key: *const c_char) -> Result<String> {
    // SAFETY: a C string of the program.
    let key = unsafe { text_of(key, "key")? };
    if key.is_empty() || key.len() >= MAX_INFO_KEY as usize {
        let detail = format!("key has {} bytes, allowed are 1 to {}", key.len(), MAX_INFO_KEY - 1);
        return Err(Error::new(Class::InfoKey, detail));
    }
    Ok(key)
}

/// The object to read; the null handle is not one.
fn readable(handle: usize) -> Result<super::Info> {
    if handle == INFO_NULL { Err(HandleKind::Info.unknown("info", handle)) } else { copy_of(handle) }
}

/// Refuses to change the predefined object.
fn writable(handle: usize) -> Result<()> {
    let refused = || Error::new(Class::Info, "info is MPI_INFO_ENV, which cannot be changed");
    if handle == INFO_ENV { Err(refused()) } else { Ok(()) }
}

pub fn create() -> Result<usize> {
    Ok(insert(super::Info::default()))
}

pub fn create_env(_argc: i32, _argv: *mut c_void) -> Result<usize> {
    Ok(insert(super::surroundings()))
}

gives! {
    dup(info) -> usize = insert(readable(info)?);
    get_nkeys(info) -> i32 = readable(info)?.entries().len() as i32;
}

pub unsafe fn free(info: *mut usize) -> Result<()> {
    // SAFETY: the program's handle.
    let handle = unsafe { *info };
    writable(handle)?;
    infos().remove(handle)?;
    // SAFETY: as above.
    unsafe { *info = INFO_NULL };
    Ok(())
}

pub unsafe fn set(info: usize, key: *const c_char, value: *const c_char) -> Result<()> {
    writable(info)?;
    // SAFETY: C strings of the program.
    let (key, value) = unsafe { (key_of(key)?, text_of(value, "value")?) };
    if value.len() >= MAX_INFO_VAL as usize {
        let detail = format!("value has {} bytes, allowed are at most {}", value.len(), MAX_INFO_VAL - 1);
        return Err(Error::new(Class::InfoValue, detail));
    }
    infos().get_mut(info)?.set(&key, &value);
    Ok(())
}

pub unsafe fn delete(info: usize, key: *const c_char) -> Result<()> {
    writable(info)?;
    // SAFETY: a C string of the program.
    let key = unsafe { key_of(key)? };
    let missing = || Error::new(Class::InfoNokey, format!("info has no key `{key}`"));
    if infos().get_mut(info)?.remove(&key) { Ok(()) } else { Err(missing()) }
}

/// `valuelen` is the length without the zero; the value is cut to it.
pub unsafe fn get(info: usize, key: *const c_char, valuelen: i32, value: *mut c_char, flag: *mut i32) -> Result<()> {
    let info = readable(info)?;
    // SAFETY: a C string of the program.
    let key = unsafe { key_of(key)? };
    let room =
        usize::try_from(valuelen).map_err(|_| Error::new(Class::Arg, format!("valuelen {valuelen} is negative")))?;
    let found = info.get(&key);
    // SAFETY: the program's places; `value` has room for valuelen bytes and a zero.
    unsafe {
        *flag = found.is_some() as i32;
        if let Some(found) = found {
            store_string(found, room + 1, value, std::ptr::null_mut());
        }
    }
    Ok(())
}

/// `buflen` counts the zero, on the way in and on the way out.
pub unsafe fn get_string(
    info: usize,
    key: *const c_char,
    buflen: *mut i32,
    value: *mut c_char,
    flag: *mut i32,
) -> Result<()> {
    let info = readable(info)?;
    // SAFETY: the program's strings and places; `value` has room for `*buflen` bytes.
    unsafe {
        let key = key_of(key)?;
        let found = info.get(&key);
        *flag = found.is_some() as i32;
        if let Some(found) = found {
            if *buflen > 0 {
                store_string(found, *buflen as usize, value, std::ptr::null_mut());
            }
            *buflen = found.len() as i32 + 1;
        }
    }
    Ok(())
}

pub unsafe fn get_valuelen(info: usize, key: *const c_char, valuelen: *mut i32, flag: *mut i32) -> Result<()> {
    let info = readable(info)?;
    // SAFETY: the program's string and places.
    unsafe {
        let key = key_of(key)?;
        let found = info.get(&key);
        *flag = found.is_some() as i32;
        if let Some(found) = found {
            *valuelen = found.len() as i32;
        }
    }
    Ok(())
}

/// What `n` counts.
const KEYS: Unit = ("key", "keys");

pub unsafe fn get_nthkey(info: usize, n: i32, key: *mut c_char) -> Result<()> {
    let info = readable(info)?;
    let keys = info.entries();
    let outside = || Error::outside(Class::Arg, format!("n {n}"), "the info object", KEYS, keys.len());
    let entry = usize::try_from(n).ok().and_then(|n| keys.get(n)).ok_or_else(outside)?;
    // SAFETY: the program gave room for MPI_MAX_INFO_KEY bytes.
    unsafe { store_string(&entry.0, MAX_INFO_KEY as usize, key, std::ptr::null_mut()) };
    Ok(())
}

//! Control variables and the enumerations that they use (MPI 5.0, sections 15.3.5 and 15.3.6).

use super::{Answer, code, running};
use crate::abi::{
    CHAR, INT, T_BIND_NO_OBJECT, T_CVAR_HANDLE_NULL, T_ENUM_NULL, T_ERR_INVALID, T_ERR_INVALID_HANDLE,
    T_ERR_INVALID_INDEX, T_ERR_INVALID_ITEM, T_VERBOSITY_TUNER_BASIC, T_VERBOSITY_USER_BASIC, store_string,
};
use crate::tool::control::{TEXT_BYTES, change, scope, value, words};
use crate::tool::event::TYPES;
use crate::tool::{element, give, index_of_name, tell, tell_text};
use std::ffi::{c_char, c_void};
use weft_fabric::settings::DEFINITIONS;

/// The handle of the enumeration of a setting's words.
fn enum_of(index: usize) -> usize {
    if words(index).is_some() { index + 1 } else { T_ENUM_NULL }
}

/// The handle of the enumeration of what the elements of an event are called.
pub(super) fn enum_of_event(index: usize) -> usize {
    DEFINITIONS.len() + index + 1
}

/// An enumeration's name and items.
fn enumeration(handle: usize) -> Answer<(&'static str, &'static [&'static str])> {
    let index = handle.checked_sub(1).ok_or(T_ERR_INVALID_HANDLE)?;
    let of_event = || TYPES.get(index.checked_sub(DEFINITIONS.len())?).map(|known| (known.name, known.elements));
    let of_setting = || Some((DEFINITIONS.get(index)?.name, words(index)?));
    if index < DEFINITIONS.len() { of_setting() } else { of_event() }.ok_or(T_ERR_INVALID_HANDLE)
}

pub unsafe fn enum_get_info(handle: usize, number: *mut i32, name: *mut c_char, length: *mut i32) -> i32 {
    code(running().and_then(|_| enumeration(handle)).map(|(of, words)| {
        // SAFETY: the program's places.
        unsafe {
            tell(number, words.len() as i32);
            tell_text(of, name, length);
        }
    }))
}

pub unsafe fn enum_get_item(handle: usize, item: i32, number: *mut i32, name: *mut c_char, length: *mut i32) -> i32 {
    code(running().and_then(|_| enumeration(handle)).and_then(|(_, words)| {
        let word = element(words, item, T_ERR_INVALID_ITEM)?;
        // SAFETY: the program's places.
        unsafe {
            tell(number, item);
            tell_text(word, name, length);
        }
        Ok(())
    }))
}

pub unsafe fn cvar_get_num(number: *mut i32) -> i32 {
    // SAFETY: the program's place for the number.
    code(running().and_then(|_| unsafe { give(number, DEFINITIONS.len() as i32) }))
}

pub unsafe fn cvar_get_index(name: *const c_char, index: *mut i32) -> i32 {
    let find = |name: &str| DEFINITIONS.iter().position(|definition| definition.name == name);
    // SAFETY: the program's string and its place for the index.
    code(unsafe { index_of_name(name, index, find) })
}

pub unsafe fn cvar_get_info(
    index: i32,
    name: *mut c_char,
    name_length: *mut i32,
    verbosity: *mut i32,
    datatype: *mut usize,
    enumeration: *mut usize,
    meaning: *mut c_char,
    meaning_length: *mut i32,
    bind: *mut i32,
    scope_out: *mut i32,
) -> i32 {
    code(running().and_then(|_| element(DEFINITIONS, index, T_ERR_INVALID_INDEX)).map(|definition| {
        let index = index as usize;
        let level = if definition.flag.is_some() { T_VERBOSITY_USER_BASIC } else { T_VERBOSITY_TUNER_BASIC };
        // SAFETY: the program's places.
        unsafe {
            tell_text(definition.name, name, name_length);
            tell(verbosity, level);
            tell(datatype, if words(index).is_some() { INT } else { CHAR });
            tell(enumeration, enum_of(index));
            tell_text(definition.meaning, meaning, meaning_length);
            tell(bind, T_BIND_NO_OBJECT);
            tell(scope_out, scope(index));
        }
    }))
}

pub unsafe fn cvar_handle_alloc(index: i32, _object: *mut c_void, handle: *mut usize, count: *mut i32) -> i32 {
    code(running().and_then(|mut state| {
        element(DEFINITIONS, index, T_ERR_INVALID_INDEX)?;
        if handle.is_null() || count.is_null() {
            return Err(T_ERR_INVALID);
        }
        let elements = if words(index as usize).is_some() { 1 } else { TEXT_BYTES as i32 };
        // SAFETY: the program's places.
        unsafe { (*handle, *count) = (state.controls.insert(index as usize), elements) };
        Ok(())
    }))
}

pub unsafe fn cvar_handle_free(handle: *mut usize) -> i32 {
    code(running().and_then(|mut state| {
        if handle.is_null() {
            return Err(T_ERR_INVALID);
        }
        // SAFETY: the program's handle.
        unsafe {
            state.controls.live.remove(&*handle).ok_or(T_ERR_INVALID_HANDLE)?;
            *handle = T_CVAR_HANDLE_NULL;
        }
        Ok(())
    }))
}

fn index_of(handle: usize) -> Answer<usize> {
    running()?.controls.live.get(&handle).copied().ok_or(T_ERR_INVALID_HANDLE)
}

pub unsafe fn cvar_read(handle: usize, buffer: *mut c_void) -> i32 {
    code(index_of(handle).and_then(|index| {
        if buffer.is_null() {
            return Err(T_ERR_INVALID);
        }
        let value = value(index);
        // SAFETY: the program's buffer has room for as many elements as it was told.
        unsafe {
            match words(index) {
                Some(words) => {
                    let place = words.iter().position(|word| *word == value);
                    *buffer.cast::<i32>() = place.map_or(-1, |place| place as i32);
                }
                None => store_string(&value, TEXT_BYTES, buffer.cast(), std::ptr::null_mut()),
            }
        }
        Ok(())
    }))
}

pub unsafe fn cvar_write(handle: usize, buffer: *const c_void) -> i32 {
    code(index_of(handle).and_then(|index| {
        if buffer.is_null() {
            return Err(T_ERR_INVALID);
        }
        // SAFETY: the program's buffer, with as many elements as it was told; a text ends in a zero.
        let text = unsafe {
            match words(index) {
                Some(words) => (*element(words, *buffer.cast::<i32>(), T_ERR_INVALID)?).to_owned(),
                None => {
                    let bytes = std::slice::from_raw_parts(buffer.cast::<u8>(), text_bytes(buffer.cast()));
                    String::from_utf8_lossy(bytes).into_owned()
                }
            }
        };
        change(index, &text)
    }))
}

/// The length of a text, which is cut where there is no zero.
///
/// # Safety
/// There is a zero, or there are [`TEXT_BYTES`].
unsafe fn text_bytes(text: *const c_char) -> usize {
    // SAFETY: the caller's promise.
    unsafe { libc::strnlen(text, TEXT_BYTES) }
}

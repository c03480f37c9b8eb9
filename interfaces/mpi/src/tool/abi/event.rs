//! Events (MPI 5.0, section 15.3.8). There are no kinds of them and no sources, so no index, handle or instance is one.

use super::{Answer, code, running};
use crate::abi::{T_ERR_INVALID, T_ERR_INVALID_HANDLE, T_ERR_INVALID_INDEX, T_ERR_INVALID_NAME};
use crate::tool::{give, name_of};
use std::ffi::{c_char, c_void};

/// The code of a call on something that cannot be there.
fn none(of: i32) -> i32 {
    code(running().and(Err(of)))
}

fn no_name(name: Answer<String>) -> i32 {
    code(running().and(name).and(Err(T_ERR_INVALID_NAME)))
}

pub unsafe fn event_get_num(number: *mut i32) -> i32 {
    // SAFETY: the program's place for the number.
    code(running().and_then(|_| unsafe { give(number, 0) }))
}

pub unsafe fn source_get_num(number: *mut i32) -> i32 {
    // SAFETY: the program's place for the number.
    code(running().and_then(|_| unsafe { give(number, 0) }))
}

pub unsafe fn event_get_index(name: *const c_char, index: *mut i32) -> i32 {
    if index.is_null() {
        return T_ERR_INVALID;
    }
    // SAFETY: the program's string.
    no_name(unsafe { name_of(name) })
}

pub unsafe fn event_get_info(
    _index: i32,
    _name: *mut c_char,
    _name_length: *mut i32,
    _verbosity: *mut i32,
    _datatypes: *mut usize,
    _displacements: *mut isize,
    _number: *mut i32,
    _enumeration: *mut usize,
    _info: *mut usize,
    _meaning: *mut c_char,
    _meaning_length: *mut i32,
    _bind: *mut i32,
) -> i32 {
    none(T_ERR_INVALID_INDEX)
}

pub unsafe fn event_handle_alloc(_index: i32, _object: *mut c_void, _info: usize, _out: *mut usize) -> i32 {
    none(T_ERR_INVALID_INDEX)
}

pub unsafe fn event_handle_free(_registration: usize, _user_data: *mut c_void, _function: usize) -> i32 {
    none(T_ERR_INVALID_HANDLE)
}

pub unsafe fn event_handle_get_info(_registration: usize, _out: *mut usize) -> i32 {
    none(T_ERR_INVALID_HANDLE)
}

pub unsafe fn event_handle_set_info(_registration: usize, _info: usize) -> i32 {
    none(T_ERR_INVALID_HANDLE)
}

pub unsafe fn event_register_callback(
    _registration: usize,
    _safety: i32,
    _info: usize,
    _user_data: *mut c_void,
    _function: usize,
) -> i32 {
    none(T_ERR_INVALID_HANDLE)
}

pub unsafe fn event_callback_get_info(_registration: usize, _safety: i32, _out: *mut usize) -> i32 {
    none(T_ERR_INVALID_HANDLE)
}

pub unsafe fn event_callback_set_info(_registration: usize, _safety: i32, _info: usize) -> i32 {
    none(T_ERR_INVALID_HANDLE)
}

pub unsafe fn event_set_dropped_handler(_registration: usize, _function: usize) -> i32 {
    none(T_ERR_INVALID_HANDLE)
}

pub unsafe fn event_copy(_instance: usize, _buffer: *mut c_void) -> i32 {
    none(T_ERR_INVALID_HANDLE)
}

pub unsafe fn event_read(_instance: usize, _element: i32, _buffer: *mut c_void) -> i32 {
    none(T_ERR_INVALID_HANDLE)
}

pub unsafe fn event_get_source(_instance: usize, _out: *mut i32) -> i32 {
    none(T_ERR_INVALID_HANDLE)
}

pub unsafe fn event_get_timestamp(_instance: usize, _out: *mut i64) -> i32 {
    none(T_ERR_INVALID_HANDLE)
}

pub unsafe fn source_get_info(
    _index: i32,
    _name: *mut c_char,
    _name_length: *mut i32,
    _meaning: *mut c_char,
    _meaning_length: *mut i32,
    _order: *mut i32,
    _ticks: *mut i64,
    _most: *mut i64,
    _info: *mut usize,
) -> i32 {
    none(T_ERR_INVALID_INDEX)
}

pub unsafe fn source_get_timestamp(_index: i32, _out: *mut i64) -> i32 {
    none(T_ERR_INVALID_INDEX)
}

//! Performance variables (MPI 5.0, section 15.3.7).

use super::{Answer, code, running};
use crate::abi::{
    T_BIND_NO_OBJECT, T_ENUM_NULL, T_ERR_INVALID, T_ERR_INVALID_HANDLE, T_ERR_INVALID_INDEX, T_ERR_INVALID_SESSION,
    T_PVAR_ALL_HANDLES, T_PVAR_CLASS_COUNTER, T_PVAR_HANDLE_NULL, T_PVAR_SESSION_NULL, T_VERBOSITY_USER_DETAIL,
    UNSIGNED_LONG_LONG,
};
use crate::tool::performance::Handle;
use crate::tool::{element, give, index_of_name, tell, tell_text};
use std::ffi::{c_char, c_void};
use weft_fabric::CounterReader;

const NAMES: &[&str] = CounterReader::NAMES;

pub unsafe fn pvar_get_num(number: *mut i32) -> i32 {
    // SAFETY: the program's place for the number.
    code(running().and_then(|_| unsafe { give(number, NAMES.len() as i32) }))
}

pub unsafe fn pvar_get_index(name: *const c_char, class: i32, index: *mut i32) -> i32 {
    let find = |name: &str| NAMES.iter().position(|known| *known == name && class == T_PVAR_CLASS_COUNTER);
    // SAFETY: the program's string and its place for the index.
    code(unsafe { index_of_name(name, index, find) })
}

pub unsafe fn pvar_get_info(
    index: i32,
    name: *mut c_char,
    name_length: *mut i32,
    verbosity: *mut i32,
    class: *mut i32,
    datatype: *mut usize,
    enumeration: *mut usize,
    meaning: *mut c_char,
    meaning_length: *mut i32,
    bind: *mut i32,
    readonly: *mut i32,
    continuous: *mut i32,
    atomic: *mut i32,
) -> i32 {
    code(running().and_then(|_| element(NAMES, index, T_ERR_INVALID_INDEX)).map(|known| {
        // SAFETY: the program's places.
        unsafe {
            tell_text(known, name, name_length);
            tell(verbosity, T_VERBOSITY_USER_DETAIL);
            tell(class, T_PVAR_CLASS_COUNTER);
            tell(datatype, UNSIGNED_LONG_LONG);
            tell(enumeration, T_ENUM_NULL);
            tell_text(&CounterReader::meaning(index as usize), meaning, meaning_length);
            tell(bind, T_BIND_NO_OBJECT);
            tell(readonly, 0);
            tell(continuous, 0);
            tell(atomic, 1);
        }
    }))
}

pub unsafe fn pvar_session_create(session: *mut usize) -> i32 {
    code(running().and_then(|mut state| {
        if session.is_null() {
            return Err(T_ERR_INVALID);
        }
        // SAFETY: the program's place for the handle.
        unsafe { *session = state.sessions.insert(()) };
        Ok(())
    }))
}

/// Its handles go with it.
pub unsafe fn pvar_session_free(session: *mut usize) -> i32 {
    code(running().and_then(|mut state| {
        if session.is_null() {
            return Err(T_ERR_INVALID);
        }
        // SAFETY: the program's handle.
        unsafe {
            state.sessions.live.remove(&*session).ok_or(T_ERR_INVALID_SESSION)?;
            state.counters.live.retain(|_, handle| handle.session != *session);
            *session = T_PVAR_SESSION_NULL;
        }
        Ok(())
    }))
}

pub unsafe fn pvar_handle_alloc(
    session: usize,
    index: i32,
    _object: *mut c_void,
    handle: *mut usize,
    count: *mut i32,
) -> i32 {
    code(running().and_then(|mut state| {
        state.sessions.live.get(&session).ok_or(T_ERR_INVALID_SESSION)?;
        element(NAMES, index, T_ERR_INVALID_INDEX)?;
        if handle.is_null() || count.is_null() {
            return Err(T_ERR_INVALID);
        }
        // SAFETY: the program's places.
        unsafe { (*handle, *count) = (state.counters.insert(Handle::new(session, index as usize)), 1) };
        Ok(())
    }))
}

pub unsafe fn pvar_handle_free(session: usize, handle: *mut usize) -> i32 {
    if handle.is_null() {
        return T_ERR_INVALID;
    }
    // SAFETY: the program's handle.
    let freed = unsafe { *handle };
    code(with_one(session, freed, |_| ()).and_then(|()| {
        running()?.counters.live.remove(&freed);
        // SAFETY: as above.
        unsafe { *handle = T_PVAR_HANDLE_NULL };
        Ok(())
    }))
}

/// Does something with one handle of the session.
fn with_one<R>(session: usize, handle: usize, act: impl FnOnce(&mut Handle) -> R) -> Answer<R> {
    let mut state = running()?;
    state.sessions.live.get(&session).ok_or(T_ERR_INVALID_SESSION)?;
    let found = state.counters.live.get_mut(&handle).filter(|found| found.session == session);
    found.map(act).ok_or(T_ERR_INVALID_HANDLE)
}

/// Does something with one handle of the session, or with all of them.
fn with(session: usize, handle: usize, act: impl Fn(&mut Handle)) -> Answer<()> {
    if handle != T_PVAR_ALL_HANDLES {
        return with_one(session, handle, act);
    }
    let mut state = running()?;
    state.sessions.live.get(&session).ok_or(T_ERR_INVALID_SESSION)?;
    state.counters.live.values_mut().filter(|found| found.session == session).for_each(act);
    Ok(())
}

pub unsafe fn pvar_start(session: usize, handle: usize) -> i32 {
    code(with(session, handle, Handle::start))
}

pub unsafe fn pvar_stop(session: usize, handle: usize) -> i32 {
    code(with(session, handle, Handle::stop))
}

pub unsafe fn pvar_reset(session: usize, handle: usize) -> i32 {
    code(with(session, handle, |handle| handle.write(0)))
}

pub unsafe fn pvar_read(session: usize, handle: usize, buffer: *mut c_void) -> i32 {
    // SAFETY: the program's buffer for one number.
    code(with_one(session, handle, |handle| handle.read()).and_then(|value| unsafe { give(buffer.cast(), value) }))
}

pub unsafe fn pvar_readreset(session: usize, handle: usize, buffer: *mut c_void) -> i32 {
    if buffer.is_null() {
        return T_ERR_INVALID;
    }
    let value = with_one(session, handle, Handle::take);
    // SAFETY: the program's buffer for one number.
    code(value.and_then(|value| unsafe { give(buffer.cast(), value) }))
}

pub unsafe fn pvar_write(session: usize, handle: usize, buffer: *const c_void) -> i32 {
    if buffer.is_null() {
        return T_ERR_INVALID;
    }
    // SAFETY: the program's buffer with one number.
    let value = unsafe { *buffer.cast::<u64>() };
    code(with_one(session, handle, |handle| handle.write(value)))
}

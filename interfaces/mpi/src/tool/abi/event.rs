//! Events and their source (MPI 5.0, section 15.3.8).

use super::{Answer, code, running};
use crate::abi::{
    INFO_NULL, T_BIND_NO_OBJECT, T_ERR_INVALID, T_ERR_INVALID_HANDLE, T_ERR_INVALID_INDEX, T_VERBOSITY_USER_DETAIL,
};
use crate::info::Info;
use crate::tool::event::{Callback, EventRegistration, Instance, TYPES, free, level, meaning, now};
use crate::tool::{element, give, index_of_name, tell, tell_text};
use std::ffi::{c_char, c_void};

/// The one source: this library.
const SOURCE: i32 = 0;
const SOURCE_NAME: &str = "weft";
/// `MPI_T_SOURCE_ORDERED`.
const ORDERED: i32 = 1;

pub unsafe fn event_get_num(number: *mut i32) -> i32 {
    // SAFETY: the program's place for the number.
    code(running().and_then(|_| unsafe { give(number, TYPES.len() as i32) }))
}

pub unsafe fn source_get_num(number: *mut i32) -> i32 {
    // SAFETY: the program's place for the number.
    code(running().and_then(|_| unsafe { give(number, 1) }))
}

pub unsafe fn event_get_index(name: *const c_char, index: *mut i32) -> i32 {
    let find = |name: &str| TYPES.iter().position(|known| known.name == name);
    // SAFETY: the program's string and its place for the index.
    code(unsafe { index_of_name(name, index, find) })
}

pub unsafe fn event_get_info(
    index: i32,
    name: *mut c_char,
    name_length: *mut i32,
    verbosity: *mut i32,
    datatypes: *mut usize,
    displacements: *mut isize,
    number: *mut i32,
    enumeration: *mut usize,
    info: *mut usize,
    meaning_text: *mut c_char,
    meaning_length: *mut i32,
    bind: *mut i32,
) -> i32 {
    code(running().and_then(|_| element(&TYPES, index, T_ERR_INVALID_INDEX)).map(|known| {
        // SAFETY: the program's places, and its arrays of as many elements as `number` says.
        unsafe {
            let room = if number.is_null() { 0 } else { usize::try_from(*number).unwrap_or(0) };
            for (place, (at, datatype)) in (0..room).map_while(|place| Some((place, known.element(place)?))) {
                if !datatypes.is_null() {
                    *datatypes.add(place) = datatype;
                }
                if !displacements.is_null() {
                    *displacements.add(place) = at as isize;
                }
            }
            tell(number, known.elements.len() as i32);
            tell_text(known.name, name, name_length);
            tell(verbosity, T_VERBOSITY_USER_DETAIL);
            tell(enumeration, super::enum_of_event(index as usize));
            tell(info, INFO_NULL);
            tell_text(meaning(index as usize), meaning_text, meaning_length);
            tell(bind, T_BIND_NO_OBJECT);
        }
    }))
}

/// Hints that the program gives. There are none that change anything. What `MPI_INFO_ENV` says stands in the world,
/// which nothing here enters: a callback runs with it held.
fn check_info(info: usize) -> Answer<()> {
    if info == crate::abi::INFO_ENV {
        return Ok(());
    }
    crate::info::copy_of(info).map(drop).map_err(|_| T_ERR_INVALID)
}

/// Stores a new info object with the hints in use.
unsafe fn give_info(out: *mut usize) -> Answer<()> {
    if out.is_null() {
        return Err(T_ERR_INVALID);
    }
    // SAFETY: the program's place for the handle.
    unsafe { give(out, crate::info::insert(Info::default())) }
}

/// Does something with a registration.
fn with<R>(handle: usize, act: impl FnOnce(&mut EventRegistration) -> R) -> Answer<R> {
    let mut state = running()?;
    let answer = act(state.registrations.find(handle)?);
    state.settle_interest();
    Ok(answer)
}

pub unsafe fn event_handle_alloc(index: i32, _object: *mut c_void, info: usize, out: *mut usize) -> i32 {
    code(running().map(drop).and_then(|()| {
        element(&TYPES, index, T_ERR_INVALID_INDEX)?;
        check_info(info)?;
        if out.is_null() {
            return Err(T_ERR_INVALID);
        }
        let handle = running()?.registrations.insert(EventRegistration::new(index as usize));
        // SAFETY: the program's place for the handle.
        unsafe { give(out, handle) }
    }))
}

pub unsafe fn event_handle_free(registration: usize, user_data: *mut c_void, function: usize) -> i32 {
    code(running().and_then(|mut state| {
        state.registrations.find(registration)?;
        // SAFETY: the program's functions.
        unsafe { free(state, registration, Callback { function, user_data }) };
        Ok(())
    }))
}

pub unsafe fn event_handle_get_info(registration: usize, out: *mut usize) -> i32 {
    // SAFETY: the program's place for the handle.
    code(with(registration, |_| ()).and_then(|()| unsafe { give_info(out) }))
}

pub unsafe fn event_handle_set_info(registration: usize, info: usize) -> i32 {
    code(with(registration, |_| ()).and_then(|()| check_info(info)))
}

/// No function takes the one away that was registered for the level.
pub unsafe fn event_register_callback(
    registration: usize,
    safety: i32,
    info: usize,
    user_data: *mut c_void,
    function: usize,
) -> i32 {
    code(with(registration, |_| ()).and_then(|()| {
        let level = level(safety)?;
        check_info(info)?;
        let callback = (function != 0).then_some(Callback { function, user_data });
        with(registration, |found| found.callbacks[level] = callback)
    }))
}

/// The callback of a level must be there.
fn registered(registration: usize, safety: i32) -> Answer<()> {
    let callbacks = with(registration, |found| found.callbacks)?;
    callbacks[level(safety)?].map(drop).ok_or(T_ERR_INVALID)
}

pub unsafe fn event_callback_get_info(registration: usize, safety: i32, out: *mut usize) -> i32 {
    // SAFETY: the program's place for the handle.
    code(registered(registration, safety).and_then(|()| unsafe { give_info(out) }))
}

pub unsafe fn event_callback_set_info(registration: usize, safety: i32, info: usize) -> i32 {
    code(registered(registration, safety).and_then(|()| check_info(info)))
}

pub unsafe fn event_set_dropped_handler(registration: usize, function: usize) -> i32 {
    code(with(registration, |found| found.dropped_handler = function))
}

/// Does something with an event whose callbacks run.
fn of_instance<R>(handle: usize, act: impl FnOnce(&Instance) -> Answer<R>) -> Answer<R> {
    running()?.instances.live.get(&handle).ok_or(T_ERR_INVALID_HANDLE).and_then(act)
}

/// Copies bytes of the data.
unsafe fn copy(instance: &Instance, at: usize, bytes: usize, buffer: *mut c_void) -> Answer<()> {
    if buffer.is_null() {
        return Err(T_ERR_INVALID);
    }
    // SAFETY: the range lies inside the data, and the program's buffer has room for it.
    unsafe {
        let from = (&raw const instance.data).cast::<u8>().add(at);
        std::ptr::copy_nonoverlapping(from, buffer.cast::<u8>(), bytes);
    }
    Ok(())
}

pub unsafe fn event_copy(instance: usize, buffer: *mut c_void) -> i32 {
    // SAFETY: the program's buffer for the whole data.
    code(of_instance(instance, |instance| unsafe { copy(instance, 0, TYPES[instance.kind].size(), buffer) }))
}

pub unsafe fn event_read(instance: usize, element: i32, buffer: *mut c_void) -> i32 {
    code(of_instance(instance, |instance| {
        let found = usize::try_from(element).ok().and_then(|element| TYPES[instance.kind].element(element));
        let (at, datatype) = found.ok_or(T_ERR_INVALID_INDEX)?;
        let bytes = if datatype == crate::abi::INT { 4 } else { 8 };
        // SAFETY: the program's buffer for one element.
        unsafe { copy(instance, at, bytes, buffer) }
    }))
}

pub unsafe fn event_get_source(instance: usize, out: *mut i32) -> i32 {
    // SAFETY: the program's place for the index.
    code(of_instance(instance, |_| unsafe { give(out, SOURCE) }))
}

pub unsafe fn event_get_timestamp(instance: usize, out: *mut i64) -> i32 {
    // SAFETY: the program's place for the time.
    code(of_instance(instance, |instance| unsafe { give(out, instance.timestamp) }))
}

fn source(index: i32) -> Answer<()> {
    running()?;
    if index == SOURCE { Ok(()) } else { Err(T_ERR_INVALID_INDEX) }
}

pub unsafe fn source_get_info(
    index: i32,
    name: *mut c_char,
    name_length: *mut i32,
    meaning: *mut c_char,
    meaning_length: *mut i32,
    order: *mut i32,
    ticks: *mut i64,
    most: *mut i64,
    info: *mut usize,
) -> i32 {
    code(source(index).map(|()| {
        // SAFETY: the program's places.
        unsafe {
            tell_text(SOURCE_NAME, name, name_length);
            tell_text("what happens inside the library; nanoseconds of the monotonic clock", meaning, meaning_length);
            tell(order, ORDERED);
            tell(ticks, 1_000_000_000);
            tell(most, i64::MAX);
            tell(info, INFO_NULL);
        }
    }))
}

pub unsafe fn source_get_timestamp(index: i32, out: *mut i64) -> i32 {
    // SAFETY: the program's place for the time.
    code(source(index).and_then(|()| unsafe { give(out, now()) }))
}

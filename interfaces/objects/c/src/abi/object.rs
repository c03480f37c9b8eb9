//! Objects of types that the program describes.

use super::{answer, bytes, name, store, store_answer};
use crate::calls;
use crate::fault::{CallFault, Result};
use crate::kind::{CBytes, CType, DescribedKind};
use crate::space::{self, OpenObject};
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;
use std::time::Duration;
use weft_objects::{ObjectPlacement, Strategy};

/// `WEFT_OBJECTS_REPLICATED` and `WEFT_OBJECTS_AUTOMATIC`.
const REPLICATED: c_int = -1;
const AUTOMATIC: c_int = -2;

/// # Safety
/// As [`weft_object_share`] and [`weft_object_find`].
unsafe fn open(at: *const c_char, described: *const CType, initial: Option<*const c_void>) -> Result<c_int> {
    // SAFETY: the caller's promise.
    let (name, kind) = unsafe { (name(at)?, DescribedKind::read(described)?) };
    let state = match initial {
        None => None,
        // SAFETY: the caller's promise.
        Some(initial) => Some(unsafe { kind.pack_foreign(initial) }?),
    };
    space::add(|space| space.open_dynamic(name, Arc::new(kind), state).map(OpenObject::Described))
}

/// # Safety
/// `at` is null or a C string; `described` is null or a type; `initial` is null or a state of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_object_share(
    at: *const c_char,
    described: *const CType,
    initial: *const c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    answer(unsafe { open(at, described, Some(initial)) })
}

/// # Safety
/// `at` is null or a C string; `described` is null or a type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_object_find(at: *const c_char, described: *const CType) -> c_int {
    // SAFETY: the caller's promise.
    answer(unsafe { open(at, described, None) })
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_object_release(object: c_int) -> c_int {
    answer(space::release(object).map(|()| 0))
}

/// A time in milliseconds; negative is endless.
fn patience(milliseconds: c_int) -> Option<Duration> {
    u64::try_from(milliseconds).ok().map(Duration::from_millis)
}

/// # Safety
/// `arguments` is readable for its length; `to` is null or writable for `size` bytes; `length` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_object_call(
    object: c_int,
    operation: c_int,
    arguments: *const c_void,
    arguments_length: usize,
    to: *mut c_void,
    size: usize,
    length: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { weft_object_start(object, operation, arguments, arguments_length, -1, to, size, length) }
}

/// # Safety
/// As [`weft_object_call`].
#[allow(clippy::too_many_arguments)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_object_start(
    object: c_int,
    operation: c_int,
    arguments: *const c_void,
    arguments_length: usize,
    milliseconds: c_int,
    to: *mut c_void,
    size: usize,
    length: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise.
    let arguments = unsafe { bytes(arguments, arguments_length) };
    let done = arguments.and_then(|given| calls::start(object, operation, given, patience(milliseconds)));
    // SAFETY: the caller's promise.
    answer(done.and_then(|()| unsafe { store_answer(to, size, length) }))
}

/// # Safety
/// `to` is null or writable for `size` bytes; `length` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_object_wait(
    milliseconds: c_int,
    to: *mut c_void,
    size: usize,
    length: *mut usize,
) -> c_int {
    let done = calls::wait(patience(milliseconds));
    // SAFETY: the caller's promise.
    answer(done.and_then(|()| unsafe { store_answer(to, size, length) }))
}

/// # Safety
/// `to` is null, or what an operation or `pack` was given; `data` is readable for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_bytes_add(to: *mut CBytes, data: *const c_void, length: usize) -> c_int {
    // SAFETY: the caller's promise.
    let added = unsafe { bytes(data, length) };
    answer(added.map(|added| {
        if !to.is_null() {
            // SAFETY: the caller's promise.
            unsafe { &mut *to }.0.extend_from_slice(added);
        }
        0
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_object_place(object: c_int, to: c_int) -> c_int {
    let strategy = match (to, u32::try_from(to)) {
        (_, Ok(process)) => Ok(Strategy::Fixed(ObjectPlacement::Single(process))),
        (REPLICATED, _) => Ok(Strategy::Fixed(ObjectPlacement::Replicated)),
        (AUTOMATIC, _) => Ok(Strategy::Automatic),
        _ => Err(CallFault::argument(format!("place {to}: a process, or WEFT_OBJECTS_REPLICATED or _AUTOMATIC"))),
    };
    answer(strategy.and_then(|strategy| space::object(object)?.place(strategy)).map(|()| 0))
}

/// # Safety
/// `to` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_object_placement(object: c_int, to: *mut c_int) -> c_int {
    answer(space::object(object).map(|object| {
        let place = match object.placement() {
            ObjectPlacement::Replicated => REPLICATED,
            ObjectPlacement::Single(process) => process as c_int,
        };
        // SAFETY: the caller's promise.
        unsafe { store(to, place) };
        0
    }))
}

//! Groups. Errors of these are left in `pvm_errno`, without a line.

use super::message::{multicast, size_of_type};
use super::text;
use crate::errors::{Error, pvm_errno};
use crate::group::{GroupCall, barrier, freeze, join, leave, members};
use crate::library::my_tid;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::Ordering;
use weft_pvm_machine::frame::ByteString;

fn quiet(outcome: Result<c_int, Error>) -> c_int {
    outcome.unwrap_or_else(|error| {
        pvm_errno.store(error.0, Ordering::Relaxed);
        error.0
    })
}

/// # Safety
/// It is null or a C string.
unsafe fn name_of(group: *const c_char) -> Result<ByteString, Error> {
    // SAFETY: the caller's promise.
    let name = unsafe { text(group) };
    if name.0.is_empty() { Err(Error::NULL_GROUP) } else { Ok(name) }
}

/// Functions of a group and of numbers.
macro_rules! of_group {
    ($($(#[$comment:meta])* $function:ident($name:ident $(, $number:ident)?) = $outcome:expr;)*) => { $(
        $(#[$comment])*
        /// # Safety
        /// `group` is null or a C string.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(group: *const c_char $(, $number: c_int)?) -> c_int {
            // SAFETY: the caller's promise.
            quiet(unsafe { name_of(group) }.and_then(|$name| $outcome))
        }
    )* };
}

of_group! {
    pvm_joingroup(name) = join(&name);
    pvm_lvgroup(name) = leave(&name);
    pvm_barrier(name, count) = barrier(&name, count);
    pvm_freezegroup(name, size) = freeze(&name, size);
    pvm_getinst(name, tid) = members(&name).and_then(|all| {
        let place = all.iter().position(|there| *there == tid && tid != 0);
        place.map(|place| place as c_int).ok_or(Error::NOT_IN_GROUP)
    });
    pvm_gettid(name, instance) = members(&name).and_then(|all| {
        let tid = usize::try_from(instance).ok().and_then(|instance| all.get(instance).copied());
        tid.filter(|tid| *tid != 0).ok_or(Error::NO_INST)
    });
    pvm_gsize(name) = members(&name).map(|all| all.iter().filter(|tid| **tid != 0).count() as c_int);
    /// To all members but this task, which need not be one.
    pvm_bcast(name, tag) = members(&name).and_then(|mut all| {
        all.retain(|tid| *tid != 0 && *tid != my_tid());
        if all.is_empty() {
            return Err(Error::NO_INST);
        }
        multicast(&all, tag).map(|()| 0)
    });
}

fn bytes_of(count: c_int, kind: c_int) -> Result<usize, Error> {
    let count = usize::try_from(count).map_err(|_| Error::BAD_PARAM)?;
    count.checked_mul(size_of_type(kind).map_err(|_| Error::BAD_PARAM)?).ok_or(Error::BAD_PARAM)
}

/// What folds one array into another: type, both arrays, items, and a code.
type Fold = extern "C" fn(*mut c_int, *mut c_void, *mut c_void, *mut c_int, *mut c_int);

/// # Safety
/// `data` has `count` items of the type; `group` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_reduce(
    fold: Option<Fold>,
    data: *mut c_void,
    count: c_int,
    kind: c_int,
    tag: c_int,
    group: *const c_char,
    root: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { name_of(group) };
    quiet(name.and_then(|name| {
        let fold = fold.ok_or(Error::BAD_PARAM)?;
        let length = bytes_of(count, kind)?;
        if data.is_null() {
            return Err(Error::BAD_PARAM);
        }
        let all = GroupCall::new("pvm_reduce", &name, root, tag)?;
        // SAFETY: the caller's promise.
        let own = unsafe { std::slice::from_raw_parts_mut(data.cast::<u8>(), length) };
        let mut folded = own.to_vec();
        let mut code = 0;
        all.reduce(&mut folded, |one, other| {
            let (mut kind, mut count, mut said) = (kind, count, 0);
            fold(&mut kind, one.as_mut_ptr().cast(), other.as_mut_ptr().cast(), &mut count, &mut said);
            code = code.min(said);
        })?;
        if code < 0 {
            return Err(Error(code));
        }
        if all.is_root() {
            own.copy_from_slice(&folded);
        }
        Ok(0)
    }))
}

/// # Safety
/// `data` has `count` items of the type, `result` at the root as many for each member; `group` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_gather(
    result: *mut c_void,
    data: *const c_void,
    count: c_int,
    kind: c_int,
    tag: c_int,
    group: *const c_char,
    root: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { name_of(group) };
    quiet(name.and_then(|name| {
        let length = bytes_of(count, kind)?;
        let all = GroupCall::new("pvm_gather", &name, root, tag)?;
        if data.is_null() || all.is_root() && result.is_null() {
            return Err(Error::BAD_PARAM);
        }
        let place = if all.is_root() { length.checked_mul(all.size()).ok_or(Error::BAD_PARAM)? } else { 0 };
        // SAFETY: the caller's promise.
        let (own, result) = unsafe {
            let result = if place == 0 { &mut [] } else { std::slice::from_raw_parts_mut(result.cast::<u8>(), place) };
            (std::slice::from_raw_parts(data.cast::<u8>(), length), result)
        };
        all.gather(own, result).map(|()| 0)
    }))
}

/// # Safety
/// `result` has room for `count` items of the type, `data` at the root as many for each member; `group` is null or a C
/// string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_scatter(
    result: *mut c_void,
    data: *const c_void,
    count: c_int,
    kind: c_int,
    tag: c_int,
    group: *const c_char,
    root: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { name_of(group) };
    quiet(name.and_then(|name| {
        let length = bytes_of(count, kind)?;
        let all = GroupCall::new("pvm_scatter", &name, root, tag)?;
        if result.is_null() || all.is_root() && data.is_null() {
            return Err(Error::BAD_PARAM);
        }
        let place = if all.is_root() { length.checked_mul(all.size()).ok_or(Error::BAD_PARAM)? } else { 0 };
        // SAFETY: the caller's promise.
        let (result, data) = unsafe {
            let data = if place == 0 { &[] } else { std::slice::from_raw_parts(data.cast::<u8>(), place) };
            (std::slice::from_raw_parts_mut(result.cast::<u8>(), length), data)
        };
        all.scatter(result, data).map(|()| 0)
    }))
}

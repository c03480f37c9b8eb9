//! Messages that are started now and waited for later.

use super::wait::patience;
use super::{CMessage, answer, bytes, null, pick, received, room};
use crate::begun;
use crate::begun_desk::RequestNumber;
use crate::error::{NativeError, Result};
use crate::known::PortNumber;
use std::ffi::{c_int, c_void};
use weft_ports::Peer;

fn number(request: c_int) -> RequestNumber {
    RequestNumber(request as u32)
}

/// # Safety
/// `data` is readable for `length` bytes, and nobody changes them, until the message has been waited for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_send_begin(
    process: c_int,
    port: c_int,
    tag: c_int,
    data: *const c_void,
    length: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    let data = unsafe { bytes(data, length) };
    answer(data.and_then(|data| {
        let (to, port, at) = (Peer(process as u32), PortNumber(port as u32), (data.as_ptr(), data.len()));
        // SAFETY: the caller's promise.
        unsafe { begun::send_from(to, port, tag, at, Vec::new()) }.map(|request| request.0 as c_int)
    }))
}

/// # Safety
/// `buffer` is writable for `length` bytes, and nobody else's, until the message has been waited for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_receive_begin(
    port: c_int,
    process: c_int,
    tag: c_int,
    buffer: *mut c_void,
    length: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    let room = unsafe { room(buffer, length) };
    answer(room.and_then(|room| {
        let at = (room.as_mut_ptr(), room.len());
        // SAFETY: the caller's promise.
        unsafe { begun::receive_into(pick(port, process, tag), at, Vec::new()) }.map(|request| request.0 as c_int)
    }))
}

/// # Safety
/// `message` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_test(request: c_int, message: *mut CMessage) -> c_int {
    match begun::test(number(request)).transpose() {
        None => 0,
        Some(done) => {
            let room = done.as_ref().map_or(0, |done| done.room);
            // SAFETY: the caller's promise.
            let code = unsafe { received(done.map(|done| done.message), room, message) };
            if code == 0 { 1 } else { code }
        }
    }
}

/// # Safety
/// `message` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_wait(request: c_int, message: *mut CMessage) -> c_int {
    let done = begun::wait(number(request));
    let room = done.as_ref().map_or(0, |done| done.room);
    // SAFETY: the caller's promise.
    unsafe { received(done.map(|done| done.message), room, message) }
}

/// Numbers of the caller.
///
/// # Safety
/// `at` is null or leads to `count` of them.
unsafe fn numbers(at: *const c_int, count: c_int) -> Result<Vec<RequestNumber>> {
    let count = usize::try_from(count).map_err(|_| NativeError::argument(format!("{count} requests")))?;
    if at.is_null() && count > 0 {
        return Err(null("the list of requests"));
    }
    // SAFETY: the caller's promise.
    Ok((0..count).map(|place| number(unsafe { *at.add(place) })).collect())
}

/// # Safety
/// `requests` leads to `count` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_wait_any(requests: *const c_int, count: c_int, milliseconds: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let requests = unsafe { numbers(requests, count) };
    let first = requests.and_then(|requests| begun::wait_any(&requests, patience(milliseconds)));
    answer(first.map(|first| first.map_or(0, |which| which as c_int + 1)))
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_cancel(request: c_int) -> c_int {
    answer(begun::cancel(number(request)).map(c_int::from))
}

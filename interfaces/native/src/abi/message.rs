//! Messages.

use super::{CMessage, CPick, answer, bytes, pick, picks, received, room, store};
use crate::known::PortNumber;
use crate::message;
use std::ffi::{c_int, c_void};
use weft_ports::Peer;

/// # Safety
/// `data` is readable for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_send(
    process: c_int,
    port: c_int,
    tag: c_int,
    data: *const c_void,
    length: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    let data = unsafe { bytes(data, length) };
    answer(data.and_then(|data| {
        message::send(Peer(process as u32), PortNumber(port as u32), tag, data)?;
        Ok(0)
    }))
}

/// # Safety
/// `data` is readable for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_send_copy(
    process: c_int,
    port: c_int,
    tag: c_int,
    data: *const c_void,
    length: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    let data = unsafe { bytes(data, length) };
    answer(data.and_then(|data| {
        message::send_copy(Peer(process as u32), PortNumber(port as u32), tag, data.into())?;
        Ok(0)
    }))
}

/// # Safety
/// `buffer` is writable for `length` bytes; `message` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_receive(
    port: c_int,
    process: c_int,
    tag: c_int,
    buffer: *mut c_void,
    length: usize,
    message: *mut CMessage,
) -> c_int {
    // SAFETY: the caller's promise.
    let room = unsafe { room(buffer, length) };
    let outcome = room.and_then(|room| message::receive(pick(port, process, tag), room));
    // SAFETY: the caller's promise.
    unsafe { received(outcome, length, message) }
}

/// # Safety
/// `choices` leads to `count` of them; else as [`weft_receive`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_receive_first(
    choices: *const CPick,
    count: c_int,
    buffer: *mut c_void,
    length: usize,
    message: *mut CMessage,
) -> c_int {
    // SAFETY: the caller's promise.
    let (choices, room) = unsafe { (picks(choices, count), room(buffer, length)) };
    let outcome = choices.and_then(|choices| message::receive_first(&choices, room?));
    // SAFETY: the caller's promise.
    unsafe { received(outcome, length, message) }
}

/// # Safety
/// `choices` leads to `count` of them; `message` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_probe(choices: *const CPick, count: c_int, message: *mut CMessage) -> c_int {
    // SAFETY: the caller's promise.
    let choices = unsafe { picks(choices, count) };
    answer(choices.and_then(|choices| message::probe(&choices)).map(|found| match found {
        None => 0,
        Some((which, seen)) => {
            // SAFETY: the caller's promise.
            unsafe { store(message, CMessage::new(&seen)) };
            which as c_int + 1
        }
    }))
}

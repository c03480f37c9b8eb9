//! `pan_msg_*`.

use super::{count, give, object, take};
use crate::failure::fail;
use crate::fragments::Fragment;
use crate::message::{ALIGNMENT, PandaMessage, ReleaseFunction};
use std::ffi::{c_int, c_void};

type Message = *mut PandaMessage;

/// Bytes of a piece, whose alignment is one that pieces have.
#[inline]
fn piece(call: &str, length: c_int, align: c_int) -> usize {
    if !matches!(align, 0..=8) {
        fail(&format!("{call}: an alignment of {align}, of at most {ALIGNMENT}"));
    }
    count(call, length)
}

#[inline]
fn found(call: &str, message: &PandaMessage, length: c_int, place: Option<*mut u8>) -> *mut c_void {
    match place {
        Some(place) => place.cast(),
        None => fail(&format!("{call}: a piece of {length} bytes, of a message with {} at its head", message.length())),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_msg_create() -> Message {
    give(PandaMessage::default())
}

/// # Safety
/// It is a message, and the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_msg_clear(message: Message) {
    // SAFETY: the caller's promise.
    match unsafe { object("pan_msg_clear", message) }.releases.pop() {
        // SAFETY: as above: it was pushed with this argument, and clears the message itself.
        Some((release, argument)) => unsafe { release(message, argument) },
        // SAFETY: as above.
        None => drop(unsafe { take(message) }),
    }
}

on_object! { object:
    pan_msg_empty(message: Message) { message.empty() }
    pan_msg_push(message: Message, length: c_int, align: c_int) -> *mut c_void {
        message.push(piece("pan_msg_push", length, align)).cast()
    }
    pan_msg_pop(message: Message, length: c_int, align: c_int) -> *mut c_void {
        let place = message.pop(piece("pan_msg_pop", length, align));
        found("pan_msg_pop", message, length, place)
    }
    pan_msg_look(message: Message, length: c_int, align: c_int) -> *mut c_void {
        let place = message.look(piece("pan_msg_look", length, align));
        found("pan_msg_look", message, length, place)
    }
    pan_msg_release_push(message: Message, release: ReleaseFunction, argument: *mut c_void) {
        message.releases.push((release, argument))
    }
    pan_msg_release_pop(message: Message) {
        if message.releases.pop().is_none() {
            fail("pan_msg_release_pop: the message has no release function");
        }
    }
    pan_msg_fragment(message: Message, point: *mut c_void) -> *mut Fragment {
        message.cut(super::points::number("pan_msg_fragment", point))
    }
    pan_msg_next(message: Message) -> *mut Fragment {
        message.cut_next().map_or(std::ptr::null_mut(), std::ptr::from_mut)
    }
}

/// # Safety
/// Both are messages, two, and the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_msg_copy(message: Message, copy: Message) {
    // SAFETY: the caller's promise.
    unsafe { object("pan_msg_copy", copy).copy_from(object("pan_msg_copy", message)) };
}

/// # Safety
/// Both are the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_msg_assemble(message: Message, fragment: *mut Fragment, _preserve: c_int) {
    // SAFETY: the caller's promise.
    let fragment = unsafe { object("pan_msg_assemble", fragment) };
    // SAFETY: as above.
    unsafe { object("pan_msg_assemble", message) }.append(&fragment.data);
}

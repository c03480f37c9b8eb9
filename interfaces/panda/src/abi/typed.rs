//! `tm_*`: values of a type as pieces of messages.

use super::threads::PandaThread;
use super::{object, pset};
use crate::abi::pset::PlatformSet;
use crate::failure::fail;
use crate::message::PandaMessage;
use crate::shared::time::PandaTime;
use std::ffi::{c_double, c_int, c_ulong, c_void};

type Message = *mut PandaMessage;

/// # Safety
/// It is a message of the program's.
unsafe fn push<T>(call: &str, message: Message, value: T) {
    // SAFETY: the caller's promise, and a piece has the strictest alignment that there is here.
    unsafe { object(call, message).push(size_of::<T>()).cast::<T>().write(value) };
}

/// The piece at the head, which stays there if it is only looked at.
///
/// # Safety
/// It is a message of the program's.
unsafe fn head(call: &str, message: Message, length: usize, stays: bool) -> *mut u8 {
    // SAFETY: the caller's promise.
    let message = unsafe { object(call, message) };
    let place = if stays { message.look(length) } else { message.pop(length) };
    place.unwrap_or_else(|| fail(&format!("{call}: the message has {} bytes at its head", message.length())))
}

/// Reads the piece at the head; nobody may want it.
///
/// # Safety
/// It is a message of the program's, whose head has such a value; there is a place for it, or none is wanted.
unsafe fn read<T: Copy>(call: &str, message: Message, into: *mut T, stays: bool) {
    // SAFETY: the caller's promise.
    unsafe {
        let place = head(call, message, size_of::<T>(), stays).cast::<T>();
        if !into.is_null() {
            into.write(place.read());
        }
    }
}

/// The functions of a type that take a piece, or look at it, by one that reads it.
macro_rules! reads {
    ($read:ident $type:ty: $pop:ident $(, $look:ident)?) => {
        /// # Safety
        /// It is a message of the program's, with such a value at its head; the place is null or the value's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $pop(message: Message, into: *mut $type) {
            // SAFETY: the caller's promise.
            unsafe { $read(stringify!($pop), message, into, false) };
        }

        $(
            /// # Safety
            /// As the pop.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $look(message: Message, into: *mut $type) {
                // SAFETY: the caller's promise.
                unsafe { $read(stringify!($look), message, into, true) };
            }
        )?
    };
}

/// The functions of a type of C: push, pop, and look, where there is one.
macro_rules! typed {
    ($type:ty: $push:ident, $($read:ident),+) => {
        /// # Safety
        /// It is a message of the program's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $push(message: Message, value: $type) {
            // SAFETY: the caller's promise.
            unsafe { push(stringify!($push), message, value) };
        }

        reads!(read $type: $($read),+);
    };
}

typed!(c_int: tm_push_int, tm_pop_int, tm_look_int);
typed!(c_ulong: tm_push_ulong, tm_pop_ulong);
typed!(c_double: tm_push_double, tm_pop_double, tm_look_double);
typed!(*mut c_void: tm_push_ptr, tm_pop_ptr, tm_look_ptr);
typed!(*mut PandaThread: tm_push_tid, tm_pop_tid, tm_look_tid);
reads!(read PandaTime: tm_pop_time, tm_look_time);
reads!(read_set PlatformSet: tm_pop_pset, tm_look_pset);

/// # Safety
/// Both are the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_push_time(message: Message, value: *mut PandaTime) {
    // SAFETY: the caller's promise.
    unsafe { push("tm_push_time", message, *object("tm_push_time", value)) };
}

fn set_bytes() -> usize {
    pset::pan_pset_size() as usize
}

/// # Safety
/// Both are the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_push_pset(message: Message, set: *mut PlatformSet) {
    // SAFETY: the caller's promise.
    unsafe { pset::pan_pset_marshall(set, object("tm_push_pset", message).push(set_bytes()).cast()) };
}

/// # Safety
/// Both are the program's, or no set is wanted.
unsafe fn read_set(call: &str, message: Message, into: *mut PlatformSet, stays: bool) {
    // SAFETY: the caller's promise.
    unsafe {
        let place = head(call, message, set_bytes(), stays);
        if !into.is_null() {
            pset::pan_pset_unmarshall(into, place.cast());
        }
    }
}

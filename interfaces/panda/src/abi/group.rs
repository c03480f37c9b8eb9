//! `pan_group_*` and `pan_bg_*`.

use super::{assert_open, count, object, platforms};
use crate::failure::fail;
use crate::membership;
use crate::message::PandaMessage;
use crate::upcalls::{GroupFunction, SentMessage};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Programs hold a group as a pointer to nothing: its number and one.
type Group = *mut c_void;

fn number(call: &str, group: Group) -> usize {
    assert_open(call);
    group.addr().checked_sub(1).unwrap_or_else(|| fail(&format!("{call}: no group")))
}

/// # Safety
/// It is a message of the program's.
unsafe fn shared(call: &str, message: *mut PandaMessage) -> Arc<[u8]> {
    // SAFETY: the caller's promise.
    Arc::from(&*unsafe { object(call, message) }.bytes())
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_group_init() {
    assert_open("pan_group_init");
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_group_end() {}

/// # Safety
/// The name is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_group_join(name: *const c_char, receive: GroupFunction) -> Group {
    assert_open("pan_group_join");
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    std::ptr::without_provenance_mut(membership::join("pan_group_join", &name, Some(receive), true) + 1)
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_group_leave(group: Group) {
    membership::leave("pan_group_leave", number("pan_group_leave", group));
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_group_clear(group: Group) {
    membership::clear(number("pan_group_clear", group));
}

/// # Safety
/// It is a message of the program's, and the library's until the handler here gets it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_group_send(group: Group, message: *mut PandaMessage) {
    let number = number("pan_group_send", group);
    // SAFETY: the caller's promise.
    let bytes = unsafe { shared("pan_group_send", message) };
    membership::send("pan_group_send", number, bytes, Some(SentMessage(message)));
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_group_await_size(group: Group, size: c_int) {
    let number = number("pan_group_await_size", group);
    membership::await_size("pan_group_await_size", number, count("pan_group_await_size", size));
}

/// What is known of a group, for the header's functions with lists.
///
/// # Safety
/// The name is a string, and the place is for a number, or for a pointer where a statistic is asked for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_panda_group_parameter(group: Group, name: *const c_char, place: *mut c_void) {
    let (members, first) = membership::members("pan_group_va_get_g_params", number("pan_group_va_get_g_params", group));
    // SAFETY: the caller's promise.
    let asked = match unsafe { CStr::from_ptr(name) }.to_bytes() {
        b"PAN_GRP_n_members" => members as c_int,
        b"PAN_GRP_sequencer" => first.map_or(-1, |first| first as c_int),
        _ => {
            // SAFETY: as above.
            unsafe { super::parameters::weft_panda_parameter(name, place, 1) };
            return;
        }
    };
    // SAFETY: as above.
    unsafe { place.cast::<c_int>().write(asked) };
}

const SYNC: c_int = 0;
const SYNC2: c_int = 1;
const ASYNC: c_int = 2;

/// The number of the group of all platforms, and one.
static ALL: AtomicUsize = AtomicUsize::new(0);

fn all(call: &str) -> usize {
    assert_open(call);
    let group = ALL.load(Ordering::Relaxed).checked_sub(1);
    group.unwrap_or_else(|| fail(&format!("{call}: called before pan_bg_init or after pan_bg_end")))
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_bg_init() {
    assert_open("pan_bg_init");
    if ALL.load(Ordering::Relaxed) == 0 {
        ALL.store(membership::join("pan_bg_init", "all platforms", None, false) + 1, Ordering::Relaxed);
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_bg_end() {
    let group = all("pan_bg_end");
    // Who has not joined yet would have nobody to ask.
    membership::await_size("pan_bg_end", group, 1);
    membership::leave("pan_bg_end", group);
    membership::clear(group);
    ALL.store(0, Ordering::Relaxed);
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_bg_register(function: GroupFunction) {
    let group = all("pan_bg_register");
    if !membership::set_handler("pan_bg_register", group, function) {
        fail("pan_bg_register: there is a handler");
    }
}

/// # Safety
/// It is a message of the program's; of `BG_MODE_ASYNC` it is the library's from here on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_bg_send_message(message: *mut PandaMessage, mode: c_int) -> c_int {
    let call = "pan_bg_send_message";
    let group = all(call);
    if !matches!(mode, SYNC | SYNC2 | ASYNC) {
        fail(&format!("{call}: mode {mode}, of BG_MODE_SYNC 0, BG_MODE_SYNC2 1 and BG_MODE_ASYNC 2"));
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { shared(call, message) };
    // Nobody misses it who has not joined yet.
    membership::await_size(call, group, platforms() as usize);
    membership::send(call, group, bytes, None);
    match mode {
        SYNC => membership::settle(call, group),
        // SAFETY: the caller's promise.
        ASYNC => unsafe { super::message::pan_msg_clear(message) },
        _ => return 1,
    }
    -1
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_bg_finish_send(_entry: c_int) {
    membership::settle("pan_bg_finish_send", all("pan_bg_finish_send"));
}

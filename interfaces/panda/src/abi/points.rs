//! `pan_nsap_*`, `pan_fragment_*` and `pan_comm_*`.

use super::{assert_open, count, give, object, platforms};
use crate::abi::pset::PlatformSet;
use crate::failure::{fail, platform};
use crate::fragments::{Fragment, HEADER_BYTES};
use crate::labels::{MessageLabel, MessagePurpose, NUMBERS};
use crate::message::{Content, words_of};
use crate::points::{FragmentFunction, Point, SMALL_BYTES, SmallFunction};
use crate::sending;
use crate::world::WORLD;
use std::ffi::{c_int, c_void};
use weft_fabric::Peer;

/// Programs hold a service point as a pointer to nothing: its number and one.
pub fn number(call: &str, point: *mut c_void) -> u32 {
    let number = u32::try_from(point.addr()).ok().and_then(|number| number.checked_sub(1));
    number.unwrap_or_else(|| fail(&format!("{call}: no service point")))
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_nsap_create() -> *mut c_void {
    assert_open("pan_nsap_create");
    let number = WORLD.enter().points.add();
    if number >= NUMBERS {
        fail("pan_nsap_create: too many service points");
    }
    std::ptr::without_provenance_mut(number as usize + 1)
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_nsap_clear(point: *mut c_void) {
    if platforms() > 0 {
        WORLD.enter().points.set(number("pan_nsap_clear", point), None);
    }
}

fn set(call: &str, number: u32, point: Point) {
    assert_open(call);
    let mut world = WORLD.enter();
    if !world.points.set(number, Some(point)) {
        fail(&format!("{call}: no service point"));
    }
    world.look_at_early();
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_nsap_fragment(point: *mut c_void, handler: FragmentFunction, header: c_int, _flags: c_int) {
    let header = count("pan_nsap_fragment", header);
    if header > HEADER_BYTES {
        fail(&format!("pan_nsap_fragment: a header of {header} bytes, of at most {HEADER_BYTES}"));
    }
    set("pan_nsap_fragment", number("pan_nsap_fragment", point), Point::Fragments { handler, header });
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_nsap_small(point: *mut c_void, handler: SmallFunction, length: c_int, _flags: c_int) {
    let length = count("pan_nsap_small", length);
    if length > SMALL_BYTES {
        fail(&format!("pan_nsap_small: {length} bytes, of at most {SMALL_BYTES}"));
    }
    set("pan_nsap_small", number("pan_nsap_small", point), Point::Small { handler, length });
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_fragment_create() -> *mut Fragment {
    give(Fragment::default())
}

clears! {
    pan_fragment_clear: Fragment;
}

on_object! { object:
    pan_fragment_nsap(fragment: *mut Fragment, point: *mut c_void) {
        fragment.point = number("pan_fragment_nsap", point)
    }
    pan_fragment_header(fragment: *mut Fragment) -> *mut c_void { fragment.header.as_mut_ptr().cast() }
    pan_fragment_flags(fragment: *mut Fragment) -> c_int { fragment.flags }
    pan_fragment_length(fragment: *mut Fragment) -> c_int { fragment.data.len() as c_int }
}

/// # Safety
/// Both are fragments, two, that the program may use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_fragment_copy(fragment: *mut Fragment, copy: *mut Fragment, _preserve: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { object("pan_fragment_copy", copy).clone_from(object("pan_fragment_copy", fragment)) };
    1
}

/// What a fragment is sent as.
///
/// # Safety
/// It is a fragment that the program may use.
unsafe fn fragment_as_sent(call: &str, fragment: *mut Fragment) -> (MessageLabel, Content) {
    assert_open(call);
    // SAFETY: the caller's promise.
    let fragment = unsafe { object(call, fragment) };
    let Some(Point::Fragments { header, .. }) = WORLD.enter().points.at(fragment.point) else {
        fail(&format!("{call}: the service point is none for fragments"))
    };
    (MessageLabel { what: MessagePurpose::Point(fragment.point), beside: fragment.flags as u32 }, {
        let bytes = fragment.bytes(header);
        Content { words: words_of(&bytes), length: bytes.len() }
    })
}

/// # Safety
/// It is a fragment that the program may use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_comm_unicast_fragment(to: c_int, fragment: *mut Fragment) {
    let call = "pan_comm_unicast_fragment";
    // SAFETY: the caller's promise.
    let (label, content) = unsafe { fragment_as_sent(call, fragment) };
    sending::give(call, platform(call, to, platforms()), label, content);
}

/// # Safety
/// Both are the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_comm_multicast_fragment(to: *mut PlatformSet, fragment: *mut Fragment) {
    let call = "pan_comm_multicast_fragment";
    // SAFETY: the caller's promise.
    let (label, content) = unsafe { fragment_as_sent(call, fragment) };
    // SAFETY: as above.
    multicast(call, unsafe { object(call, to) }, label, content.bytes());
}

fn multicast(call: &'static str, to: &PlatformSet, label: MessageLabel, bytes: &[u8]) {
    for to in to.members() {
        sending::give(call, Peer(to), label, Content { words: words_of(bytes), length: bytes.len() });
    }
}

/// What small data is sent as.
///
/// # Safety
/// The data is as long as the service point says.
unsafe fn small_as_sent<'a>(call: &str, point: *mut c_void, data: *const c_void) -> (MessageLabel, &'a [u8]) {
    assert_open(call);
    let number = number(call, point);
    let Some(Point::Small { length, .. }) = WORLD.enter().points.at(number) else {
        fail(&format!("{call}: the service point is none for small data"))
    };
    // SAFETY: the caller's promise.
    let bytes = if length == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data.cast(), length) } };
    (MessageLabel { what: MessagePurpose::Point(number), beside: 0 }, bytes)
}

/// # Safety
/// The data is as long as the service point says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_comm_unicast_small(to: c_int, point: *mut c_void, data: *const c_void) {
    let call = "pan_comm_unicast_small";
    // SAFETY: the caller's promise.
    let (label, bytes) = unsafe { small_as_sent(call, point, data) };
    let content = Content { words: words_of(bytes), length: bytes.len() };
    sending::give(call, platform(call, to, platforms()), label, content);
}

/// # Safety
/// As [`pan_comm_unicast_small`]; the set is the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_comm_multicast_small(to: *mut PlatformSet, point: *mut c_void, data: *const c_void) {
    let call = "pan_comm_multicast_small";
    // SAFETY: the caller's promise.
    let (label, bytes) = unsafe { small_as_sent(call, point, data) };
    // SAFETY: as above.
    multicast(call, unsafe { object(call, to) }, label, bytes);
}

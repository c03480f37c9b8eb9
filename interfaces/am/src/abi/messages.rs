//! Requests and replies, polling, and what handlers ask of their messages.

use super::{arguments, bytes, put};
use crate::failure::{Answer, answer, bad};
use crate::message::{AmCategory, LONG_BYTES, MEDIUM_BYTES, Purpose};
use crate::name::EndpointName;
use crate::outbound::{AmOutgoing, reply, request};
use crate::polling::{poll, wait_polling};
use crate::tables::AmHandle;
use crate::token::{MessageToken, with_token};
use crate::world::enter;
use std::ffi::{c_int, c_void};
use weft_fabric::Peer;

/// Most that can be seen of a program's memory for one message.
fn most(category: AmCategory) -> usize {
    if category == AmCategory::Long { LONG_BYTES } else { MEDIUM_BYTES }
}

/// # Safety
/// `source` is readable for `length` bytes, and `values` for `count` arguments.
#[inline]
unsafe fn send(
    place: AmHandle,
    to: u32,
    mut out: AmOutgoing<'_>,
    source: (*const c_void, usize),
    values: (c_int, *const i32),
) -> Answer<()> {
    enter()?;
    let from = place.endpoint().ok_or(bad("no such endpoint"))?;
    // SAFETY: the caller's promise.
    (out.arguments, out.bytes) =
        unsafe { (arguments(values.0, values.1)?, bytes(source.0, source.1, most(out.category))?) };
    request(from, to, &out)
}

/// # Safety
/// As [`send`].
#[inline]
unsafe fn send_back(
    token: *mut c_void,
    mut out: AmOutgoing<'_>,
    source: (*const c_void, usize),
    values: (c_int, *const i32),
) -> Answer<()> {
    // SAFETY: the caller's promise.
    (out.arguments, out.bytes) =
        unsafe { (arguments(values.0, values.1)?, bytes(source.0, source.1, most(out.category))?) };
    of_token(token, |token| reply(token, &out))?
}

fn of_token<R>(token: *const c_void, what: impl FnOnce(&MessageToken<'_>) -> R) -> Answer<R> {
    enter()?;
    with_token(token, what).ok_or(bad("the token is of no message whose handler runs here"))
}

fn outgoing(call: &'static str, handler: u8, category: AmCategory) -> AmOutgoing<'static> {
    AmOutgoing { call, handler, category, arguments: &[], bytes: &[], offset: 0, keeps: false }
}

/// # Safety
/// `values` has `count` arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_am_request(
    ep: AmHandle,
    to: u32,
    handler: u8,
    count: c_int,
    values: *const i32,
) -> c_int {
    let out = outgoing("AM_Request", handler, AmCategory::Short);
    // SAFETY: the caller's promise; there are no bytes.
    answer(out.call, unsafe { send(ep, to, out, (std::ptr::null(), 0), (count, values)) })
}

/// # Safety
/// `source` is readable for `length` bytes, and `values` for `count` arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_am_request_medium(
    ep: AmHandle,
    to: u32,
    handler: u8,
    source: *const c_void,
    length: usize,
    count: c_int,
    values: *const i32,
) -> c_int {
    let out = outgoing("AM_RequestI", handler, AmCategory::Medium);
    // SAFETY: the caller's promise.
    answer(out.call, unsafe { send(ep, to, out, (source, length), (count, values)) })
}

/// # Safety
/// As [`weft_am_request_medium`]; where `async` is set the bytes stay as they are until the answer has come.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_am_request_long(
    ep: AmHandle,
    to: u32,
    handler: u8,
    source: *const c_void,
    length: usize,
    offset: usize,
    keeps: c_int,
    count: c_int,
    values: *const i32,
) -> c_int {
    let out = AmOutgoing {
        offset: offset as u64,
        keeps: keeps != 0,
        ..outgoing("AM_RequestXfer", handler, AmCategory::Long)
    };
    // SAFETY: the caller's promise.
    answer(out.call, unsafe { send(ep, to, out, (source, length), (count, values)) })
}

/// # Safety
/// `values` has `count` arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_am_reply(token: *mut c_void, handler: u8, count: c_int, values: *const i32) -> c_int {
    let out = outgoing("AM_Reply", handler, AmCategory::Short);
    // SAFETY: the caller's promise; there are no bytes.
    answer(out.call, unsafe { send_back(token, out, (std::ptr::null(), 0), (count, values)) })
}

/// # Safety
/// As [`weft_am_request_medium`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_am_reply_medium(
    token: *mut c_void,
    handler: u8,
    source: *const c_void,
    length: usize,
    count: c_int,
    values: *const i32,
) -> c_int {
    let out = outgoing("AM_ReplyI", handler, AmCategory::Medium);
    // SAFETY: the caller's promise.
    answer(out.call, unsafe { send_back(token, out, (source, length), (count, values)) })
}

/// # Safety
/// As [`weft_am_request_medium`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_am_reply_long(
    token: *mut c_void,
    handler: u8,
    source: *const c_void,
    length: usize,
    offset: usize,
    count: c_int,
    values: *const i32,
) -> c_int {
    let out = AmOutgoing { offset: offset as u64, ..outgoing("AM_ReplyXfer", handler, AmCategory::Long) };
    // SAFETY: the caller's promise.
    answer(out.call, unsafe { send_back(token, out, (source, length), (count, values)) })
}

#[unsafe(no_mangle)]
pub extern "C" fn AM_Poll(place: AmHandle) -> c_int {
    let poll = || {
        let mut world = enter()?;
        let bundle = place.bundle().ok_or(bad("no such bundle"))?;
        world.tables.bundle(bundle).ok_or(bad("no such bundle"))?;
        drop(world);
        poll(bundle);
        Ok(())
    };
    answer("AM_Poll", poll())
}

#[unsafe(no_mangle)]
pub extern "C" fn AM_WaitSema(place: AmHandle) -> c_int {
    let wait = || {
        let mut world = enter()?;
        let id = place.bundle().ok_or(bad("no such bundle"))?;
        let mask = world.tables.bundle(id).ok_or(bad("no such bundle"))?.event_mask;
        drop(world);
        if mask == 0 {
            return Err(bad("the event mask is AM_NOEVENTS, so that this would never return"));
        }
        // It is polled, so that who only waits gets its messages.
        let none = crate::tables::BundleId::NONE;
        wait_polling("AM_WaitSema", None, none, |world| world.tables.has_message(id).then_some(()));
        poll(id);
        Ok(())
    };
    answer("AM_WaitSema", wait())
}

/// # Safety
/// `name` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AM_GetSourceEndpoint(token: *mut c_void, name: *mut EndpointName) -> c_int {
    let ask = || {
        let (rank, from) = of_token(token, |token| (token.rank, token.head.from))?;
        let host = enter()?.endpoint.host_of(Peer(rank));
        // SAFETY: the caller's promise.
        unsafe { put(name, EndpointName::new(rank, host, from)) }
    };
    answer("AM_GetSourceEndpoint", ask())
}

/// # Safety
/// `place` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AM_GetDestEndpoint(token: *mut c_void, place: *mut AmHandle) -> c_int {
    // SAFETY: the caller's promise.
    let ask = || unsafe { put(place, AmHandle::of_endpoint(of_token(token, |token| token.head.to)?)) };
    answer("AM_GetDestEndpoint", ask())
}

/// # Safety
/// `tag` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AM_GetMsgTag(token: *mut c_void, tag: *mut u64) -> c_int {
    // SAFETY: the caller's promise.
    let ask = || unsafe { put(tag, of_token(token, |token| token.head.tag)?) };
    answer("AM_GetMsgTag", ask())
}

/// The index under which the receiver has mapped the sender.
///
/// # Safety
/// `index` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AMUDP_GetSourceId(token: *mut c_void, index: *mut c_int) -> c_int {
    let ask = || {
        let (to, rank, from) = of_token(token, |token| (token.head.to, token.rank, token.head.from))?;
        let mut world = enter()?;
        let endpoint = world.tables.endpoint(to).ok_or(bad("the endpoint was given up"))?;
        let found = endpoint.index_of(rank, from).ok_or(bad("the sender is not mapped here"))?;
        // SAFETY: the caller's promise.
        unsafe { put(index, found as c_int) }
    };
    answer("AMUDP_GetSourceId", ask())
}

/// # Safety
/// The pointers are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AMUDP_GetTokenInfo(
    token: *mut c_void,
    handler: *mut u8,
    category: *mut u32,
    is_request: *mut c_int,
) -> c_int {
    let ask = || {
        let (of, kind, asks) = of_token(token, |MessageToken { head, .. }| {
            (head.handler, head.category, head.purpose == Purpose::Request)
        })?;
        // SAFETY: the caller's promise.
        unsafe { put(handler, of).and(put(category, kind as u32)).and(put(is_request, c_int::from(asks))) }
    };
    answer("AMUDP_GetTokenInfo", ask())
}

#[unsafe(no_mangle)]
pub extern "C" fn AMUDP_enEqual(one: EndpointName, other: EndpointName) -> c_int {
    c_int::from(one == other)
}

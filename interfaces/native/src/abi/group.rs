//! Groups.

use super::{answer, bytes, store, text};
use crate::error::{ErrorKind, NativeError, Result};
use crate::group_desk::{GroupNews, GroupNumber, JoinRules};
use crate::groups;
use std::ffi::{c_char, c_int, c_void};
use std::time::Duration;

/// `WEFT_GROUP_SAFE` and `WEFT_GROUP_SILENCE`.
const SAFE: c_int = 1;
const SILENCE: c_int = 2;

/// What has been received.
const MESSAGE: c_int = 1;
const MEMBERS: c_int = 2;
const EXCLUDED: c_int = 3;

/// `struct weft_group_event`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CGroupEvent {
    process: c_int,
    members: c_int,
    place: u64,
    length: usize,
}

fn number(group: c_int) -> GroupNumber {
    GroupNumber(group as u32)
}

/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_group_join(name: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { text(name, "the name") };
    answer(name.and_then(|name| {
        if flags & !(SAFE | SILENCE) != 0 {
            let text = format!("flags {flags}: 0, or of WEFT_GROUP_SAFE and WEFT_GROUP_SILENCE");
            return Err(NativeError::argument(text));
        }
        let rules = JoinRules { safe: flags & SAFE != 0, counts_silence: flags & SILENCE != 0 };
        groups::join(name, rules).map(|group| group.0 as c_int)
    }))
}

/// # Safety
/// `data` is readable for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_group_send(group: c_int, data: *const c_void, length: usize) -> c_int {
    // SAFETY: the caller's promise.
    let data = unsafe { bytes(data, length) };
    answer(data.and_then(|data| groups::send(number(group), data.into()).map(|()| 0)))
}

/// What is told of news, with the bytes of a message in `room`; and whether it is received by that.
fn take(news: &GroupNews, room: &mut [u8]) -> ((c_int, CGroupEvent), bool) {
    let none = CGroupEvent { process: -1, members: 0, place: 0, length: 0 };
    match news {
        GroupNews::Message { from, place, bytes } => {
            let fits = bytes.len() <= room.len();
            let copied = if fits { bytes.len() } else { 0 };
            room[..copied].copy_from_slice(&bytes[..copied]);
            ((MESSAGE, CGroupEvent { process: from.0 as c_int, place: *place, length: bytes.len(), ..none }), fits)
        }
        GroupNews::Members(members) => ((MEMBERS, CGroupEvent { members: members.len() as c_int, ..none }), true),
        GroupNews::Excluded => ((EXCLUDED, none), true),
    }
}

/// # Safety
/// `buffer` is writable for `length` bytes; `event` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_group_receive(
    group: c_int,
    buffer: *mut c_void,
    length: usize,
    milliseconds: c_int,
    event: *mut CGroupEvent,
) -> c_int {
    // SAFETY: the caller's promise.
    let room = unsafe { super::room(buffer, length) };
    let patience = u64::try_from(milliseconds).ok().map(Duration::from_millis);
    let found = room.and_then(|room| {
        let (length, mut fits) = (room.len(), true);
        let found = groups::receive(number(group), patience, |news| {
            let (told, taken) = take(news, room);
            fits = taken;
            (told, taken)
        })?;
        Ok((found, length, fits))
    });
    answer(found.and_then(|(found, room, fits)| {
        let Some((kind, told)) = found else { return Ok(0) };
        // SAFETY: the caller's promise.
        unsafe { store(event, told) };
        if fits { Ok(kind) } else { Err(too_long(told.length, room)) }
    }))
}

#[cold]
fn too_long(length: usize, room: usize) -> NativeError {
    let text = format!("the message has {length} bytes, and the room {room}: it is still there");
    NativeError::new(ErrorKind::Truncated, text)
}

/// # Safety
/// `processes` is null or writable for `room` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_group_members(group: c_int, processes: *mut c_int, room: c_int) -> c_int {
    let members: Result<_> = groups::members(number(group));
    answer(members.map(|members| {
        let room = if processes.is_null() { 0 } else { usize::try_from(room).unwrap_or(0) };
        for (at, member) in members.iter().take(room).enumerate() {
            // SAFETY: the caller's promise; the place is within the room.
            unsafe { processes.add(at).write(member.0 as c_int) };
        }
        members.len() as c_int
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_group_leave(group: c_int) -> c_int {
    answer(groups::leave(number(group)).map(|()| 0))
}

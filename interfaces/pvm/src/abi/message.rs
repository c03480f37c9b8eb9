//! Sending and receiving.

use super::{items, put, told};
use crate::buffer::Encoding;
use crate::errors::Error;
use crate::library::{PvmLibrary, enrolled, library, my_context, my_tid};
use crate::receive::{WaitPatience, probe, receive, receive_in, receive_into};
use crate::source::{read_source, source_word};
use crate::wanted::WantedMessage;
use std::borrow::Cow;
use std::ffi::{c_int, c_void};
use std::time::{Duration, Instant};
use weft_ports::Envelope;
use weft_pvm_machine::tid;

/// Whether a message may have this tag and go to these tasks.
fn check(library: &PvmLibrary, tids: &[c_int], tag: c_int) -> Result<(), Error> {
    let is_good = tag >= 0 && tids.iter().all(|to| tid::is_task(*to));
    if is_good || library.options.allows_reserved() { Ok(()) } else { Err(Error::BAD_PARAM) }
}

/// The envelope of a message of this task.
fn envelope(tag: c_int, encoding: Encoding) -> Envelope {
    Envelope { context: my_context() as u32, tag, source: source_word(my_tid(), encoding) }
}

/// Sends the active send buffer to these tasks.
fn send(tids: &[c_int], tag: c_int) -> Result<(), Error> {
    let mut library = enrolled()?;
    check(&library, tids, tag)?;
    let PvmLibrary { buffers, task, .. } = &mut *library;
    let id = buffers.active_send();
    if id <= 0 {
        return Err(Error::NO_BUF);
    }
    let outgoing = buffers.outgoing(id)?;
    let envelope = envelope(tag, outgoing.encoding);
    let Some(task) = task else { return Err(Error::SYS_ERR) };
    let sent = tids.iter().try_for_each(|to| task.send(*to, envelope, &outgoing.bytes));
    if sent.is_err() {
        return Err(library.lose_machine());
    }
    if let [to] = tids {
        buffers.set_sent(id, *to, tag, my_context());
    }
    Ok(())
}

answers! {
    pvm_send c"pvm_send"(to, tag) = send(&[to], tag).map(|()| 0);
    pvm_recv c"pvm_recv"(tid, tag) = receive_active("pvm_recv", tid, tag, WaitPatience::Forever);
    pvm_nrecv c"pvm_nrecv"(tid, tag) = receive_active("pvm_nrecv", tid, tag, WaitPatience::None);
    pvm_probe c"pvm_probe"(tid, tag) = {
        let wanted = enrolled().and_then(|library| wanted(&library, tid, tag));
        wanted.and_then(probe).map(Option::unwrap_or_default)
    };
}

/// Each task gets one, however often it is named, and the sender none.
///
/// # Safety
/// `tids` has `count` items.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_mcast(tids: *const c_int, count: c_int, tag: c_int) -> c_int {
    if count < 0 {
        return told(c"pvm_mcast", Err(Error::BAD_PARAM));
    }
    // SAFETY: the caller's promise.
    let tids = unsafe { items(tids, count) };
    told(c"pvm_mcast", multicast(tids, tag).map(|()| 0))
}

/// As `pvm_mcast`.
pub(super) fn multicast(tids: &[c_int], tag: c_int) -> Result<(), Error> {
    let mut to = tids.to_vec();
    to.sort_unstable();
    to.dedup();
    drop(enrolled()?);
    to.retain(|tid| *tid != my_tid());
    send(&to, tag)
}

/// ByteString of an item of these types.
pub(super) fn size_of_type(kind: c_int) -> Result<usize, Error> {
    Ok(match kind {
        // A string has no length of its own.
        0 => return Err(Error::NOT_IMPL),
        1 => 1,
        2 | 9 => 2,
        3 | 4 | 10 => 4,
        5 | 6 | 8 | 11 => 8,
        7 => 16,
        _ => return Err(Error::BAD_PARAM),
    })
}

fn bytes_of(count: c_int, kind: c_int, at: *const c_void) -> Result<usize, Error> {
    let count = usize::try_from(count).map_err(|_| Error::BAD_PARAM)?;
    let bytes = count.checked_mul(size_of_type(kind)?).ok_or(Error::BAD_PARAM)?;
    if at.is_null() && bytes > 0 { Err(Error::BAD_PARAM) } else { Ok(bytes) }
}

/// Sends an array as it stands in memory.
///
/// # Safety
/// `data` has `count` items of the type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_psend(to: c_int, tag: c_int, data: *const c_void, count: c_int, kind: c_int) -> c_int {
    let outcome = bytes_of(count, kind, data).and_then(|length| {
        // SAFETY: the caller's promise.
        let bytes = if length == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length) } };
        let mut library = enrolled()?;
        check(&library, &[to], tag)?;
        let sent = library.task()?.send_from(to, envelope(tag, Encoding::InPlace), bytes);
        sent.map_err(|_| library.lose_machine())
    });
    told(c"pvm_psend", outcome.map(|()| 0))
}

fn wanted(library: &PvmLibrary, tid: c_int, tag: c_int) -> Result<WantedMessage, Error> {
    if tag < -1 && !library.options.allows_reserved() {
        Err(Error::BAD_PARAM)
    } else {
        Ok(WantedMessage::here(tid, tag))
    }
}

/// Receives into a new active buffer; the one before goes.
#[inline]
fn receive_active(call: &'static str, tid: c_int, tag: c_int, patience: WaitPatience) -> Result<c_int, Error> {
    let mut library = enrolled()?;
    let before = library.buffers.active_receive();
    if before > 0 {
        let _ = library.buffers.set_active_receive(0);
        let _ = library.buffers.free(before);
    }
    let wanted = wanted(&library, tid, tag)?;
    let (mut library, Some(buffer)) = receive_in(library, call, wanted, patience)? else { return Ok(0) };
    library.buffers.set_active_receive(buffer)?;
    Ok(buffer)
}

/// # Safety
/// `limit` is null or readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_trecv(tid: c_int, tag: c_int, limit: *const libc::timeval) -> c_int {
    let patience = if limit.is_null() {
        WaitPatience::Forever
    } else {
        // SAFETY: the caller's promise.
        let limit = unsafe { limit.read() };
        match (u64::try_from(limit.tv_sec), u64::try_from(limit.tv_usec)) {
            (Ok(0), Ok(0)) => WaitPatience::None,
            (Ok(seconds), Ok(micros)) => {
                let limit = Duration::from_secs(seconds).checked_add(Duration::from_micros(micros));
                let until = limit.and_then(|limit| Instant::now().checked_add(limit));
                until.map_or(WaitPatience::Forever, WaitPatience::Until)
            }
            _ => return told(c"pvm_trecv", Err(Error::BAD_PARAM)),
        }
    };
    told(c"pvm_trecv", receive_active("pvm_trecv", tid, tag, patience))
}

/// Receives into an array. What does not fit is cut off; `length` says how long the message was.
///
/// # Safety
/// `data` has room for `count` items of the type; the last three are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_precv(
    tid: c_int,
    tag: c_int,
    data: *mut c_void,
    count: c_int,
    kind: c_int,
    from: *mut c_int,
    with_tag: *mut c_int,
    length: *mut c_int,
) -> c_int {
    let outcome = bytes_of(count, kind, data).and_then(|bytes| {
        let room = match bytes {
            0 => &mut [],
            // SAFETY: the caller's promise.
            _ => unsafe { std::slice::from_raw_parts_mut(data.cast::<u8>(), bytes) },
        };
        let wanted = wanted(&*enrolled()?, tid, tag)?;
        let (source, tag, long) = match receive_into(wanted, room)? {
            Some((outcome, _)) => (read_source(outcome.source).0, outcome.tag, outcome.length as usize),
            None => by_buffer(wanted, room)?,
        };
        // SAFETY: the caller's promise.
        unsafe {
            put(from, source);
            put(with_tag, tag);
            put(length, long as c_int);
        }
        Ok(0)
    });
    told(c"pvm_precv", outcome)
}

/// The way of a message that has arrived already, or that handlers and matchers are to see before.
fn by_buffer(wanted: WantedMessage, room: &mut [u8]) -> Result<(c_int, c_int, usize), Error> {
    let buffer = receive("pvm_precv", wanted, WaitPatience::Forever)?.ok_or(Error::SYS_ERR)?;
    let message = library().buffers.give_back(buffer).ok_or(Error::SYS_ERR)?;
    let bytes = Cow::Borrowed(&message.bytes[..]);
    let length = bytes.len().min(room.len());
    room[..length].copy_from_slice(&bytes[..length]);
    Ok((message.source, message.tag, bytes.len()))
}

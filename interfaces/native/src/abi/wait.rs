//! Names, waiting for several things, and event loops.

use super::{CMessage, CPick, answer, null, picks, put_text, store, text};
use crate::error::{NativeError, Result};
use crate::known::PortNumber;
use crate::select::{Happened, MaySleep, Polled};
use crate::{names, select};
use std::ffi::{c_char, c_int};
use std::time::Duration;

/// A time in milliseconds; negative is endless.
pub(super) fn patience(milliseconds: c_int) -> Option<Duration> {
    u64::try_from(milliseconds).ok().map(Duration::from_millis)
}

/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_port_open_named(name: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { text(name, "the name") };
    answer(name.and_then(names::open_named).map(|port| port.0 as c_int))
}

/// # Safety
/// `name` is null or a C string; `process` and `port` are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_port_find(
    name: *const c_char,
    milliseconds: c_int,
    process: *mut c_int,
    port: *mut c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { text(name, "the name") };
    answer(name.and_then(|name| names::find(name, patience(milliseconds))).map(|(owner, number)| {
        // SAFETY: the caller's promise.
        unsafe {
            store(process, owner.0 as c_int);
            store(port, number.0 as c_int);
        }
        0
    }))
}

/// # Safety
/// `text` is null, or writable for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_port_address(port: c_int, text: *mut c_char, size: usize) -> c_int {
    let address = names::address_of(PortNumber(port as u32));
    // SAFETY: the caller's promise.
    answer(address.and_then(|address| unsafe { put_text(&address, "the address", text, size) }))
}

/// Descriptors of the caller, to be waited for.
///
/// # Safety
/// `at` is null or leads to `count` of them.
unsafe fn descriptors(at: *const libc::pollfd, count: c_int) -> Result<Vec<Polled>> {
    let count = usize::try_from(count).map_err(|_| NativeError::argument(format!("{count} descriptors")))?;
    if at.is_null() && count > 0 {
        return Err(null("the list of descriptors"));
    }
    // SAFETY: the caller's promise.
    let all = (0..count).map(|number| unsafe { *at.add(number) });
    Ok(all.map(|one| Polled { descriptor: one.fd, events: one.events, ready: 0 }).collect())
}

/// # Safety
/// `choices` and `polled` lead to as many as their counts say; `message` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_select(
    choices: *const CPick,
    count: c_int,
    polled: *mut libc::pollfd,
    polled_count: c_int,
    milliseconds: c_int,
    message: *mut CMessage,
) -> c_int {
    // SAFETY: the caller's promise.
    let (choices, all) = unsafe { (picks(choices, count), descriptors(polled, polled_count)) };
    let happened = choices.and_then(|choices| {
        let mut all = all?;
        let happened = select::select(&choices, &mut all, patience(milliseconds))?;
        for (at, one) in all.iter().enumerate() {
            // SAFETY: the caller's promise: as many as were read there.
            unsafe { (*polled.add(at)).revents = one.ready };
        }
        Ok(happened)
    });
    answer(happened.map(|happened| match happened {
        Happened::Nothing => 0,
        Happened::Descriptor(which) => count + which as c_int + 1,
        Happened::Message(which, seen) => {
            // SAFETY: the caller's promise.
            unsafe { store(message, CMessage::new(&seen)) };
            which as c_int + 1
        }
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_descriptor() -> c_int {
    answer(select::descriptor())
}

/// # Safety
/// `milliseconds` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_arm(milliseconds: *mut c_int) -> c_int {
    answer(select::arm().map(|rest| {
        let limit = match rest {
            MaySleep::Not => 0,
            MaySleep::Until(None) => -1,
            MaySleep::Until(Some(limit)) => limit.as_millis().clamp(1, c_int::MAX as u128) as c_int,
        };
        // SAFETY: the caller's promise.
        unsafe { store(milliseconds, limit) };
        c_int::from(limit != 0)
    }))
}

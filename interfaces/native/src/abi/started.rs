//! Starting processes, signals, and ends.

use super::{answer, text};
use crate::error::{NativeError, Result};
use crate::known::PortNumber;
use crate::started::{self, WantedProcesses};
use crate::{ends, error::ErrorKind};
use std::ffi::{CStr, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use weft_ports::Peer;

/// Words up to a null pointer.
///
/// # Safety
/// `at` is null, or leads to C strings and a null pointer behind the last.
unsafe fn words(at: *const *const c_char) -> Vec<OsString> {
    let mut words = Vec::new();
    if at.is_null() {
        return words;
    }
    loop {
        // SAFETY: the caller's promise: the null pointer has not been reached.
        let word = unsafe { *at.add(words.len()) };
        if word.is_null() {
            return words;
        }
        // SAFETY: the caller's promise.
        words.push(OsStr::from_bytes(unsafe { CStr::from_ptr(word) }.to_bytes()).to_owned());
    }
}

/// # Safety
/// `program` and `host` are null or C strings; `arguments` is null, or leads to C strings and a null pointer;
/// `processes` is null, or writable for `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_start(
    program: *const c_char,
    arguments: *const *const c_char,
    count: c_int,
    host: *const c_char,
    processes: *mut c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let (program, arguments) = unsafe { (text(program, "the program"), words(arguments)) };
    // SAFETY: the caller's promise.
    let host = if host.is_null() { Ok(None) } else { unsafe { text(host, "the host") }.map(Some) };
    let wanted: Result<WantedProcesses> = program.and_then(|program| {
        let count = u32::try_from(count)
            .map_err(|_| NativeError::argument(format!("{count} processes: at least 1 is started")))?;
        Ok(WantedProcesses { program: program.to_owned(), arguments, count, host: host?.map(str::to_owned) })
    });
    answer(wanted.and_then(started::start).map(|started| {
        for (at, process) in started.iter().enumerate().filter(|_| !processes.is_null()) {
            // SAFETY: the caller's promise: as many as were asked for.
            unsafe { processes.add(at).write(process.0 as c_int) };
        }
        0
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_parent() -> c_int {
    let nobody = || NativeError::new(ErrorKind::Process, "no process has started this one by weft_start");
    answer(started::parent().and_then(|parent| parent.ok_or_else(nobody)).map(|parent| parent.0 as c_int))
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_signal(process: c_int, signal: c_int) -> c_int {
    answer(started::signal(Peer(process as u32), signal).map(|()| 0))
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_notify(process: c_int, port: c_int, tag: c_int) -> c_int {
    answer(ends::notify(Peer(process as u32), PortNumber(port as u32), tag).map(|()| 0))
}

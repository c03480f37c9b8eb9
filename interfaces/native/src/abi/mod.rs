//! The entry points of `weft.h`: C becomes Rust at once, and errors become numbers.

mod begun;
mod group;
mod message;
mod process;
mod started;
mod transfer;
mod wait;

use crate::error::{ErrorKind, NativeError, Result};
use crate::known::PortNumber;
use crate::message::Pick;
use crate::received::ReceivedMessage;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use weft_ports::Peer;

/// `WEFT_ANY`.
const ANY: c_int = -1;

/// `struct weft_message`.
#[repr(C)]
pub struct CMessage {
    process: c_int,
    port: c_int,
    tag: c_int,
    reserved: c_int,
    length: usize,
}

/// `struct weft_pick`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CPick {
    port: c_int,
    process: c_int,
    tag: c_int,
}

thread_local! {
    /// What the last error of this thread says.
    static LAST: RefCell<CString> = RefCell::default();
}

/// What an entry point answers: 0 and more, or an error, which is kept for [`weft_error`].
#[inline]
fn answer(result: Result<c_int>) -> c_int {
    match result {
        Ok(number) => number,
        Err(error) => keep(&error),
    }
}

#[cold]
fn keep(error: &NativeError) -> c_int {
    LAST.set(CString::new(error.to_string().replace('\0', " ")).unwrap_or_default());
    error.kind as c_int
}

/// The last error's text.
#[unsafe(no_mangle)]
pub extern "C" fn weft_error() -> *const c_char {
    LAST.with_borrow(|text| text.as_ptr())
}

/// What a number that a call has answered means.
#[unsafe(no_mangle)]
pub extern "C" fn weft_error_text(number: c_int) -> *const c_char {
    let text = match number {
        0.. => c"no error",
        -1 => c"not allowed now",
        -2 => c"an argument that is not allowed",
        -3 => c"no such process",
        -4 => c"no such port, or it is open already",
        -5 => c"the message is longer than the room for it",
        -6 => c"the other process has ended or is lost",
        -7 => c"a name is taken, or nobody has it",
        -8 => c"the time is over",
        -9 => c"no such registered memory",
        -10 => c"the system refuses",
        -11 => c"the process cannot join its job",
        -12 => c"the processes cannot be started",
        _ => c"not an error of libweft",
    };
    text.as_ptr()
}

fn null(what: &'static str) -> NativeError {
    NativeError::argument(format!("{what} is a null pointer"))
}

/// Bytes of the caller.
///
/// # Safety
/// `at` is null, or readable for `length` bytes as long as the answer lives.
#[inline]
unsafe fn bytes<'a>(at: *const c_void, length: usize) -> Result<&'a [u8]> {
    if length == 0 {
        return Ok(&[]);
    }
    if at.is_null() || length > isize::MAX as usize {
        return Err(no_bytes(at, length));
    }
    // SAFETY: the caller's promise; neither null nor longer than anything can be.
    Ok(unsafe { std::slice::from_raw_parts(at.cast(), length) })
}

/// Room of the caller.
///
/// # Safety
/// `at` is null, or writable for `length` bytes, and nobody else's as long as the answer lives.
#[inline]
unsafe fn room<'a>(at: *mut c_void, length: usize) -> Result<&'a mut [u8]> {
    if length == 0 {
        return Ok(&mut []);
    }
    if at.is_null() || length > isize::MAX as usize {
        return Err(no_bytes(at, length));
    }
    // SAFETY: the caller's promise; neither null nor longer than anything can be.
    Ok(unsafe { std::slice::from_raw_parts_mut(at.cast(), length) })
}

#[cold]
fn no_bytes(at: *const c_void, length: usize) -> NativeError {
    match at.is_null() {
        true => NativeError::argument(format!("{length} bytes at a null pointer")),
        false => NativeError::argument(format!("{length} bytes are more than there can be")),
    }
}

/// A text of the caller.
///
/// # Safety
/// `at` is null, or a C string.
unsafe fn text<'a>(at: *const c_char, what: &'static str) -> Result<&'a str> {
    if at.is_null() {
        return Err(null(what));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(at) };
    text.to_str().map_err(|_| NativeError::argument(format!("{what} is no UTF-8")))
}

/// Writes a text with a zero into room of the caller.
///
/// # Safety
/// `to` is null, or writable for `size` bytes.
unsafe fn put_text(text: &str, what: &'static str, to: *mut c_char, size: usize) -> Result<c_int> {
    if to.is_null() {
        return Err(NativeError::argument(format!("the room for {what} is a null pointer")));
    }
    if text.len() >= size {
        return Err(NativeError::argument(format!("{what} needs {} bytes, and there are {size}", text.len() + 1)));
    }
    // SAFETY: the caller's promise; it is shorter than the room.
    unsafe {
        to.copy_from(text.as_ptr().cast(), text.len());
        to.add(text.len()).write(0);
    }
    Ok(0)
}

/// Stores an answer where the caller wants it.
///
/// # Safety
/// `at` is null or valid.
unsafe fn store<T>(at: *mut T, value: T) {
    if !at.is_null() {
        // SAFETY: the caller's promise.
        unsafe { at.write(value) };
    }
}

#[inline]
fn pick(port: c_int, process: c_int, tag: c_int) -> Pick {
    let process = (process != ANY).then_some(Peer(process as u32));
    Pick { port: PortNumber(port as u32), process, tag: (tag != ANY).then_some(tag) }
}

/// # Safety
/// `at` is null or leads to `count` of them.
unsafe fn picks(at: *const CPick, count: c_int) -> Result<Vec<Pick>> {
    let count = usize::try_from(count).map_err(|_| NativeError::argument(format!("{count} choices")))?;
    if at.is_null() && count > 0 {
        return Err(null("the list of choices"));
    }
    // SAFETY: the caller's promise.
    Ok((0..count).map(|at_number| unsafe { *at.add(at_number) }).map(|c| pick(c.port, c.process, c.tag)).collect())
}

impl CMessage {
    #[inline]
    fn new(message: &ReceivedMessage) -> Self {
        let (process, port) = (message.process.0 as c_int, message.port.0 as c_int);
        Self { process, port, tag: message.tag, reserved: 0, length: message.length }
    }
}

/// A message that was received: told of, and an error where it was longer than the room.
///
/// # Safety
/// `to` is null or valid.
#[inline]
unsafe fn received(message: Result<ReceivedMessage>, room: usize, to: *mut CMessage) -> c_int {
    match message {
        Ok(message) => {
            // SAFETY: the caller's promise.
            unsafe { store(to, CMessage::new(&message)) };
            if message.length <= room { 0 } else { too_long(message.length, room) }
        }
        Err(error) => keep(&error),
    }
}

#[cold]
fn too_long(length: usize, room: usize) -> c_int {
    let text = format!("the message has {length} bytes, and the room {room}: it holds the beginning");
    keep(&NativeError::new(ErrorKind::Truncated, text))
}

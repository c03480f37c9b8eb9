//! The handler of what comes back, where the program has none, and the end that it is.

use crate::failure::AMX_ProcessLabel;
use crate::token::MessageToken;
use std::ffi::{CStr, c_char};
use std::sync::atomic::Ordering;

/// Says what has come back and why, and ends the process: a program that goes on would wait for ever.
pub fn default_handler(status: u32, opcode: u32, token: &MessageToken<'_>) {
    let why = match status {
        3 => "EBADTAG: the receiving endpoint has another tag",
        4 => "EBADHANDLER: it has no such handler",
        5 => "EBADSEGOFF: the offset lies outside its segment",
        6 => "EBADLENGTH: the bytes go beyond its segment",
        7 => "EBADENDPOINT: there is no such endpoint",
        9 => "EUNREACHABLE: its process has ended",
        _ => "unknown",
    };
    let call = match opcode {
        1 => "AM_Request",
        2 => "AM_RequestI",
        3 => "AM_RequestXfer",
        4 => "AM_Reply",
        5 => "AM_ReplyI",
        6 => "AM_ReplyXfer",
        _ => "unknown",
    };
    fatal(&format!(
        "a message came back, and handler 0 is not set: {why}; {call} to rank {}, endpoint {}, handler {}, tag {:#x}, \
         arguments {:?}",
        token.rank, token.head.from.slot, token.head.handler, token.head.tag, token.head.arguments
    ))
}

fn fatal(text: &str) -> ! {
    let label = AMX_ProcessLabel.load(Ordering::Relaxed);
    // SAFETY: the program has put a text there, or nothing.
    let label = (!label.is_null()).then(|| unsafe { CStr::from_ptr(label) }.to_string_lossy());
    eprintln!("weft: {}{}{text}", label.as_deref().unwrap_or_default(), if label.is_some() { ": " } else { "" });
    std::process::abort()
}

/// # Safety
/// `text` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_am_fatal(text: *const c_char) -> ! {
    // SAFETY: the caller's promise.
    fatal(&unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

//! The mailbox. That something is not there, or may not be done, is left in `pvm_errno`, without a line.

use super::machine::shown;
use super::task::ShownList;
use super::{put, text, told};
use crate::buffer::{Encoding, IncomingMessage};
use crate::errors::{Error, pvm_errno};
use crate::group::{ask_long, ask_patiently};
use crate::library::{enrolled, library, my_context, my_tid};
use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::Ordering;
use weft_pvm_machine::code::mailbox as flag;
use weft_pvm_machine::frame::{Answer, ByteString, Content, Request};

/// `struct pvmmboxinfo`.
#[repr(C)]
pub struct NameOfC {
    name: *mut c_char,
    count: c_int,
    indices: *mut c_int,
    owners: *mut c_int,
    flags: *mut c_int,
}

fn told_some(call: &CStr, outcome: Result<c_int, Error>) -> c_int {
    match outcome {
        Err(Error::DENIED | Error::EXISTS | Error::NOT_FOUND) => {
            let code = outcome.unwrap_or_else(|error| error.0);
            pvm_errno.store(code, Ordering::Relaxed);
            code
        }
        outcome => told(call, outcome),
    }
}

/// # Safety
/// It is null or a C string.
unsafe fn name_of(name: *const c_char) -> Result<ByteString, Error> {
    // SAFETY: the caller's promise.
    let name = unsafe { text(name) };
    if name.0.is_empty() { Err(Error::BAD_PARAM) } else { Ok(name) }
}

/// The index under which it stands now.
///
/// # Safety
/// `name` is null or a C string, here and below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_putinfo(name: *const c_char, buffer: c_int, flags: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { name_of(name) };
    told_some(
        c"pvm_putinfo",
        name.and_then(|name| {
            let mut library = enrolled()?;
            let outgoing = library.buffers.outgoing(buffer)?;
            let encoding = outgoing.encoding as u32;
            let content =
                Content { encoding, source: my_tid(), tag: 0, bytes: ByteString(outgoing.bytes.into_owned()) };
            library.ask_code(&Request::Put { name, index: -1, flags, content })
        }),
    )
}

fn get(call: &'static str, name: ByteString, index: c_int, flags: c_int) -> Result<(c_int, Content), Error> {
    match ask_long(call, &Request::Get { name, index, flags })? {
        Answer::Content { code, content } if code >= 0 => Ok((code, content)),
        Answer::Content { code, .. } => Err(Error(code)),
        _ => Err(Error::SYS_ERR),
    }
}

/// A buffer with the message, the active one from now on.
///
/// # Safety
/// As [`pvm_putinfo`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_recvinfo(name: *const c_char, index: c_int, flags: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { name_of(name) };
    told_some(
        c"pvm_recvinfo",
        name.and_then(|name| {
            if index < 0 {
                return Err(Error::BAD_PARAM);
            }
            let before = enrolled()?.buffers.set_active_receive(0)?;
            if before > 0 {
                library().buffers.free(before)?;
            }
            let (_, content) = get("pvm_recvinfo", name, index, flags)?;
            let buffers = &mut library().buffers;
            let encoding = Encoding::from_bits(content.encoding);
            let (bytes, source, context) = (content.bytes.0, content.source, my_context());
            let buffer = buffers.accept(IncomingMessage { encoding, bytes, source, tag: content.tag, context });
            buffers.set_active_receive(buffer)?;
            Ok(buffer)
        }),
    )
}

/// # Safety
/// As [`pvm_putinfo`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_delinfo(name: *const c_char, index: c_int, _flags: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { name_of(name) };
    told_some(
        c"pvm_delinfo",
        name.and_then(|name| {
            if index < 0 {
                return Err(Error::BAD_PARAM);
            }
            enrolled()?.ask_code(&Request::Delete { name, index })
        }),
    )
}

/// # Safety
/// `pattern` is null or a C string, the others are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_getmboxinfo(pattern: *const c_char, count: *mut c_int, list: *mut *mut NameOfC) -> c_int {
    static SHOWN: ShownList<NameOfC> = ShownList::new();
    static NUMBERS: ShownList<Vec<c_int>> = ShownList::new();
    // SAFETY: the caller's promise.
    let pattern = unsafe { text(pattern) };
    let names = enrolled().and_then(|mut library| match library.ask(&Request::Names { pattern })? {
        Answer::Names { names } => Ok(names),
        _ => Err(Error::SYS_ERR),
    });
    told(
        c"pvm_getmboxinfo",
        names.map(|names| {
            let (mut texts, mut numbers) = (Vec::new(), Vec::new());
            let mut keep = |mut list: Vec<c_int>| {
                let at = list.as_mut_ptr();
                numbers.push(list);
                at
            };
            let all: Vec<NameOfC> = names
                .into_iter()
                .map(|of| NameOfC {
                    name: shown(of.name.0, &mut texts),
                    count: of.indices.len() as c_int,
                    indices: keep(of.indices),
                    owners: keep(of.owners),
                    flags: keep(of.flags),
                })
                .collect();
            NUMBERS.show(numbers, Vec::new());
            // SAFETY: the caller's promise.
            unsafe {
                put(count, all.len() as c_int);
                if !list.is_null() {
                    list.write(SHOWN.show(all, texts));
                }
            }
            0
        }),
    )
}

/// The mailbox of PVM 3.3: a number under a name.
///
/// # Safety
/// As [`pvm_putinfo`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_insert(name: *const c_char, index: c_int, data: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { name_of(name) };
    told_some(
        c"pvm_insert",
        name.and_then(|name| {
            if index < -1 {
                return Err(Error::BAD_PARAM);
            }
            drop(enrolled()?);
            let bytes = ByteString(data.to_be_bytes().to_vec());
            let content = Content { encoding: 0, source: my_tid(), tag: 0, bytes };
            let flags = flag::MULTI_INSTANCE | flag::PERSISTENT;
            ask_patiently("pvm_insert", &Request::Put { name, index, flags, content })
        }),
    )
}

/// # Safety
/// `name` is null or a C string, `data` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_lookup(name: *const c_char, index: c_int, data: *mut c_int) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { name_of(name) };
    told_some(
        c"pvm_lookup",
        name.and_then(|name| {
            if index < -1 {
                return Err(Error::BAD_PARAM);
            }
            let flags = if index == -1 { flag::FIRST_AVAILABLE } else { 0 };
            drop(enrolled()?);
            let (place, content) = get("pvm_lookup", name, index.max(0), flags)?;
            let bytes = content.bytes.0.first_chunk().ok_or(Error::NO_DATA)?;
            // SAFETY: the caller's promise.
            unsafe { put(data, c_int::from_be_bytes(*bytes)) };
            Ok(place)
        }),
    )
}

/// # Safety
/// As [`pvm_putinfo`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_delete(name: *const c_char, index: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { pvm_delinfo(name, index, 0) }
}

//! Raw bytes, registered memory and handlers.

use super::{answer, bytes, null, room, store};
use crate::active::{self, HandlerCall};
use crate::error::{NativeError, Result};
use crate::memory::{self, RemoteMemory};
use crate::raw;
use std::ffi::{c_int, c_void};
use weft_ports::Peer;

/// # Safety
/// `data` is readable for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_raw_send(process: c_int, data: *const c_void, length: usize) -> c_int {
    // SAFETY: the caller's promise.
    let data = unsafe { bytes(data, length) };
    answer(data.and_then(|data| raw::send(Peer(process as u32), data)).map(|()| 0))
}

/// # Safety
/// `buffer` is writable for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_raw_receive(process: c_int, buffer: *mut c_void, length: usize) -> c_int {
    // SAFETY: the caller's promise.
    let room = unsafe { room(buffer, length) };
    answer(room.and_then(|room| raw::receive(Peer(process as u32), room)).map(|()| 0))
}

/// `struct weft_memory`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CMemory {
    words: [u64; 4],
}

/// # Safety
/// `address` and `memory` are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_register(size: usize, address: *mut *mut c_void, memory: *mut CMemory) -> c_int {
    if address.is_null() || memory.is_null() {
        return answer(Err(null("where the address or the memory is to be stored")));
    }
    answer(memory::register(size).map(|(at, remote)| {
        // SAFETY: the caller's promise.
        unsafe {
            store(address, at.cast());
            store(memory, CMemory { words: remote.words() });
        }
        0
    }))
}

/// # Safety
/// `memory` is null or valid.
unsafe fn remote(memory: *const CMemory) -> Result<RemoteMemory> {
    if memory.is_null() {
        return Err(null("the memory"));
    }
    // SAFETY: the caller's promise.
    Ok(RemoteMemory::from_words(unsafe { memory.read_unaligned() }.words))
}

/// # Safety
/// `memory` is null or valid; nobody uses what it names any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_unregister(memory: *const CMemory) -> c_int {
    // SAFETY: the caller's promise.
    let memory = unsafe { remote(memory) };
    answer(memory.and_then(memory::withdraw).map(|()| 0))
}

/// # Safety
/// `memory` is null or valid; `data` is readable for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_put(
    process: c_int,
    memory: *const CMemory,
    offset: u64,
    data: *const c_void,
    length: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    let (memory, data) = unsafe { (remote(memory), bytes(data, length)) };
    answer(memory.and_then(|memory| memory::put(Peer(process as u32), memory, offset, data?)).map(|()| 0))
}

/// # Safety
/// `memory` is null or valid; `buffer` is writable for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_get(
    process: c_int,
    memory: *const CMemory,
    offset: u64,
    buffer: *mut c_void,
    length: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    let (memory, room) = unsafe { (remote(memory), room(buffer, length)) };
    answer(memory.and_then(|memory| memory::get(Peer(process as u32), memory, offset, room?)).map(|()| 0))
}

/// `struct weft_call`, and behind it what a reply needs.
#[repr(C)]
pub struct CCall<'a> {
    process: c_int,
    count: c_int,
    arguments: *const u64,
    bytes: *const c_void,
    length: usize,
    /// Until it is replied to.
    call: Option<HandlerCall<'a>>,
}

type CHandler = extern "C" fn(*mut CCall<'_>, *mut c_void);

/// The program's pointer, which goes to its handler and nowhere else.
struct ForeignContext(*mut c_void);

// SAFETY: nothing here looks behind it.
unsafe impl Send for ForeignContext {}

impl ForeignContext {
    fn pointer(&self) -> *mut c_void {
        self.0
    }
}

fn number(handler: c_int) -> Result<u16> {
    u16::try_from(handler).map_err(|_| NativeError::argument(format!("handler {handler}: there is no such number")))
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_handler(handler: c_int, function: Option<CHandler>, context: *mut c_void) -> c_int {
    let set = |number| match function {
        None => active::remove_handler(number),
        Some(function) => {
            let context = ForeignContext(context);
            active::set_handler(number, move |call| {
                let (arguments, bytes) = (call.arguments(), call.bytes());
                let mut shown = CCall {
                    process: call.process().0 as c_int,
                    count: arguments.len() as c_int,
                    arguments: arguments.as_ptr(),
                    bytes: bytes.as_ptr().cast(),
                    length: bytes.len(),
                    call: None,
                };
                shown.call = Some(call);
                function(&raw mut shown, context.pointer());
            })
        }
    };
    answer(number(handler).and_then(set).map(|()| 0))
}

/// # Safety
/// `at` is null, or readable for `count` numbers as long as the answer lives.
unsafe fn numbers<'a>(at: *const u64, count: c_int) -> Result<&'a [u64]> {
    let most = active::CALL_ARGUMENTS;
    match usize::try_from(count) {
        Ok(0) => Ok(&[]),
        Ok(_) if at.is_null() => Err(null("the list of arguments")),
        // SAFETY: the caller's promise.
        Ok(count) if count <= most => Ok(unsafe { std::slice::from_raw_parts(at, count) }),
        _ => Err(NativeError::argument(format!("{count} arguments, of at most {most}"))),
    }
}

/// # Safety
/// `arguments` and `data` are readable for as much as their counts say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_call(
    process: c_int,
    handler: c_int,
    arguments: *const u64,
    count: c_int,
    data: *const c_void,
    length: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    let (arguments, data) = unsafe { (numbers(arguments, count), bytes(data, length)) };
    let call = |number| active::call(Peer(process as u32), number, arguments?, data?);
    answer(number(handler).and_then(call).map(|()| 0))
}

/// # Safety
/// `call` is what the handler that runs was called with; else as [`weft_call`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_reply(
    call: *mut CCall<'_>,
    handler: c_int,
    arguments: *const u64,
    count: c_int,
    data: *const c_void,
    length: usize,
) -> c_int {
    if call.is_null() {
        return answer(Err(null("the call")));
    }
    // SAFETY: the caller's promise.
    let (call, arguments, data) = unsafe { (&mut *call, numbers(arguments, count), bytes(data, length)) };
    let reply = |number| {
        let (arguments, data) = (arguments?, data?);
        active::check_reply(number, data)?;
        let call = call.call.take().ok_or_else(|| NativeError::argument("the call was replied to before"))?;
        call.reply(number, arguments, data)
    };
    answer(number(handler).and_then(reply).map(|()| 0))
}

/// # Safety
/// `count` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_unhandled(count: *mut u64) -> c_int {
    answer(active::unhandled().map(|unhandled| {
        // SAFETY: the caller's promise.
        unsafe { store(count, unhandled) };
        0
    }))
}

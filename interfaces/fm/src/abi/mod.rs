//! The functions of C. FM has no error codes: what is wrong is told in a line, and the call does nothing.

mod first;

use crate::moving::{self, LONGEST_BYTES, WORLD, next, send};
use crate::streams::{ForHandler, RECEIVED, ReceivedStream};
use std::ffi::{c_int, c_uint, c_ulong, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// Handlers of FM 2.x.
const HANDLERS: usize = 64;
/// `FM_ANY_ID` of the header.
const ANY: c_ulong = c_ulong::MAX;

type StreamHandler = unsafe extern "C" fn(*mut *mut c_void, c_uint) -> c_int;

static HANDLER_TABLE: [AtomicPtr<c_void>; HANDLERS] = [const { AtomicPtr::new(null_mut()) }; HANDLERS];

/// Where programs find the table.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static FM_handler_table: AtomicPtr<AtomicPtr<c_void>> =
    AtomicPtr::new((&raw const HANDLER_TABLE).cast_mut().cast());
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static FM_nodeid: AtomicU64 = AtomicU64::new(0);
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static FM_numnodes: AtomicU64 = AtomicU64::new(0);

#[cold]
fn tell(call: &str, why: &str) {
    eprintln!("weft: {call}: {why}");
}

/// Whether the job was joined; if not it is told.
#[inline]
fn is_open(call: &str) -> bool {
    let open = WORLD.is_open();
    if !open {
        tell(call, "FM_initialize was not called");
    }
    open
}

#[unsafe(no_mangle)]
pub extern "C" fn FM_initialize() {
    if WORLD.is_open() {
        return tell("FM_initialize", "it was called before");
    }
    match moving::open() {
        Ok((me, processes)) => {
            FM_nodeid.store(me.into(), Ordering::Relaxed);
            FM_numnodes.store(processes.into(), Ordering::Relaxed);
        }
        Err(error) => {
            tell("FM_initialize", &error.to_string());
            std::process::exit(1);
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn FM_finalize() {
    if is_open("FM_finalize") {
        moving::close();
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn FM_register_handler(id: c_ulong, handler: Option<StreamHandler>) -> c_ulong {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let free = |at: &usize| HANDLER_TABLE[*at].load(Ordering::Relaxed).is_null();
    let asked = match id {
        // Also as 32 bits, in programs that say so.
        ANY | 0xffff_ffff => (NEXT.load(Ordering::Relaxed)..HANDLERS).find(free),
        id => usize::try_from(id).ok().filter(|id| *id < HANDLERS),
    };
    let (Some(at), Some(handler)) = (asked, handler) else {
        tell("FM_register_handler", "there are 64 handlers, 0 to 63, and a handler is a function");
        return ANY;
    };
    if matches!(id, ANY | 0xffff_ffff) {
        NEXT.store(at + 1, Ordering::Relaxed);
    }
    HANDLER_TABLE[at].store(handler as *mut c_void, Ordering::Relaxed);
    at as c_ulong
}

/// What is wrong with a message: the first of its receiver, its handler and its length.
fn refusal(node: c_ulong, nodes: u32, length: c_ulong, handler: c_ulong) -> String {
    if node >= nodes.into() {
        format!("there is no node {node}, but those from 0 to {}", nodes - 1)
    } else if handler >= HANDLERS as c_ulong {
        format!("there is no handler {handler}, but those from 0 to {}", HANDLERS - 1)
    } else {
        format!("{length} bytes are too many for a message: at most {LONGEST_BYTES}")
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn FM_begin_message(node: c_ulong, length: c_ulong, handler: c_ulong) -> *mut *mut c_void {
    if !is_open("FM_begin_message") {
        return null_mut();
    }
    let mut world = WORLD.enter();
    if node >= world.processes().into() || handler >= HANDLERS as c_ulong || length > LONGEST_BYTES {
        let nodes = world.processes();
        drop(world);
        tell("FM_begin_message", &refusal(node, nodes, length, handler));
        return null_mut();
    }
    std::ptr::without_provenance_mut(world.streams.begin(node as u32, handler as u32, length as usize))
}

/// # Safety
/// `bytes` is readable for `length` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn FM_send_piece(stream: *mut *mut c_void, bytes: *const c_void, length: c_ulong) {
    if !is_open("FM_send_piece") {
        return;
    }
    let mut world = WORLD.enter();
    let Some(sending) = world.streams.sending(stream.addr()) else {
        drop(world);
        return tell("FM_send_piece", "the stream is of no message that was begun and has not ended");
    };
    let room = sending.most - sending.bytes.len();
    if length as usize > room || length > 0 && bytes.is_null() {
        drop(world);
        return tell(
            "FM_send_piece",
            &format!("a piece of {length} bytes, where the message has room for {room} more"),
        );
    }
    if length > 0 {
        // SAFETY: the caller's promise.
        sending.bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(bytes.cast(), length as usize) });
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn FM_end_message(stream: *mut *mut c_void) {
    if !is_open("FM_end_message") {
        return;
    }
    let ended = WORLD.enter().streams.end(stream.addr());
    let Some(message) = ended else {
        return tell("FM_end_message", "the stream is of no message that was begun and has not ended");
    };
    let bytes = send("FM_end_message", message.to, ForHandler::Stream(message.handler), message.bytes);
    WORLD.enter().streams.recycle(stream.addr(), bytes);
}

/// # Safety
/// `into` is writable for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn FM_receive(into: *mut c_void, stream: *mut *mut c_void, length: c_uint) {
    if !is_open("FM_receive") {
        return;
    }
    let mut world = WORLD.enter();
    let next = (stream.addr() == RECEIVED).then(|| world.streams.receive(length as usize)).flatten();
    let Some(bytes) = next else {
        drop(world);
        return tell("FM_receive", "the stream is not that of a handler that runs");
    };
    let came = bytes.len();
    if !into.is_null() {
        // SAFETY: the caller's promise, and no more than `length`.
        unsafe { into.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), came) };
    }
    if came < length as usize {
        drop(world);
        tell("FM_receive", &format!("{length} bytes, of {came} that the message still has"));
    }
}

/// Runs the handler of a message.
#[inline]
fn run(message: ReceivedStream) {
    let ReceivedStream { from, what, room, length } = message;
    if what == ForHandler::Function {
        first::run(room, length);
        return WORLD.enter().finish();
    }
    let ForHandler::Stream(handler) = what else { return };
    let function = HANDLER_TABLE.get(handler as usize).map_or(null_mut(), |entry| entry.load(Ordering::Relaxed));
    WORLD.enter().streams.run(room, length);
    if function.is_null() {
        tell("FM_extract", &format!("a message of node {from} is for handler {handler}, which is not registered"));
    } else {
        // SAFETY: the program has put a function of this type there.
        let function = unsafe { std::mem::transmute::<*mut c_void, StreamHandler>(function) };
        // SAFETY: as above. What it leaves of its message goes, whatever it answers.
        unsafe { function(std::ptr::without_provenance_mut(RECEIVED), from) };
    }
    WORLD.enter().finish();
}

/// Runs handlers until so many bytes were handled or nothing is there; bytes, and messages.
fn extract(call: &str, most: usize) -> (usize, usize) {
    let (mut bytes, mut messages) = (0usize, 0);
    if !is_open(call) || WORLD.enter().streams.is_running() {
        return (0, 0);
    }
    // Messages without bytes count, too, or their senders could keep us here.
    while bytes + messages < most
        && let Some(message) = next(messages > 0)
    {
        bytes += message.length;
        messages += 1;
        run(message);
    }
    (bytes, messages)
}

#[unsafe(no_mangle)]
pub extern "C" fn FM_extract(most: c_uint) -> c_int {
    extract("FM_extract", most as usize).0.min(c_int::MAX as usize) as c_int
}

/// Taken, and without effect.
#[unsafe(no_mangle)]
pub extern "C" fn FM_set_parameter(_parameter: c_int, _value: c_int) {}

/// As [`FM_set_parameter`]; the level before.
#[unsafe(no_mangle)]
pub extern "C" fn FM_debug_level(_level: c_int) -> c_int {
    0
}

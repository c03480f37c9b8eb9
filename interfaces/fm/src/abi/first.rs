//! FM 1.1: a message calls a function, which the sender names by its own address.
//!
//! Programs lie at another place in each process, so what travels is how far the function is from the program's
//! beginning. The receiver calls nothing that is not in its program.

use super::{extract, is_open, tell};
use crate::moving::{WORLD, send};
use crate::streams::ForHandler;
use std::ffi::{c_int, c_void};
use weft_ports::ready::{Room, bytes_of};

type Function = unsafe extern "C" fn(*mut c_void, c_int);

/// Where the object begins that an address lies in.
fn object_of(address: usize) -> Option<usize> {
    let mut found = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address may be asked for, and the answer has its place.
    let known = unsafe { libc::dladdr(std::ptr::without_provenance(address), found.as_mut_ptr()) } != 0;
    // SAFETY: it was all zero, or is written.
    let found = unsafe { found.assume_init() };
    known.then(|| found.dli_fbase.addr())
}

/// Where the program begins.
fn program() -> Option<usize> {
    // SAFETY: it asks for a word that the kernel has given.
    object_of(unsafe { libc::getauxval(libc::AT_PHDR) } as usize)
}

fn send_bytes(call: &'static str, node: c_int, function: usize, bytes: &[u8]) {
    if !is_open(call) {
        return;
    }
    let Some(place) = program().filter(|base| object_of(function) == Some(*base)).map(|base| function - base) else {
        return tell(call, "the handler is no function of the program");
    };
    let to = u32::try_from(node).ok().filter(|to| *to < WORLD.enter().processes());
    let Some(to) = to else { return tell(call, &format!("no node {node}")) };
    let mut message = Vec::with_capacity(8 + bytes.len());
    message.extend_from_slice(&(place as u64).to_le_bytes());
    message.extend_from_slice(bytes);
    send(call, to, ForHandler::Function, message);
}

#[unsafe(no_mangle)]
pub extern "C" fn FM_send_4(node: c_int, handler: *const c_void, a: c_int, b: c_int, c: c_int, d: c_int) {
    let words: Vec<u8> = [a, b, c, d].into_iter().flat_map(c_int::to_ne_bytes).collect();
    send_bytes("FM_send_4", node, handler.addr(), &words);
}

/// # Safety
/// `bytes` is readable for `length` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn FM_send(node: c_int, handler: *const c_void, bytes: *const c_void, length: c_int) {
    let length = match usize::try_from(length) {
        Ok(length) if length == 0 || !bytes.is_null() => length,
        _ => return tell("FM_send", "there are no bytes"),
    };
    // SAFETY: the caller's promise.
    let bytes = if length == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(bytes.cast(), length) } };
    send_bytes("FM_send", node, handler.addr(), bytes);
}

#[unsafe(no_mangle)]
pub extern "C" fn FM_extract_1() -> c_int {
    extract("FM_extract", usize::MAX).1.min(c_int::MAX as usize) as c_int
}

/// Calls the function that a message is for.
pub fn run(room: Room, length: usize) {
    let place = bytes_of(&room, length).first_chunk().map(|word| u64::from_le_bytes(*word) as usize);
    let base = program();
    let function = base.zip(place).and_then(|(base, place)| base.checked_add(place));
    let function = function.filter(|function| object_of(*function) == base);
    // Its bytes stand behind the word, at a multiple of 8.
    let bytes = room.as_ptr().wrapping_add(1).cast_mut().cast::<c_void>();
    let mut world = WORLD.enter();
    world.streams.run(room, length);
    drop(world);
    let Some(function) = function else {
        return tell("FM_extract", "a message is for no function of this program");
    };
    // SAFETY: it is an address in the program, as its sender, which runs the same, has it from its own. That it is a
    // handler is the sender's word.
    let function = unsafe { std::mem::transmute::<usize, Function>(function) };
    // SAFETY: as above.
    unsafe { function(bytes, (length - 8) as c_int) };
}

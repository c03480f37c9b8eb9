//! What Fortran programs call: lower case names with an underscore, and the addresses of arguments.

use super::c::{self, bytes};
use crate::failure::{self, fail};
use crate::{message, place, start, together};
use std::ffi::{CString, c_char, c_int};
use std::io::Write;

#[unsafe(no_mangle)]
pub extern "C" fn p4init_() {
    let words = std::env::args().map(|word| CString::new(word).unwrap_or_default().into_raw());
    // They live as long as the process, as those of `main` do.
    let mut words: Vec<*mut c_char> = words.chain([std::ptr::null_mut()]).collect();
    let mut count = words.len() as c_int - 1;
    // SAFETY: so many C strings.
    unsafe { start::begin(&mut count, words.as_mut_ptr()) };
}

#[unsafe(no_mangle)]
pub extern "C" fn p4crpg_() {
    start::create_procgroup();
}

#[unsafe(no_mangle)]
pub extern "C" fn p4cleanup_() {
    start::end();
}

/// Sends, by their names; with a data type, which is not looked at, or without; acknowledged or not.
macro_rules! sends {
    ($($name:ident($($data_type:ident)?) $acknowledged:literal;)*) => {
        $(
            /// # Safety
            /// `msg` has so many bytes; the others are addresses of INTEGERs.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                kind: *const c_int,
                to: *const c_int,
                msg: *mut c_char,
                len: *const c_int,
                $($data_type: *const c_int,)?
                rc: *mut c_int,
            ) {
                // SAFETY: the caller's promise.
                unsafe { *rc = message::send(*kind, bytes("p4send", msg, *len), *to, $acknowledged) };
            }
        )*
    };
}

sends! {
    p4send_() false;
    p4sendx_(_data_type) false;
    p4sendr_() true;
    p4sendrx_(_data_type) true;
}

/// # Safety
/// `buf` has room for so many bytes; the others are addresses of INTEGERs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4recv_(
    kind: *mut c_int,
    from: *mut c_int,
    buf: *mut c_char,
    room: *const c_int,
    len: *mut c_int,
    rc: *mut c_int,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let room = bytes("p4recv", buf, *room);
        *rc = match message::receive(*kind, *from, room) {
            Ok(received) => {
                (*kind, *from, *len) = (received.kind, received.from, received.length.min(room.len()) as c_int);
                (received.length > room.len()).into()
            }
            Err(answer) => answer,
        };
    }
}

/// # Safety
/// All are addresses of INTEGERs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4probe_(kind: *mut c_int, from: *mut c_int, rc: *mut c_int) {
    // SAFETY: the caller's promise.
    unsafe { *rc = c::p4_messages_available(kind, from) };
}

/// # Safety
/// `data` has so many bytes; the others are addresses of INTEGERs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4brdcst_(kind: *const c_int, data: *mut c_char, len: *const c_int, rc: *mut c_int) {
    // SAFETY: the caller's promise.
    unsafe { *rc = together::broadcast(*kind, bytes("p4brdcst", data, *len)) };
}

/// # Safety
/// As [`p4brdcst_`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4brdcstx_(
    kind: *const c_int,
    data: *mut c_char,
    len: *const c_int,
    _data_type: *const c_int,
    rc: *mut c_int,
) {
    // SAFETY: the caller's promise.
    unsafe { p4brdcst_(kind, data, len, rc) };
}

/// An operation of a Fortran program, which gets the count by its address.
type FortranOperation = unsafe extern "C" fn(*mut c_char, *mut c_char, *const c_int);

/// # Safety
/// `x` has so many elements; `operation` may be called with two such arrays; the others are addresses of INTEGERs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4globop_(
    kind: *const c_int,
    x: *mut c_char,
    count: *const c_int,
    size: *const c_int,
    operation: FortranOperation,
    _data_type: *const c_int,
    rc: *mut c_int,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let length = (*count).checked_mul(*size);
        let length = length.unwrap_or_else(|| fail("p4globop: the array is too long, elements", *count));
        let numbers = bytes("p4globop", x, length);
        *rc = together::combine("p4_global_op", *kind, numbers, |ours, theirs| {
            operation(ours.as_mut_ptr().cast(), theirs.as_mut_ptr().cast(), count);
        });
    }
}

/// # Safety
/// The address of an INTEGER.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4globarr_(kind: *const c_int) {
    // SAFETY: the caller's promise.
    c::p4_global_barrier(unsafe { *kind });
}

/// # Safety
/// As [`c::p4_get_cluster_masters`] wants them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4getclmasts_(count: *mut c_int, ids: *mut c_int) {
    // SAFETY: the caller's promise.
    unsafe { c::p4_get_cluster_masters(count, ids) };
}

/// # Safety
/// Addresses of INTEGERs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4getclids_(start: *mut c_int, end: *mut c_int) {
    // SAFETY: the caller's promise.
    unsafe { c::p4_get_cluster_ids(start, end) };
}

numbers! {
    p4myid_ = place::me();
    p4myclid_ = c::p4_get_my_cluster_id();
    p4nclids_ = c::p4_num_cluster_ids();
    p4ntotids_ = c::p4_num_total_ids();
    p4nslaves_ = c::p4_num_total_slaves();
    p4clock_ = c::p4_clock();
    p4ustimer_ = c::usc_clock() as c_int;
}

/// # Safety
/// So many characters, and the address of an INTEGER.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4error_(text: *const c_char, value: *const c_int, characters: c_int) -> ! {
    // SAFETY: the caller's promise.
    let (text, value) = unsafe { (bytes("p4error", text.cast_mut(), characters), *value) };
    fail(String::from_utf8_lossy(text).trim_end(), value)
}

#[unsafe(no_mangle)]
pub extern "C" fn p4avlbufs_() {
    c::p4_print_avail_buffs();
}

/// Kinds of buffers count from 1 here.
///
/// # Safety
/// Addresses of INTEGERs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4setavlbuf_(kind: *const c_int, bytes: *const c_int) {
    // SAFETY: the caller's promise.
    unsafe { c::p4_set_avail_buff((*kind).wrapping_sub(1), *bytes) };
}

/// # Safety
/// Addresses of INTEGERs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4softerrs_(new: *const c_int, old: *mut c_int) {
    // SAFETY: the caller's promise.
    unsafe { *old = failure::set_soft(*new) };
}

fn say(line: &str) {
    // A closed output is the program's own affair.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

#[unsafe(no_mangle)]
pub extern "C" fn p4version_() {
    say("p4version 1.4b");
}

#[unsafe(no_mangle)]
pub extern "C" fn p4flush_() {
    say("");
}

/// The log of events of the package ALOG: the calls are accepted, and nothing is written.
macro_rules! unwritten {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() {}
        )*
    };
}

unwritten!(alogfmaster_ alogfsetup_ alogfdefine_ alogflog_ alogfenable_ alogfdisable_ alogfoutput_);

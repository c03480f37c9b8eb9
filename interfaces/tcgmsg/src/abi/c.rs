//! `tcgmsg.h`.

use crate::failure::{self, fail, other};
use crate::{channel, counter, files, pending, tally, together};
use crate::{place, start};
use std::ffi::{CStr, OsStr, c_char, c_int, c_long, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The bytes of an argument.
///
/// # Safety
/// There are so many at `data`, if any, and nobody else uses them while the call lasts.
pub(super) unsafe fn bytes<'a>(call: &str, data: *mut c_void, length: c_long) -> &'a mut [u8] {
    match usize::try_from(length) {
        Ok(0) => &mut [],
        // SAFETY: the caller's promise.
        Ok(length) if !data.is_null() => unsafe { std::slice::from_raw_parts_mut(data.cast(), length) },
        _ => fail(&format!("{call}: message length out of range:"), length),
    }
}

/// The text of an argument.
///
/// # Safety
/// It is a C string.
unsafe fn text<'a>(call: &str, text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        fail(&format!("{call}: no text where one is needed, node"), place::me().into());
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}

#[unsafe(no_mangle)]
pub extern "C" fn tcg_pbegin(_argc: c_int, _argv: *mut *mut c_char) {
    start::begin();
}

#[unsafe(no_mangle)]
pub extern "C" fn tcg_alt_pbegin(_argc: *mut c_int, _argv: *mut *mut *mut c_char) {
    start::begin();
}

without_arguments! {
    tcg_pbeginf() = start::begin();
    tcg_pbginf() = start::begin();
    tcg_pend() = start::end();
    tcg_tcgready() -> c_long = place::has_begun().into();
    tcg_ready() -> c_long = place::has_begun().into();
    tcg_nodeid() -> c_long = place::me().into();
    tcg_nnodes() -> c_long = place::size().into();
    tcg_llog() = files::log();
    tcg_stats() = tally::print();
    tcg_time() -> f64 = place::seconds();
    /// Hundredths of a second.
    tcg_mtime() -> c_long = (place::seconds() * 100.0) as c_long;
}

/// # Safety
/// `buf` has `lenbuf` bytes, which stay as they are until `tcg_waitcom` if `sync` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tcg_snd(kind: c_long, buf: *mut c_void, lenbuf: c_long, node: c_long, sync: c_long) {
    // SAFETY: the caller's promise.
    let bytes = unsafe { bytes("SND", buf, lenbuf) };
    if sync != 0 {
        channel::send(kind as i32, bytes, node);
    } else {
        // SAFETY: the caller's promise.
        unsafe { pending::send(kind as i32, bytes.as_ptr(), bytes.len(), node) };
    }
}

/// # Safety
/// `buf` has room for `lenbuf` bytes, and is not touched until `tcg_waitcom` if `sync` is 0; the others are null or
/// places for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tcg_rcv(
    kind: c_long,
    buf: *mut c_void,
    lenbuf: c_long,
    lenmes: *mut c_long,
    nodeselect: c_long,
    nodefrom: *mut c_long,
    sync: c_long,
) {
    // SAFETY: the caller's promise.
    let room = unsafe { bytes("RCV", buf, lenbuf) };
    let (length, from) = if sync != 0 {
        let received = channel::receive(kind as i32, room, nodeselect);
        (received.length as c_long, received.from.into())
    } else {
        // SAFETY: the caller's promise.
        unsafe { pending::receive(kind as i32, room.as_mut_ptr(), room.len(), nodeselect) };
        (-1, nodeselect)
    };
    for (place, value) in [(lenmes, length), (nodefrom, from)] {
        if !place.is_null() {
            // SAFETY: the caller's promise.
            unsafe { place.write(value) };
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn tcg_waitcom(node: c_long) {
    failure::assert_open("WAITCOM");
    let is_self = node == c_long::from(place::me());
    let peer = (node != -1 && !is_self).then(|| other("WAITCOM", node));
    if !is_self {
        pending::wait_for(peer);
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn tcg_probe(kind: c_long, node: c_long) -> c_long {
    channel::probe(kind as i32, node).into()
}

/// # Safety
/// `buf` has `lenbuf` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tcg_brdcst(kind: c_long, buf: *mut c_void, lenbuf: c_long, originator: c_long) {
    // SAFETY: the caller's promise.
    together::broadcast(kind as i32, unsafe { bytes("BRDCST", buf, lenbuf) }, originator);
}

/// # Safety
/// `x` has `n` numbers, `op` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tcg_dgop(kind: c_long, x: *mut f64, n: c_long, op: *const c_char) {
    // SAFETY: the caller's promise.
    let (numbers, name) = unsafe { (bytes("DGOP", x.cast(), n.saturating_mul(8)), text("DGOP", op)) };
    together::combine::<f64>("DGOP", kind as i32, numbers, name);
}

/// # Safety
/// As [`tcg_dgop`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tcg_igop(kind: c_long, x: *mut c_long, n: c_long, op: *const c_char) {
    // SAFETY: the caller's promise.
    let (numbers, name) = unsafe { (bytes("IGOP", x.cast(), n.saturating_mul(8)), text("IGOP", op)) };
    together::combine::<i64>("IGOP", kind as i32, numbers, name);
}

#[unsafe(no_mangle)]
pub extern "C" fn tcg_synch(kind: c_long) {
    together::synchronize(kind as i32);
}

#[unsafe(no_mangle)]
pub extern "C" fn tcg_nxtval(mproc: c_long) -> c_long {
    failure::assert_open("NXTVAL");
    match mproc {
        1.. => counter::next(),
        0 => fail("NXTVAL: the number of processes must not be", 0),
        _ if mproc.unsigned_abs() > place::size().into() => fail("NXTVAL: there are not so many processes:", -mproc),
        _ => {
            counter::finish(mproc.unsigned_abs());
            0
        }
    }
}

/// # Safety
/// `fname` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tcg_pfcopy(kind: c_long, node0: c_long, fname: *const c_char) {
    // SAFETY: the caller's promise.
    files::copy(kind as i32, node0, Path::new(OsStr::from_bytes(unsafe { text("PFCOPY", fname) })));
}

#[unsafe(no_mangle)]
pub extern "C" fn tcg_setdbg(value: c_long) {
    tally::set_shows(value != 0);
}

#[unsafe(no_mangle)]
pub extern "C" fn tcg_niceftn(ival: c_long) -> c_long {
    // SAFETY: takes a number and gives one.
    unsafe { libc::nice(ival as c_int) }.into()
}

#[unsafe(no_mangle)]
pub extern "C" fn tcg_drand48() -> f64 {
    // SAFETY: the C library's generator, which has a lock.
    (unsafe { libc::rand() }) as f64 / f64::from(i32::MAX)
}

#[unsafe(no_mangle)]
pub extern "C" fn tcg_srand48(seed: c_long) {
    // SAFETY: as above.
    unsafe { libc::srand(seed as u32) };
}

/// # Safety
/// `msg` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tcg_error(msg: *const c_char, code: c_long) -> ! {
    // SAFETY: the caller's promise.
    fail(&String::from_utf8_lossy(unsafe { text("ERROR", msg) }), code)
}

/// # Safety
/// As [`tcg_error`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Error(msg: *const c_char, code: c_long) -> ! {
    // SAFETY: the caller's promise.
    unsafe { tcg_error(msg, code) }
}

#[unsafe(no_mangle)]
pub extern "C" fn tcg_parerr(code: c_long) -> ! {
    fail("User detected error in FORTRAN", code)
}

/// Bytes of a C integer of the library, which is a long, and of a double.
const NUMBER: c_long = 8;

pub(super) fn counted(call: &str, n: c_long) -> c_long {
    if n < 0 { fail(&format!("{call}: negative argument"), n) } else { n }
}

#[unsafe(no_mangle)]
pub extern "C" fn tcg_mdtob(n: c_long) -> c_long {
    counted("MDTOB", n).saturating_mul(NUMBER)
}

#[unsafe(no_mangle)]
pub extern "C" fn tcg_mdtoi(n: c_long) -> c_long {
    counted("MDTOI", n)
}

#[unsafe(no_mangle)]
pub extern "C" fn tcg_mitob(n: c_long) -> c_long {
    counted("MITOB", n).saturating_mul(NUMBER)
}

#[unsafe(no_mangle)]
pub extern "C" fn tcg_mitod(n: c_long) -> c_long {
    counted("MITOD", n)
}

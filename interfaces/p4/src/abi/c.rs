//! `p4.h`: processes, messages and what all do together.

use crate::buffer;
use crate::failure::{self, fail};
use crate::message::{self, P4Message, refuse_length};
use crate::place;
use crate::procgroup::{HOST_BYTES, MOST_ENTRIES, PROGRAM_BYTES, ProcgroupEntry, USER_BYTES};
use crate::{family, start, together};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::Write;

/// As `p4.h` has it.
#[repr(C)]
pub struct ProcgroupLine {
    slaves: c_int,
    rank: c_int,
    host: [c_char; HOST_BYTES],
    program: [c_char; PROGRAM_BYTES],
    user: [c_char; USER_BYTES],
}

/// As `p4.h` has it.
#[repr(C)]
pub struct ProcgroupTable {
    lines: [ProcgroupLine; MOST_ENTRIES],
    count: c_int,
}

/// The bytes of an argument.
///
/// # Safety
/// There are so many at `data`, if any, and nobody else uses them while the call lasts.
pub(super) unsafe fn bytes<'a>(call: &str, data: *mut c_char, length: c_int) -> &'a mut [u8] {
    match usize::try_from(length) {
        Ok(0) => &mut [],
        // SAFETY: the caller's promise.
        Ok(length) if !data.is_null() => unsafe { std::slice::from_raw_parts_mut(data.cast(), length) },
        _ => refuse_length(call, length),
    }
}

/// # Safety
/// The arguments are those of `main`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4_initenv(argc: *mut c_int, argv: *mut *mut c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { start::begin(argc, argv) };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn p4_create_procgroup() -> c_int {
    start::create_procgroup();
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn p4_alloc_procgroup() -> *mut ProcgroupTable {
    // SAFETY: zeros are a table without lines.
    unsafe { libc::calloc(1, size_of::<ProcgroupTable>()).cast() }
}

/// The text of an array of characters, up to its end or to a zero.
fn text(characters: &[c_char]) -> String {
    let bytes: Vec<u8> = characters.iter().map(|c| *c as u8).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// # Safety
/// `table` is one of `p4_alloc_procgroup`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4_startup(table: *mut ProcgroupTable) -> c_int {
    // SAFETY: the caller's promise.
    let Some(table) = (unsafe { table.as_ref() }) else {
        return failure::refuse("p4_startup: there is no procgroup", -1);
    };
    let lines = usize::try_from(table.count).ok().and_then(|count| table.lines.get(..count));
    let lines = lines.unwrap_or_else(|| fail("p4_startup: a procgroup has no such number of lines", table.count));
    let entry = |line: &ProcgroupLine| ProcgroupEntry {
        host: text(&line.host),
        processes: u32::try_from(line.slaves)
            .unwrap_or_else(|_| fail("p4_startup: a line has no such number of processes", line.slaves)),
        program: text(&line.program),
        user: text(&line.user),
    };
    start::start(&lines.iter().map(entry).collect::<Vec<_>>());
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn p4_post_init() {}

#[unsafe(no_mangle)]
pub extern "C" fn p4_wait_for_end() -> c_int {
    start::end();
    0
}

/// # Safety
/// `function` may be called, in a process of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4_create(function: Option<unsafe extern "C" fn() -> c_int>) -> c_int {
    let Some(function) = function else { return failure::refuse("p4_create: there is no function", -1) };
    if start::create() {
        // SAFETY: the caller's promise; then the process ends as a program does.
        unsafe {
            function();
            libc::exit(0);
        }
    }
    1
}

numbers! {
    p4_get_my_id = place::me();
    p4_get_my_id_from_proc = place::me();
    p4_num_total_ids = place::size() as c_int;
    p4_num_total_slaves = place::size() as c_int - 1;
    p4_num_cluster_ids = place::cluster().1 - place::cluster().0 + 1;
    p4_get_my_cluster_id = place::me() - place::cluster().0;
    p4_am_i_cluster_master = (place::me() == place::cluster().0).into();
    p4_any_messages_available = message::probe(-1, -1).is_some().into();
    p4_waitformsg = message::wait("p4_waitformsg", -1, -1).map_or_else(|answer| answer, |_| 1);
    p4_get_dbg_level = place::debug_level();
    /// Milliseconds.
    p4_clock = place::beginning().elapsed().as_millis() as c_int;
}

/// # Safety
/// Both are places for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4_get_cluster_ids(start: *mut c_int, end: *mut c_int) {
    let (first, last) = place::cluster();
    // SAFETY: the caller's promise.
    unsafe {
        *start = first;
        *end = last;
    }
}

/// # Safety
/// `count` is a place for a number, `ids` for one of each cluster.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4_get_cluster_masters(count: *mut c_int, ids: *mut c_int) {
    let mut at = 0;
    for master in place::masters() {
        // SAFETY: the caller's promise.
        unsafe { ids.add(at).write(master) };
        at += 1;
    }
    // SAFETY: the caller's promise.
    unsafe { *count = at as c_int };
}

/// # Safety
/// Both are places for an address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4_proc_info(id: c_int, host: *mut *const c_char, program: *mut *const c_char) -> c_int {
    let is_known = u32::try_from(id).is_ok_and(|id| id < place::size());
    // SAFETY: the caller's promise.
    unsafe {
        *host = if is_known { c"localhost".as_ptr() } else { std::ptr::null() };
        *program = c"".as_ptr();
    }
    if is_known { family::pid(id as usize) } else { 0 }
}

/// # Safety
/// `msg` has `len` bytes; with `in_buffer` it is a buffer of `p4_msg_alloc`, which stays the sender's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn send_message(
    kind: c_int,
    _from: c_int,
    to: c_int,
    msg: *mut c_char,
    len: c_int,
    _data_type: c_int,
    acknowledged: c_int,
    in_buffer: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let bytes = bytes("p4_send", msg, len);
        if in_buffer != 0 && buffer::room("p4_sendb", msg.cast()) < bytes.len() {
            refuse_length("p4_sendb", len);
        }
        message::send(kind, bytes, to, acknowledged & 1 != 0)
    }
}

/// # Safety
/// All are places; at `msg` stands null or a buffer of `p4_msg_alloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4_recv(kind: *mut c_int, from: *mut c_int, msg: *mut *mut c_char, len: *mut c_int) -> c_int {
    // SAFETY: the caller's promise.
    let received = unsafe {
        match *msg {
            empty if empty.is_null() => receive_new(*kind, *from, msg),
            given => {
                let room = buffer::room("p4_recv", given.cast());
                message::receive(*kind, *from, std::slice::from_raw_parts_mut(given.cast(), room))
                    .map(|received| P4Message { length: received.length.min(room), ..received })
            }
        }
    };
    match received {
        Ok(received) => {
            // SAFETY: the caller's promise.
            unsafe {
                (*kind, *from, *len) = (received.kind, received.from, received.length as c_int);
            }
            0
        }
        Err(answer) => answer,
    }
}

/// Receives into a buffer as long as the message.
///
/// # Safety
/// `msg` is a place for an address.
unsafe fn receive_new(kind: c_int, from: c_int, msg: *mut *mut c_char) -> Result<P4Message, c_int> {
    let seen = message::wait("p4_recv", kind, from)?;
    let buffer = buffer::allocate(seen.length);
    if buffer.is_null() {
        return Err(failure::refuse("p4_recv: no memory for a message of so many bytes", seen.length as c_int));
    }
    // SAFETY: so long is the buffer.
    let room = unsafe { std::slice::from_raw_parts_mut(buffer, seen.length) };
    let received = message::receive(seen.kind, seen.from, room)?;
    // SAFETY: the caller's promise.
    unsafe { *msg = buffer.cast() };
    Ok(received)
}

/// # Safety
/// Both are places for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4_messages_available(kind: *mut c_int, from: *mut c_int) -> c_int {
    // SAFETY: the caller's promise.
    match message::probe(unsafe { *kind }, unsafe { *from }) {
        Some(seen) => {
            // SAFETY: the caller's promise.
            unsafe { (*kind, *from) = (seen.kind, seen.from) };
            1
        }
        None => 0,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn p4_msg_alloc(len: c_int) -> *mut c_char {
    match usize::try_from(len) {
        Ok(bytes) => buffer::allocate(bytes).cast(),
        Err(_) => refuse_length("p4_msg_alloc", len),
    }
}

/// # Safety
/// `msg` is a buffer that nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4_msg_free(msg: *mut c_char) {
    // SAFETY: the caller's promise.
    unsafe { buffer::free(msg.cast()) };
}

#[unsafe(no_mangle)]
pub extern "C" fn p4_set_avail_buff(kind: c_int, bytes: c_int) {
    buffer::set_length(kind, bytes);
}

#[unsafe(no_mangle)]
pub extern "C" fn p4_print_avail_buffs() {
    print(&buffer::lengths());
}

/// Prints a line that says who prints it.
fn print(line: &str) {
    // SAFETY: may be called at any time; what the program has written comes before what we write.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    // A closed output is the program's own affair.
    let _ = writeln!(std::io::stdout().lock(), "{}: {line}", place::name());
}

/// # Safety
/// `data` has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4_broadcastx(kind: c_int, data: *mut c_void, len: c_int, _data_type: c_int) -> c_int {
    // SAFETY: the caller's promise.
    together::broadcast(kind, unsafe { bytes("p4_broadcast", data.cast(), len) })
}

/// An operation of a program.
type GlobalOperation = unsafe extern "C" fn(*mut c_char, *mut c_char, c_int);

/// # Safety
/// `x` has `count` elements of `size` bytes; `operation` may be called with two such arrays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4_global_op(
    kind: c_int,
    x: *mut c_void,
    count: c_int,
    size: c_int,
    operation: Option<GlobalOperation>,
    _data_type: c_int,
) -> c_int {
    let Some(operation) = operation else { return failure::refuse("p4_global_op: there is no operation, type", kind) };
    let length = count.checked_mul(size).unwrap_or_else(|| refuse_length("p4_global_op", count));
    // SAFETY: the caller's promise.
    let bytes = unsafe { bytes("p4_global_op", x.cast(), length) };
    together::combine("p4_global_op", kind, bytes, |ours, theirs| {
        // SAFETY: both have so many elements.
        unsafe { operation(ours.as_mut_ptr().cast(), theirs.as_mut_ptr().cast(), count) };
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn p4_global_barrier(kind: c_int) {
    together::combine("p4_global_barrier", kind, &mut [], |_, _| {});
}

/// Seconds.
#[unsafe(no_mangle)]
pub extern "C" fn p4_usclock() -> f64 {
    place::beginning().elapsed().as_secs_f64()
}

#[unsafe(no_mangle)]
pub extern "C" fn init_usclock() {
    place::beginning();
}

/// Microseconds.
#[unsafe(no_mangle)]
pub extern "C" fn usc_clock() -> u64 {
    place::beginning().elapsed().as_micros() as u64
}

#[unsafe(no_mangle)]
pub extern "C" fn usc_init() {
    place::beginning();
}

#[unsafe(no_mangle)]
pub extern "C" fn p4_set_dbg_level(level: c_int) {
    place::set_debug_level(level);
}

unsafe extern "C" {
    fn vprintf(format: *const c_char, arguments: *mut c_void) -> c_int;
    fn printf(format: *const c_char, ...) -> c_int;
}

/// What `p4_dprintf` of `p4.h` calls.
///
/// # Safety
/// `arguments` is a list of what `format` says, where the system passes such a list by its address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4_vdprintf(format: *const c_char, arguments: *mut c_void) {
    let name = std::ffi::CString::new(place::name()).unwrap_or_default();
    // SAFETY: the caller's promise; the first one prints a string and a number.
    unsafe {
        printf(c"%s: (%f) ".as_ptr(), name.as_ptr(), p4_usclock());
        vprintf(format, arguments);
        libc::fflush(std::ptr::null_mut());
    }
}

/// # Safety
/// `string` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4_error(string: *const c_char, value: c_int) -> ! {
    // SAFETY: the caller's promise.
    let text = if string.is_null() { c"" } else { unsafe { CStr::from_ptr(string) } };
    fail(&text.to_string_lossy(), value)
}

#[unsafe(no_mangle)]
pub extern "C" fn p4_soft_errors(on: c_int) -> c_int {
    failure::set_soft(on)
}

#[unsafe(no_mangle)]
pub extern "C" fn p4_set_hard_errors(on: c_int) {
    failure::set_soft((on == 0).into());
}

#[unsafe(no_mangle)]
pub extern "C" fn p4_version() -> *mut c_char {
    c"1.4b".as_ptr().cast_mut()
}

#[unsafe(no_mangle)]
pub extern "C" fn p4_machine_type() -> *mut c_char {
    c"LINUX".as_ptr().cast_mut()
}

//! Names that programs and libraries of PVM ask for beside its documented calls. Nothing is traced.

use super::told;
use crate::errors::Error;
use std::ffi::{CStr, c_char, c_int, c_long, c_uint};
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU8, AtomicUsize};

/// `struct Pvmtracer`, as zeros: no task catches events.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static pvmtrc: [AtomicU8; 68] = [const { AtomicU8::new(0) }; 68];

#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static pvmctrc: [AtomicU8; 68] = [const { AtomicU8::new(0) }; 68];

/// Functions that write events; none.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static pvmtrccodef: AtomicUsize = AtomicUsize::new(0);

#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static pvmtoplvl: AtomicI32 = AtomicI32::new(1);

#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static pvmdebmask: AtomicI32 = AtomicI32::new(0);

/// Names that programs find in tables of which they know the length.
const fn names<const COUNT: usize>(first: u8) -> [[u8; 5]; COUNT] {
    let mut all = [[0; 5]; COUNT];
    let mut at = 0;
    while at < COUNT {
        all[at] = [first, b'0' + (at / 100) as u8, b'0' + (at / 10 % 10) as u8, b'0' + (at % 10) as u8, 0];
        at += 1;
    }
    all
}

static EVENT_NAMES: [[u8; 5]; 109] = names(b'e');
static DATUM_NAMES: [[u8; 5]; 123] = names(b'd');

/// `struct Pvmtevinfo`: a name, and marks.
#[repr(C)]
pub struct EventOfC {
    name: AtomicPtr<c_char>,
    marks: [AtomicUsize; 6],
}

/// `struct Pvmtevdid`.
#[repr(C)]
pub struct DatumOfC {
    name: AtomicPtr<c_char>,
    about: AtomicPtr<c_char>,
}

/// Tables of events and of their data, of which there are none.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static pvmtevinfo: [EventOfC; 109] = {
    let mut all =
        [const { EventOfC { name: AtomicPtr::new(std::ptr::null_mut()), marks: [const { AtomicUsize::new(0) }; 6] } };
            109];
    let mut at = 0;
    while at < all.len() {
        all[at].name = AtomicPtr::new((&raw const EVENT_NAMES[at]).cast_mut().cast());
        at += 1;
    }
    all
};

#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static pvmtevdidlist: [DatumOfC; 123] = {
    let mut all = [const {
        DatumOfC { name: AtomicPtr::new(std::ptr::null_mut()), about: AtomicPtr::new(std::ptr::null_mut()) }
    }; 123];
    let mut at = 0;
    while at < all.len() {
        all[at].name = AtomicPtr::new((&raw const DATUM_NAMES[at]).cast_mut().cast());
        all[at].about = AtomicPtr::new((&raw const DATUM_NAMES[at]).cast_mut().cast());
        at += 1;
    }
    all
};

#[unsafe(no_mangle)]
pub extern "C" fn tev_begin(_kind: c_int, _entry: c_int) -> c_int {
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn tev_fin() -> c_int {
    0
}

/// ByteString of a trace mask, as `TEV_MASK_LENGTH` says.
const MASK_LENGTH: usize = 36;

/// # Safety
/// `mask` is writable for the length of a mask.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_gettmask(who: c_int, mask: *mut c_char) -> c_int {
    if !(1..=2).contains(&who) || mask.is_null() {
        return told(c"pvm_gettmask", Err(Error::BAD_PARAM));
    }
    // SAFETY: the caller's promise. `@` stands for no event in each place.
    unsafe {
        std::ptr::write_bytes(mask, b'@', MASK_LENGTH - 1);
        mask.add(MASK_LENGTH - 1).write(0);
    }
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn pvm_settmask(who: c_int, mask: *const c_char) -> c_int {
    let is_wrong = !(1..=2).contains(&who) || mask.is_null();
    if is_wrong { told(c"pvm_settmask", Err(Error::BAD_PARAM)) } else { 0 }
}

/// What a tag of the system is called; there is none here. It leaves what `found` points at as it is.
#[unsafe(no_mangle)]
pub extern "C" fn pvmnametag(_tag: c_int, _found: *mut c_int) -> *const c_char {
    std::ptr::null()
}

/// A number as PVM reads it: `0x` and hexadecimal digits, or decimal ones.
///
/// # Safety
/// It is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvmstrtoi(number: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { libc::strtol(number, std::ptr::null_mut(), 0) as c_int }
}

/// # Safety
/// It is a C string `name=value` that stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvmputenv(setting: *mut c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { libc::putenv(setting) }
}

#[unsafe(no_mangle)]
pub extern "C" fn pvmgetrsh() -> *const c_char {
    c"ssh".as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn pvmgettmp() -> *const c_char {
    // SAFETY: a C string; the answer stays as long as nobody changes the variable.
    let chosen = unsafe { libc::getenv(c"PVM_TMP".as_ptr()) };
    if chosen.is_null() { c"/tmp".as_ptr() } else { chosen }
}

/// A name for a file that nobody has.
///
/// # Safety
/// `room` is null or has room for 128 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvmtmpnam(room: *mut c_char) -> *mut c_char {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    static OWN: [AtomicU8; 128] = [const { AtomicU8::new(0) }; 128];
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    // SAFETY: as `pvmgettmp` answers.
    let folder = unsafe { CStr::from_ptr(pvmgettmp()) }.to_string_lossy().into_owned();
    let mut name = format!("{folder}/pvm{}.{number}", std::process::id()).into_bytes();
    name.truncate(127);
    name.push(0);
    let to = if room.is_null() { OWN.as_ptr() as *mut c_char } else { room };
    // SAFETY: there is room for 128 bytes; one's own is used by one thread, as ever.
    unsafe { std::ptr::copy_nonoverlapping(name.as_ptr().cast(), to, name.len()) };
    to
}

#[unsafe(no_mangle)]
pub extern "C" fn pvmsleep(seconds: c_int) -> c_int {
    std::thread::sleep(std::time::Duration::from_secs(u64::try_from(seconds).unwrap_or(0)));
    0
}

/// # Safety
/// It is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvmgetclock(now: *mut libc::timeval) {
    // SAFETY: the caller's promise.
    unsafe { libc::gettimeofday(now, std::ptr::null_mut()) };
}

/// Memory as PVM's own libraries take it; the second argument says for what.
#[unsafe(no_mangle)]
pub extern "C" fn pvm_alloc(bytes: c_uint, _what: *const c_char) -> *mut c_char {
    // SAFETY: a size.
    unsafe { libc::malloc(bytes as usize).cast() }
}

/// # Safety
/// Memory of [`pvm_alloc`], or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_realloc(memory: *mut c_char, bytes: c_uint) -> *mut c_char {
    // SAFETY: the caller's promise.
    unsafe { libc::realloc(memory.cast(), bytes as usize).cast() }
}

/// # Safety
/// Memory of [`pvm_alloc`], or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_free(memory: *mut c_char) {
    // SAFETY: the caller's promise.
    unsafe { libc::free(memory.cast()) };
}

/// Descriptors of the program are its own affair.
#[unsafe(no_mangle)]
pub extern "C" fn pvm_fd_add(_descriptor: c_int, _sets: c_int) -> c_long {
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn pvm_fd_delete(_descriptor: c_int, _sets: c_int) -> c_long {
    0
}

/// A dump of memory for people who look for faults; there is nothing to be told here.
#[unsafe(no_mangle)]
pub extern "C" fn i_dump(_level: c_int) -> c_int {
    0
}

/// How long group calls of the original wait for its server; there is none here.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static pvmgs_tmout: AtomicUsize = AtomicUsize::new(0);

/// The task that serves groups: none, the daemon does.
#[unsafe(no_mangle)]
pub extern "C" fn gs_getgstid() -> c_int {
    Error::NO_TASK.0
}

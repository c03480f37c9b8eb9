//! The entry points of `weft_objects.h`: C becomes Rust at once, and errors become numbers.

mod object;
mod standard;

use crate::calls;
use crate::fault::{CallFault, FaultNumber, Result};
use crate::space;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// A program that is started by its own name may be a whole job.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

extern "C" fn at_start() {
    weft_fabric::by_name::begin(c"weft_objects_init", weft_objects_init as *const ());
}

thread_local! {
    /// What the last error of this thread says.
    static LAST: RefCell<CString> = RefCell::default();
}

/// What an entry point answers: 0 and more, or an error, which is kept for [`weft_objects_error`].
#[inline]
fn answer(result: Result<c_int>) -> c_int {
    match result {
        Ok(number) => number,
        Err(error) => keep(&error),
    }
}

#[cold]
fn keep(error: &CallFault) -> c_int {
    LAST.set(CString::new(error.text.replace('\0', " ")).unwrap_or_default());
    error.number as c_int
}

/// Bytes of the caller.
///
/// # Safety
/// `at` is null, or readable for `length` bytes as long as the answer lives.
#[inline]
unsafe fn bytes<'a>(at: *const c_void, length: usize) -> Result<&'a [u8]> {
    match (length, at.is_null()) {
        (0, _) => Ok(&[]),
        (_, true) => Err(CallFault::argument(format!("{length} bytes at a null pointer"))),
        (1..=0x7fff_ffff, false) => {
            // SAFETY: the caller's promise.
            Ok(unsafe { std::slice::from_raw_parts(at.cast(), length) })
        }
        _ => Err(CallFault::argument(format!("{length} bytes: arguments have less than 2 GiB"))),
    }
}

/// A name that the caller has given.
///
/// # Safety
/// `at` is null, or a C string.
unsafe fn name<'a>(at: *const c_char) -> Result<&'a str> {
    if at.is_null() {
        return Err(CallFault::argument("the name of an object is a null pointer"));
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(at) }.to_str().map_err(|_| CallFault::argument("the name of an object is no UTF-8"))
}

/// Stores an answer where the caller wants it.
///
/// # Safety
/// `at` is null or valid.
#[inline]
unsafe fn store<T>(at: *mut T, value: T) {
    if !at.is_null() {
        // SAFETY: the caller's promise.
        unsafe { at.write(value) };
    }
}

/// Stores this thread's last answer and its length; the answer here is that of its call, or an error where there is no
/// room for all of it. A null pointer and no size: nobody wants it.
///
/// # Safety
/// `to` is null or writable for `size` bytes; `length` is null or valid.
unsafe fn store_answer(to: *mut c_void, size: usize, length: *mut usize) -> Result<c_int> {
    let room = if to.is_null() { 0 } else { size };
    calls::with_answer(|found, code| {
        let copied = found.len().min(room);
        if copied > 0 {
            // SAFETY: the caller's promise; no more is copied than there is, and than has room.
            unsafe { to.cast::<u8>().copy_from_nonoverlapping(found.as_ptr(), copied) };
        }
        // SAFETY: the caller's promise.
        unsafe { store(length, found.len()) };
        if copied == found.len() || to.is_null() && size == 0 {
            return Ok(code);
        }
        let text = format!("the answer has {} bytes, and the room {room}: it holds the beginning", found.len());
        Err(CallFault::new(FaultNumber::Truncated, text))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_objects_init() -> c_int {
    answer(space::open().map(|()| 0))
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_objects_deliver(delivers: c_int) -> c_int {
    answer(space::deliver(delivers != 0).map(|()| 0))
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_objects_finish() -> c_int {
    answer(space::outside_operation().and_then(|()| {
        // What this thread has begun leads to the process's part in the job, too.
        calls::keep(Vec::new(), 0);
        space::close().map(|()| 0)
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_objects_me() -> c_int {
    answer(space::place().map(|(me, _)| me as c_int))
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_objects_size() -> c_int {
    answer(space::place().map(|(_, size)| size as c_int))
}

/// The last error's text.
#[unsafe(no_mangle)]
pub extern "C" fn weft_objects_error() -> *const c_char {
    LAST.with_borrow(|text| text.as_ptr())
}

/// What a number that a call has answered means.
#[unsafe(no_mangle)]
pub extern "C" fn weft_objects_error_text(number: c_int) -> *const c_char {
    let text = match number {
        0.. => c"no error",
        -1 => c"not allowed now: not joined, or inside an operation, which calls no objects",
        -2 => c"an argument that is not allowed",
        -3 => c"no object has this name",
        -4 => c"the object is of another type",
        -5 => c"the answer is longer than the room for it",
        -6 => c"the object has ended with the process that had it",
        -7 => c"the operation has failed",
        -8 => c"the object cannot be used any more",
        -9 => c"the time is over, and the operation is not done yet",
        -10 => c"the processes cannot work together",
        _ => c"not an error of libweft_objects",
    };
    text.as_ptr()
}

//! Buffers of messages: memory of the process with a head before it, which says how long it is.

use crate::failure::fail;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

/// Before the bytes. As long as the strictest alignment, which the bytes have too.
#[repr(C)]
struct BufferHead {
    mark: u64,
    bytes: u64,
}

const HEAD: usize = size_of::<BufferHead>();
const IN_USE: u64 = 0x7034_206d_6573_7361;
const GIVEN_BACK: u64 = 0x7034_2066_7265_6564;

/// What the program has said of the lengths of buffers. The C library's allocator does without.
static LENGTHS: [AtomicI32; 8] = {
    const fn of(bytes: i32) -> AtomicI32 {
        AtomicI32::new(bytes)
    }
    [of(64), of(256), of(1024), of(4096), of(16_384), of(65_536), of(262_144), of(1_048_576)]
};

/// A buffer of so many bytes, or null where there is no memory.
pub fn allocate(bytes: usize) -> *mut u8 {
    let Some(whole) = bytes.checked_add(HEAD) else { return ptr::null_mut() };
    // SAFETY: the head has room, and what `malloc` gives is aligned for it.
    unsafe {
        let head: *mut BufferHead = libc::malloc(whole).cast();
        if head.is_null() {
            return ptr::null_mut();
        }
        head.write(BufferHead { mark: IN_USE, bytes: bytes as u64 });
        head.cast::<u8>().add(HEAD)
    }
}

/// The head of a buffer; what is none ends the job.
///
/// # Safety
/// There are readable bytes before `buffer`.
unsafe fn head(call: &str, buffer: *mut u8) -> *mut BufferHead {
    let head: *mut BufferHead = buffer.wrapping_sub(HEAD).cast();
    // SAFETY: the caller's promise.
    match if head.is_aligned() { unsafe { head.read() }.mark } else { 0 } {
        IN_USE => head,
        GIVEN_BACK => fail(&format!("{call}: the buffer was given back before"), -1),
        _ => fail(&format!("{call}: the buffer is none of p4_msg_alloc or p4_recv"), -1),
    }
}

/// The bytes that a buffer has room for.
///
/// # Safety
/// `buffer` is one of [`allocate`], as far as the program knows.
pub unsafe fn room(call: &str, buffer: *mut u8) -> usize {
    // SAFETY: the caller's promise.
    unsafe { (*head(call, buffer)).bytes as usize }
}

/// # Safety
/// `buffer` is one of [`allocate`], as far as the program knows, and nobody uses it any more.
pub unsafe fn free(buffer: *mut u8) {
    if !buffer.is_null() {
        // SAFETY: the caller's promise.
        unsafe {
            let head = head("p4_msg_free", buffer);
            (*head).mark = GIVEN_BACK;
            libc::free(head.cast());
        }
    }
}

/// Notes the length of buffers of a kind.
pub fn set_length(kind: i32, bytes: i32) {
    match usize::try_from(kind).ok().and_then(|kind| LENGTHS.get(kind)) {
        Some(length) => length.store(bytes, Ordering::Relaxed),
        None => fail("p4_set_avail_buff: buffers are of the kinds 0 to 7, not of", kind),
    }
}

/// The lengths as text.
pub fn lengths() -> String {
    let lengths = LENGTHS.iter().map(|length| length.load(Ordering::Relaxed).to_string());
    format!("buffers of up to {} bytes; the C library keeps them", lengths.collect::<Vec<_>>().join(", "))
}

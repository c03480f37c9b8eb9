//! Arguments that stand for something else: variables in common blocks, known by their addresses.
//!
//! `mpif.h` and the modules name the same blocks. A program has its own copy of a block that it names, and the dynamic
//! linker makes that one count for all, so an address is asked for anew each time.
#![allow(non_upper_case_globals, reason = "the names are those that the compiler makes of common blocks")]

use std::cell::UnsafeCell;
use std::ffi::c_void;

/// Memory that nobody reads: it holds a status, the longest of what these variables are.
#[repr(transparent)]
pub struct SentinelBlock(UnsafeCell<[i32; 8]>);

// SAFETY: the library itself never reads or writes it.
unsafe impl Sync for SentinelBlock {}

macro_rules! blocks {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            pub static $name: SentinelBlock = SentinelBlock(UnsafeCell::new([0; 8]));
        )*
    };
}

blocks! {
    weft_bottom_ weft_in_place_ weft_buffer_automatic_ weft_status_ignore_ weft_statuses_ignore_ weft_errcodes_ignore_
    weft_f08_status_ignore_ weft_f08_statuses_ignore_ weft_argv_null_ weft_argvs_null_ weft_unweighted_ weft_weights_empty_
}

fn is(at: *const c_void, block: &SentinelBlock) -> bool {
    std::ptr::eq(at, block.0.get().cast())
}

/// A buffer, or what stands for one.
#[inline]
pub fn buffer(at: *mut c_void) -> *mut c_void {
    let code = match () {
        () if is(at, &weft_bottom_) => 0,
        () if is(at, &weft_in_place_) => 1,
        () if is(at, &weft_buffer_automatic_) => 2,
        () => return at,
    };
    std::ptr::without_provenance_mut(code)
}

pub fn is_in_place(at: *const c_void) -> bool {
    is(at, &weft_in_place_)
}

/// A status or an array of them, or null for none.
#[inline]
pub fn status(at: *mut i32) -> *mut c_void {
    let at = at.cast();
    let blocks = [&weft_status_ignore_, &weft_statuses_ignore_, &weft_f08_status_ignore_, &weft_f08_statuses_ignore_];
    if blocks.into_iter().any(|block| is(at, block)) { std::ptr::null_mut() } else { at }
}

/// Weights of edges, or what stands for them.
pub fn weights(at: *mut i32) -> *mut c_void {
    let at = at.cast();
    let code = match () {
        () if is(at, &weft_unweighted_) => 10,
        () if is(at, &weft_weights_empty_) => 11,
        () => return at,
    };
    std::ptr::without_provenance_mut(code)
}

pub fn error_codes(at: *mut i32) -> *mut c_void {
    if is(at.cast(), &weft_errcodes_ignore_) { std::ptr::null_mut() } else { at.cast() }
}

/// Whether a list of arguments is `MPI_ARGV_NULL` or `MPI_ARGVS_NULL`.
pub fn is_no_arguments(at: *const u8) -> bool {
    is(at.cast(), &weft_argv_null_) || is(at.cast(), &weft_argvs_null_)
}

/// Where a buffer of the library's own was detached, Fortran gets what it attached.
///
/// # Safety
/// `at` is where the function has stored an address.
pub unsafe fn detached(at: *mut *mut c_void) {
    // SAFETY: as the caller says.
    unsafe {
        if (*at).addr() == 2 {
            *at = weft_buffer_automatic_.0.get().cast();
        }
    }
}

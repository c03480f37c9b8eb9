//! Packing and unpacking of elements.
//!
//! Memory that the program describes is its own to have: a count and a stride that lead out of it lead out of it here.

use std::ffi::{CStr, c_char, c_double, c_float, c_int, c_long, c_short, c_uint, c_ulong, c_ushort};

use crate::buffer::ElementKind;
use crate::errors::{Code, answered};
use crate::library::library;

/// # Safety
/// The elements can be read.
#[inline(always)]
pub(super) unsafe fn pack(kind: ElementKind, first: *const u8, count: c_int, stride: c_int) -> Result<(), Code> {
    // SAFETY: as the caller says.
    unsafe { library().buffers.packed()?.pack(kind, first, count, stride) }
}

/// # Safety
/// The elements can be written.
#[inline(always)]
pub(super) unsafe fn unpack(kind: ElementKind, first: *mut u8, count: c_int, stride: c_int) -> Result<(), Code> {
    // SAFETY: as the caller says.
    unsafe { library().buffers.unpacked()?.unpack(kind, first, count, stride) }
}

/// # Safety
/// `text` is null, or a C string.
pub(super) unsafe fn pack_text(text: *const c_char) -> Result<(), Code> {
    let mut library = library();
    let message = library.buffers.packed()?;
    if text.is_null() {
        return Err(Code::BAD_PARAM);
    }
    // SAFETY: as the caller says.
    message.pack_text(unsafe { CStr::from_ptr(text) })
}

/// # Safety
/// `to` is null, or has room for the text.
pub(super) unsafe fn unpack_text(to: *mut c_char) -> Result<(), Code> {
    let mut library = library();
    let message = library.buffers.unpacked()?;
    if to.is_null() {
        return Err(Code::BAD_PARAM);
    }
    // SAFETY: as the caller says.
    unsafe { message.unpack_text(to.cast()) }
}

macro_rules! elements {
    ($($kind:ident $type:ty: $pack:ident $unpack:ident)+) => { $(
        /// # Safety
        /// The elements can be read.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $pack(first: *const $type, count: c_int, stride: c_int) -> c_int {
            const CALL: &CStr = name(concat!(stringify!($pack), "\0"));
            // SAFETY: as the caller says.
            let packed = unsafe { pack(ElementKind::$kind, first.cast(), count, stride) };
            answered(CALL, packed.map(|()| 0))
        }

        /// # Safety
        /// The elements can be written.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $unpack(first: *mut $type, count: c_int, stride: c_int) -> c_int {
            const CALL: &CStr = name(concat!(stringify!($unpack), "\0"));
            // SAFETY: as the caller says.
            let unpacked = unsafe { unpack(ElementKind::$kind, first.cast(), count, stride) };
            answered(CALL, unpacked.map(|()| 0))
        }
    )+ };
}

/// The name of a function, which ends with a zero.
const fn name(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("one zero, at the end"),
    }
}

elements! {
    Byte c_char: pvm_pkbyte pvm_upkbyte
    Short c_short: pvm_pkshort pvm_upkshort
    UnsignedShort c_ushort: pvm_pkushort pvm_upkushort
    Int c_int: pvm_pkint pvm_upkint
    Int c_uint: pvm_pkuint pvm_upkuint
    Long c_long: pvm_pklong pvm_upklong
    Long c_ulong: pvm_pkulong pvm_upkulong
    Float c_float: pvm_pkfloat pvm_upkfloat
    Double c_double: pvm_pkdouble pvm_upkdouble
    Complex c_float: pvm_pkcplx pvm_upkcplx
    DoubleComplex c_double: pvm_pkdcplx pvm_upkdcplx
}

/// # Safety
/// `text` is null, or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_pkstr(text: *const c_char) -> c_int {
    // SAFETY: as the caller says.
    let packed = unsafe { pack_text(text) };
    answered(c"pvm_pkstr", packed.map(|()| 0))
}

/// # Safety
/// `to` is null, or has room for the text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_upkstr(to: *mut c_char) -> c_int {
    // SAFETY: as the caller says.
    let unpacked = unsafe { unpack_text(to) };
    answered(c"pvm_upkstr", unpacked.map(|()| 0))
}

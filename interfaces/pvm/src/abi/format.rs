//! Packing and unpacking by a format, with any number of arguments.
//!
//! A format has an item for each argument: `%`, how many elements and after a dot how far apart (a number, or `*` for
//! an argument), `h`, `l` or `u`, and the type: `c`, `d`, `f`, `x` (complex) or `s`. All else in it is passed over. One
//! element alone is packed by value, all others by their address. `%+` at the beginning has the argument of
//! `pvm_initsend`.

use std::ffi::{CStr, c_char, c_int};

use super::arguments::{ArgumentList, variadic};
use super::buffers::begin;
use super::pack::{pack, pack_text, unpack, unpack_text};
use crate::buffer::{ElementKind, Encoding};
use crate::errors::{Code, answered};
use crate::library::library;

/// How many, as a format says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Amount {
    One,
    Given(c_int),
    Argument,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FormatType {
    Elements(ElementKind),
    Text,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FormatItem {
    count: Amount,
    stride: Amount,
    of: FormatType,
}

/// The items of a format.
struct Format<'a>(&'a [u8]);

impl Format<'_> {
    fn next_byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    fn skip(&mut self, byte: u8) -> bool {
        let stands = self.0.first() == Some(&byte);
        if stands {
            self.0 = &self.0[1..];
        }
        stands
    }

    fn amount(&mut self) -> Result<Amount, Code> {
        if self.skip(b'*') {
            return Ok(Amount::Argument);
        }
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = self.0.split_at(digits);
        self.0 = rest;
        let text = std::str::from_utf8(number).unwrap_or_default();
        if text.is_empty() { Ok(Amount::One) } else { text.parse().map(Amount::Given).map_err(|_| Code::BAD_PARAM) }
    }

    fn item(&mut self) -> Result<FormatItem, Code> {
        let count = self.amount()?;
        let dotted = self.skip(b'.');
        let stride = if dotted { self.amount()? } else { Amount::One };
        // With a stride it is an address, even of one.
        let count = if dotted && count == Amount::One { Amount::Given(1) } else { count };
        let (mut short, mut long, mut unsigned) = (false, false, false);
        let of = loop {
            let kind = match self.next_byte().ok_or(Code::BAD_PARAM)? {
                b'h' => {
                    short = true;
                    continue;
                }
                b'l' => {
                    long = true;
                    continue;
                }
                b'u' => {
                    unsigned = true;
                    continue;
                }
                b's' => break FormatType::Text,
                b'c' => ElementKind::Byte,
                b'd' if long => ElementKind::Long,
                b'd' if short && unsigned => ElementKind::UnsignedShort,
                b'd' if short => ElementKind::Short,
                b'd' => ElementKind::Int,
                b'f' if long => ElementKind::Double,
                b'f' => ElementKind::Float,
                b'x' if long => ElementKind::DoubleComplex,
                b'x' => ElementKind::Complex,
                _ => return Err(Code::BAD_PARAM),
            };
            break FormatType::Elements(kind);
        };
        Ok(FormatItem { count, stride, of })
    }
}

impl Iterator for Format<'_> {
    type Item = Result<FormatItem, Code>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.next_byte()? != b'%' {}
        Some(self.item())
    }
}

/// The number that a format gives or the next argument is.
///
/// # Safety
/// The next argument is a number, if one is asked for.
unsafe fn amount(amount: Amount, arguments: &mut ArgumentList) -> c_int {
    match amount {
        Amount::One => 1,
        Amount::Given(number) => number,
        // SAFETY: as the caller says.
        Amount::Argument => unsafe { arguments.int() },
    }
}

/// # Safety
/// The arguments are those that the item asks for.
unsafe fn pack_item(item: FormatItem, arguments: &mut ArgumentList) -> Result<(), Code> {
    // SAFETY: as the caller says.
    unsafe {
        let (count, stride) = (amount(item.count, arguments), amount(item.stride, arguments));
        let kind = match item.of {
            FormatType::Text => return pack_text(arguments.pointer().cast()),
            FormatType::Elements(kind) => kind,
        };
        let mut value = [0; 8];
        match kind {
            _ if item.count != Amount::One => return pack(kind, arguments.pointer().cast(), count, stride),
            ElementKind::Complex | ElementKind::DoubleComplex => return pack(kind, arguments.pointer().cast(), 1, 1),
            ElementKind::Float => value[..4].copy_from_slice(&(arguments.double() as f32).to_ne_bytes()),
            ElementKind::Double => value = arguments.double().to_ne_bytes(),
            // The lowest bytes come first.
            _ => value = arguments.long().to_le_bytes(),
        }
        pack_value(kind, &value)
    }
}

/// Packs an element that is not the program's to leave in place.
fn pack_value(kind: ElementKind, value: &[u8; 8]) -> Result<(), Code> {
    if library().buffers.packed()?.encoding() == Encoding::InPlace {
        return Err(Code::NOT_IMPL);
    }
    // SAFETY: no such element is longer.
    unsafe { pack(kind, value.as_ptr(), 1, 1) }
}

/// # Safety
/// The arguments are those that the item asks for.
unsafe fn unpack_item(item: FormatItem, arguments: &mut ArgumentList) -> Result<(), Code> {
    // SAFETY: as the caller says.
    unsafe {
        let (count, stride) = (amount(item.count, arguments), amount(item.stride, arguments));
        match item.of {
            FormatType::Text => unpack_text(arguments.pointer().cast()),
            FormatType::Elements(kind) => unpack(kind, arguments.pointer().cast(), count, stride),
        }
    }
}

/// # Safety
/// `format` is null or a C string, and the arguments are those that it asks for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_vpackf(format: *const c_char, arguments: *mut ArgumentList) -> c_int {
    // SAFETY: as the caller says.
    let done = unsafe { pack_all(format, arguments) };
    answered(c"pvm_packf", done.map(|()| 0))
}

unsafe fn pack_all(format: *const c_char, arguments: *mut ArgumentList) -> Result<(), Code> {
    // SAFETY: as the caller of `pvm_vpackf` says.
    unsafe {
        let arguments = &mut *arguments;
        let mut format = Format(bytes(format)?);
        if let Some(rest) = format.0.strip_prefix(b"%+") {
            format.0 = rest;
            begin(arguments.int())?;
        }
        library().buffers.packed()?;
        format.try_for_each(|item| pack_item(item?, arguments))
    }
}

/// # Safety
/// `format` is null or a C string, and the arguments are those that it asks for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_vunpackf(format: *const c_char, arguments: *mut ArgumentList) -> c_int {
    // SAFETY: as the caller says.
    let done = unsafe { unpack_all(format, arguments) };
    answered(c"pvm_unpackf", done.map(|()| 0))
}

unsafe fn unpack_all(format: *const c_char, arguments: *mut ArgumentList) -> Result<(), Code> {
    // SAFETY: as the caller of `pvm_vunpackf` says.
    unsafe {
        let arguments = &mut *arguments;
        library().buffers.unpacked()?;
        Format(bytes(format)?).try_for_each(|item| unpack_item(item?, arguments))
    }
}

/// # Safety
/// `format` is null, or a C string.
unsafe fn bytes<'a>(format: *const c_char) -> Result<&'a [u8], Code> {
    if format.is_null() {
        return Err(Code::BAD_PARAM);
    }
    // SAFETY: as the caller says.
    Ok(unsafe { CStr::from_ptr(format) }.to_bytes())
}

variadic!(pvm_packf, pvm_vpackf);
variadic!(pvm_unpackf, pvm_vunpackf);

//! XDR (RFC 4506): numbers in units of four bytes, the first byte the highest one.
//!
//! Integers of up to four bytes are an `int` or an `unsigned int`, longer ones a `hyper`; a `long` is one wherever it
//! comes from. A `bool` is 0 or 1 in a unit, 80-bit floats are a `quadruple`, complex numbers two numbers. Bytes and
//! characters are fixed-length `opaque` data: those that follow each other are one item, however they lie in memory,
//! and zeros fill its last unit. So what is written depends on the basic elements and their order alone, and who reads
//! may have another layout. Lengths of strings are the caller's to write, as elements of their own.

use super::external::{quad_from_x87, x87_from_quad};
use super::form::Form;
use super::scalar::Scalar;

#[cfg(test)]
mod tests;

/// Bytes of a unit.
const UNIT: u64 = 4;

/// Why data are not written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdrError {
    /// There is no room for all of it, or the data end too early. Nothing was changed.
    Short,
    /// XDR has no such element. Nothing was changed.
    Unknown(Scalar),
    /// A number that does not fit into the element, or a `bool` that is neither 0 nor 1. What stands before it was
    /// read.
    Range(Scalar),
}

/// What an element is in XDR.
#[derive(Clone, Copy, PartialEq, Eq)]
enum XdrItem {
    Opaque,
    Integer { signed: bool },
    Bool,
    Float,
    Quadruple,
}

impl XdrItem {
    fn of(scalar: Scalar) -> Result<Self, XdrError> {
        use Scalar::*;
        Ok(match scalar {
            Byte | Packed | Char | Character => Self::Opaque,
            I8 | I16 | I32 | I64 | Long | Logical1 | Logical2 | Logical4 | Logical8 => Self::Integer { signed: true },
            U8 | U16 | U32 | U64 | Ulong | Wchar => Self::Integer { signed: false },
            Bool => Self::Bool,
            F32 | F64 | C32 | C64 => Self::Float,
            F80 | C80 => Self::Quadruple,
            F16 => return Err(XdrError::Unknown(scalar)),
        })
    }

    /// Bytes of one number.
    fn size(self, scalar: Scalar) -> usize {
        match self {
            Self::Opaque => 1,
            Self::Bool => UNIT as usize,
            Self::Integer { .. } | Self::Float | Self::Quadruple => part_size(scalar).max(UNIT as usize),
        }
    }
}

/// Bytes in memory of one of the numbers that an element is made of.
fn part_size(scalar: Scalar) -> usize {
    (scalar.size() / scalar.components()) as usize
}

fn filled(bytes: u128) -> u128 {
    bytes.next_multiple_of(UNIT.into())
}

/// How many bytes some elements take: those of opaque items that are open at both ends, and what lies between.
#[derive(Clone, Copy, Default)]
struct Measure {
    first: u128,
    /// `None`: all of it is one opaque item, of which `first` tells the bytes.
    inner: Option<u128>,
    last: u128,
}

impl Measure {
    fn opaque(&mut self, bytes: u128) {
        *(if self.inner.is_some() { &mut self.last } else { &mut self.first }) += bytes;
    }

    fn numbers(&mut self, bytes: u128) {
        let inner = self.inner.get_or_insert(0);
        *inner += filled(std::mem::take(&mut self.last)) + bytes;
    }

    /// Bytes of so many, one after the other.
    fn times(self, count: u128) -> u128 {
        match (self.inner, count) {
            (_, 0) => 0,
            (None, _) => filled(self.first * count),
            (Some(inner), _) => {
                let between = filled(self.last + self.first);
                filled(self.first) + count * inner + (count - 1) * between + filled(self.last)
            }
        }
    }
}

impl Form {
    /// Bytes that `count` elements take in XDR; none when that exceeds 2^63-1, or when there is no such element in XDR.
    pub fn xdr_size(&self, count: i64) -> Option<u64> {
        self.measure(count).ok()
    }

    fn measure(&self, count: i64) -> Result<u64, XdrError> {
        let (mut measure, mut unknown) = (Measure::default(), None);
        self.map.visit(0, &mut |scalar, _, scalars| match XdrItem::of(scalar) {
            Ok(XdrItem::Opaque) => measure.opaque(scalars as u128),
            Ok(item) => measure.numbers((scalars * scalar.components()) as u128 * item.size(scalar) as u128),
            Err(error) => unknown = unknown.or(Some(error)),
        });
        let count = u128::try_from(count).map_err(|_| XdrError::Short)?;
        // What does not fit into memory fits into no buffer.
        let size = i64::try_from(measure.times(count)).map_err(|_| XdrError::Short)?;
        unknown.map_or(Ok(size as u64), Err)
    }

    /// Writes `count` elements at `base` to the start of `out`; answers the bytes written.
    ///
    /// # Safety
    /// `base` with this form and count describes readable memory.
    ///
    /// # Errors
    /// `out` is too short, or there is no such element in XDR.
    pub unsafe fn pack_xdr(&self, base: *const u8, count: i64, out: &mut [u8]) -> Result<usize, XdrError> {
        let size = usize::try_from(self.measure(count)?).map_err(|_| XdrError::Short)?;
        let mut writer = Writer { out: out.get_mut(..size).ok_or(XdrError::Short)?, at: 0 };
        self.each(count, |item, scalar, disp| {
            if item != XdrItem::Opaque {
                writer.fill();
            }
            for part in 0..scalar.components() as usize {
                let bytes = part_size(scalar);
                let mut native = [0; 16];
                // SAFETY: a number of an element of the type map; it has at most 16 bytes.
                unsafe {
                    let at = base.wrapping_offset(disp as isize).wrapping_add(part * bytes);
                    std::ptr::copy_nonoverlapping(at, native.as_mut_ptr(), bytes);
                }
                writer.put(out_of(item, native, bytes), item.size(scalar));
            }
            Ok(())
        })?;
        writer.fill();
        Ok(size)
    }

    /// Reads `count` elements from the start of `data` to `base`; answers the bytes read.
    ///
    /// # Safety
    /// `base` with this form and count describes writable memory.
    ///
    /// # Errors
    /// The data are too short, a number does not fit, or there is no such element in XDR.
    pub unsafe fn unpack_xdr(&self, base: *mut u8, count: i64, data: &[u8]) -> Result<usize, XdrError> {
        let size = usize::try_from(self.measure(count)?).map_err(|_| XdrError::Short)?;
        let mut reader = Reader { data: data.get(..size).ok_or(XdrError::Short)?, at: 0 };
        self.each(count, |item, scalar, disp| {
            if item != XdrItem::Opaque {
                reader.skip();
            }
            for part in 0..scalar.components() as usize {
                let bytes = part_size(scalar);
                let native = into(item, reader.take(item.size(scalar)), bytes).ok_or(XdrError::Range(scalar))?;
                // SAFETY: as in `pack_xdr`, for writing.
                unsafe {
                    let at = base.wrapping_offset(disp as isize).wrapping_add(part * bytes);
                    std::ptr::copy_nonoverlapping(native.as_ptr(), at, bytes);
                }
            }
            Ok(())
        })?;
        Ok(size)
    }

    /// Calls `visit(item, scalar, displacement)` for each basic element, in order, until it fails.
    fn each(
        &self,
        count: i64,
        mut visit: impl FnMut(XdrItem, Scalar, i64) -> Result<(), XdrError>,
    ) -> Result<(), XdrError> {
        let mut result = Ok(());
        for element in 0..count {
            self.map.visit(element.wrapping_mul(self.extent()), &mut |scalar, disp, scalars| {
                for k in 0..scalars {
                    if result.is_err() {
                        return;
                    }
                    let disp = disp.wrapping_add(k * scalar.size());
                    result = XdrItem::of(scalar).and_then(|item| visit(item, scalar, disp));
                }
            });
            result?;
        }
        result
    }
}

struct Writer<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    /// The lowest `size` bytes of a value.
    fn put(&mut self, value: u128, size: usize) {
        self.out[self.at..self.at + size].copy_from_slice(&value.to_be_bytes()[16 - size..]);
        self.at += size;
    }

    /// Ends an opaque item.
    fn fill(&mut self) {
        let end = self.at.next_multiple_of(UNIT as usize);
        self.out[self.at..end].fill(0);
        self.at = end;
    }
}

struct Reader<'a> {
    data: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    /// A value of `size` bytes.
    fn take(&mut self, size: usize) -> u128 {
        let bytes = &self.data[self.at..self.at + size];
        self.at += size;
        bytes.iter().fold(0, |value, byte| value << 8 | u128::from(*byte))
    }

    /// Leaves an opaque item behind; what fills it means nothing.
    fn skip(&mut self) {
        self.at = self.at.next_multiple_of(UNIT as usize);
    }
}

/// What is written of a number of so many bytes.
fn out_of(item: XdrItem, native: [u8; 16], bytes: usize) -> u128 {
    let value = u128::from_le_bytes(native);
    match item {
        XdrItem::Integer { signed: true } => signed(value, bytes) as u128,
        XdrItem::Bool => u128::from(value != 0),
        XdrItem::Quadruple => quad_from_x87(native),
        XdrItem::Opaque | XdrItem::Integer { .. } | XdrItem::Float => value,
    }
}

/// The number of so many bytes for a value that was read; none if it does not fit.
fn into(item: XdrItem, value: u128, bytes: usize) -> Option<[u8; 16]> {
    let bits = 8 * bytes as u32;
    let fits = match item {
        // What was read has at least a unit.
        XdrItem::Integer { signed: true } => signed(value, bytes) == signed(value, bytes.max(UNIT as usize)),
        XdrItem::Integer { signed: false } => value.checked_shr(bits).unwrap_or(0) == 0,
        XdrItem::Bool => value <= 1,
        XdrItem::Opaque | XdrItem::Float | XdrItem::Quadruple => true,
    };
    let native = if item == XdrItem::Quadruple { x87_from_quad(value) } else { value.to_le_bytes() };
    fits.then_some(native)
}

/// The integer that the lowest `bytes` bytes are.
fn signed(value: u128, bytes: usize) -> i128 {
    let shift = 128 - 8 * bytes as u32;
    (value << shift) as i128 >> shift
}

//! external32: big-endian packing with fixed sizes (MPI 5.0, section 14.5.2).

use super::form::Form;
use super::scalar::Scalar;

/// Which way the numbers go.
#[derive(Clone, Copy)]
enum NumberWay {
    Out,
    In,
}

impl Form {
    /// Bytes that `count` elements take in external32, or none when that exceeds 2^63-1.
    pub fn external_size(&self, count: i64) -> Option<u64> {
        self.map.external.checked_mul(count).and_then(|size| u64::try_from(size).ok())
    }

    /// Writes `count` elements at `base` in external32 to the start of `out`. Answers the bytes written, or none (and
    /// nothing is written) when `out` is too short.
    ///
    /// # Safety
    /// `base` with this form and count describes readable memory.
    pub unsafe fn pack_external(&self, base: *const u8, count: i64, out: &mut [u8]) -> Option<usize> {
        let size = self.external_size(count).filter(|&size| size <= out.len() as u64)? as usize;
        // SAFETY: the caller's promise for the buffer; `out` holds `size` bytes.
        unsafe { self.convert(base.cast_mut(), count, out.as_mut_ptr(), NumberWay::Out) };
        Some(size)
    }

    /// Reads `count` elements in external32 from the start of `data` to `base`. Answers the bytes read, or none (and
    /// nothing is changed) when `data` is too short.
    ///
    /// # Safety
    /// `base` with this form and count describes writable memory.
    pub unsafe fn unpack_external(&self, base: *mut u8, count: i64, data: &[u8]) -> Option<usize> {
        let size = self.external_size(count).filter(|&size| size <= data.len() as u64)? as usize;
        // SAFETY: the caller's promise for the buffer; `data` holds `size` bytes and is only read this way.
        unsafe { self.convert(base, count, data.as_ptr().cast_mut(), NumberWay::In) };
        Some(size)
    }

    /// As [`Self::unpack_external`] for data that ends early: reads the scalars that are there whole, and answers how
    /// many bytes of memory they make.
    ///
    /// # Safety
    /// As [`Self::unpack_external`].
    pub unsafe fn unpack_external_part(&self, base: *mut u8, count: i64, data: &[u8]) -> u64 {
        let (size, external) = (self.size(), self.map.external);
        if external == 0 {
            return 0;
        }
        let whole = count.min(data.len() as i64 / external);
        // SAFETY: the caller's promise for the buffer; `data` holds so many elements and is only read this way.
        unsafe { self.convert(base, whole, data.as_ptr().cast_mut(), NumberWay::In) };
        if whole == count {
            return (whole * size) as u64;
        }
        let (mut rest, mut bytes) = (&data[(whole * external) as usize..], whole * size);
        self.map.visit(whole.wrapping_mul(self.extent()), &mut |scalar, disp, scalars| {
            let there = scalars.min(rest.len() as i64 / scalar.external_size());
            for k in 0..there {
                let at = base.wrapping_offset(disp.wrapping_add(k * scalar.size()) as isize);
                // SAFETY: a scalar of the type map, of which the data holds all bytes.
                unsafe { convert_scalar(scalar, at, rest.as_ptr().cast_mut(), NumberWay::In) };
                rest = &rest[scalar.external_size() as usize..];
            }
            bytes += there * scalar.size();
            if there < scalars {
                rest = &[];
            }
        });
        bytes as u64
    }

    /// # Safety
    /// Buffer and packed side are valid for the direction and for `count` elements.
    unsafe fn convert(&self, base: *mut u8, count: i64, packed: *mut u8, way: NumberWay) {
        let mut packed = packed;
        for i in 0..count {
            let start = i.wrapping_mul(self.extent());
            self.map.visit(start, &mut |scalar, disp, scalars| {
                for k in 0..scalars {
                    let offset = disp.wrapping_add(k * scalar.size());
                    // SAFETY: a scalar of the type map; the packed position advances by exactly its external size.
                    unsafe { convert_scalar(scalar, base.wrapping_offset(offset as isize), packed, way) };
                    packed = packed.wrapping_add(scalar.external_size() as usize);
                }
            });
        }
    }
}

/// Converts one scalar, part by part for complex ones.
///
/// # Safety
/// The memory at `native` and `packed` is valid for one scalar in the direction given.
unsafe fn convert_scalar(scalar: Scalar, native: *mut u8, packed: *mut u8, way: NumberWay) {
    let parts = scalar.components();
    let (size, external) = ((scalar.size() / parts) as usize, (scalar.external_size() / parts) as usize);
    for part in 0..parts as usize {
        let (native, packed) = (native.wrapping_add(part * size), packed.wrapping_add(part * external));
        let mut bytes = [0u8; 16];
        // SAFETY: `size` and `external` are at most 16 bytes and stay within the scalar.
        unsafe {
            match way {
                NumberWay::Out => {
                    std::ptr::copy_nonoverlapping(native, bytes.as_mut_ptr(), size);
                    let value = if is_extended(scalar) { quad_from_x87(bytes) } else { u128::from_le_bytes(bytes) };
                    let big = value.to_be_bytes();
                    std::ptr::copy_nonoverlapping(big[16 - external..].as_ptr(), packed, external);
                }
                NumberWay::In => {
                    std::ptr::copy_nonoverlapping(packed, bytes[16 - external..].as_mut_ptr(), external);
                    let value = extended_sign(scalar, u128::from_be_bytes(bytes), external);
                    let little = if is_extended(scalar) { x87_from_quad(value) } else { value.to_le_bytes() };
                    std::ptr::copy_nonoverlapping(little.as_ptr(), native, size);
                }
            }
        }
    }
}

fn is_extended(scalar: Scalar) -> bool {
    matches!(scalar, Scalar::F80 | Scalar::C80)
}

/// Signed integers that are wider in memory keep their sign.
fn extended_sign(scalar: Scalar, value: u128, external: usize) -> u128 {
    if scalar != Scalar::Long {
        return value;
    }
    let shift = 128 - 8 * external as u32;
    (((value << shift) as i128) >> shift) as u128
}

const FRACTION_BITS: u32 = 112;
const EXPONENT_MASK: u128 = 0x7fff;

/// The binary128 of an 80-bit float; exact. Both have 15 exponent bits with the same bias; the 80-bit one stores its
/// leading 1.
fn quad_from_x87(bytes: [u8; 16]) -> u128 {
    let raw = u128::from_le_bytes(bytes);
    let mantissa = raw as u64;
    let (sign, exponent) = (raw >> 79 & 1, raw >> 64 & EXPONENT_MASK);
    let fraction = u128::from(mantissa << 1) << (FRACTION_BITS - 64);
    if exponent != 0 || mantissa == 0 || mantissa >> 63 == 1 {
        // A subnormal with its leading bit set is the smallest normal number.
        let exponent = if exponent == 0 && mantissa >> 63 == 1 { 1 } else { exponent };
        return sign << 127 | exponent << FRACTION_BITS | fraction;
    }
    // Subnormal: the same value scaled to the position of a subnormal binary128.
    sign << 127 | u128::from(mantissa) << (FRACTION_BITS - 63)
}

/// The 80-bit float nearest to a binary128 (ties to even).
fn x87_from_quad(quad: u128) -> [u8; 16] {
    let (sign, exponent) = (quad >> 127, quad >> FRACTION_BITS & EXPONENT_MASK);
    let fraction = quad & ((1 << FRACTION_BITS) - 1);
    let dropped = FRACTION_BITS - 63;
    let leading = if exponent == 0 { 0 } else { 1u128 << 63 };
    let mut mantissa = leading | fraction >> dropped;
    let (rest, half) = (fraction & ((1 << dropped) - 1), 1u128 << (dropped - 1));
    let is_finite = exponent != EXPONENT_MASK;
    if is_finite && (rest > half || (rest == half && mantissa & 1 == 1)) {
        mantissa += 1;
    } else if !is_finite && fraction != 0 {
        mantissa |= 1 << 62; // a NaN whose payload lay in the dropped bits stays one
    }
    let (mut exponent, mut mantissa) = (exponent, mantissa);
    if mantissa >> 64 == 1 {
        (mantissa, exponent) = (1 << 63, exponent + 1);
    } else if exponent == 0 && mantissa >> 63 == 1 {
        exponent = 1; // rounded up into the normal numbers
    }
    (sign << 79 | exponent << 64 | mantissa).to_le_bytes()
}

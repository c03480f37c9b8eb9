//! What a schedule has to know of a datatype: its measures, and how to pack and unpack it.

use std::fmt;
use std::sync::Arc;

/// Packs and unpacks elements of a datatype that is not one block of bytes.
pub trait Codec: Send + Sync {
    /// # Safety
    /// `from` addresses `count` readable elements, `to` has room for their packed bytes; the two do not overlap.
    unsafe fn pack(&self, from: *const u8, count: u64, to: *mut u8);

    /// # Safety
    /// `from` holds the packed bytes of `count` elements, `to` addresses as many writable ones; no overlap.
    unsafe fn unpack(&self, from: *const u8, to: *mut u8, count: u64);
}

/// The measures of a datatype, all in bytes.
#[derive(Clone)]
pub struct Shape {
    /// Packed bytes of one element.
    pub size: u64,
    /// From one element to the next.
    pub extent: i64,
    /// First byte of data, counted from the element's address.
    pub low: i64,
    /// One past the last byte of data.
    pub high: i64,
    /// `None` when one element is a single block of `size` bytes, in order.
    pub codec: Option<Arc<dyn Codec>>,
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shape(size {}, extent {}, data {}..{})", self.size, self.extent, self.low, self.high)
    }
}

impl Shape {
    /// Elements of `size` bytes without gaps.
    pub const fn dense(size: u64) -> Self {
        Self { size, extent: size as i64, low: 0, high: size as i64, codec: None }
    }

    /// Whether `count` elements are one block of bytes in packing order.
    pub fn is_flat(&self, count: u64) -> bool {
        self.codec.is_none() && (count <= 1 || self.extent == self.size as i64)
    }

    /// The bytes that `count` elements touch: first and one past the last, counted from the first element's address.
    pub fn span(&self, count: u64) -> (i64, i64) {
        if count == 0 {
            return (0, 0);
        }
        let last = (count as i64 - 1) * self.extent;
        (self.low + last.min(0), self.high + last.max(0))
    }

    /// Packs `count` elements.
    ///
    /// # Safety
    /// As [`Codec::pack`].
    pub unsafe fn pack(&self, from: *const u8, count: u64, to: *mut u8) {
        // SAFETY: the caller's promise covers each element, which lies `extent` bytes after the one before.
        unsafe {
            match &self.codec {
                Some(codec) => codec.pack(from, count, to),
                None if self.is_flat(count) => {
                    to.copy_from_nonoverlapping(from.offset(self.low as isize), (count * self.size) as usize)
                }
                None => (0..count as isize).for_each(|i| {
                    let element = from.offset(self.low as isize + i * self.extent as isize);
                    to.add(i as usize * self.size as usize).copy_from_nonoverlapping(element, self.size as usize);
                }),
            }
        }
    }

    /// Unpacks `count` elements.
    ///
    /// # Safety
    /// As [`Codec::unpack`].
    pub unsafe fn unpack(&self, from: *const u8, to: *mut u8, count: u64) {
        // SAFETY: as in `pack`.
        unsafe {
            match &self.codec {
                Some(codec) => codec.unpack(from, to, count),
                None if self.is_flat(count) => {
                    to.offset(self.low as isize).copy_from_nonoverlapping(from, (count * self.size) as usize)
                }
                None => (0..count as isize).for_each(|i| {
                    let element = to.offset(self.low as isize + i * self.extent as isize);
                    element.copy_from_nonoverlapping(from.add(i as usize * self.size as usize), self.size as usize);
                }),
            }
        }
    }
}

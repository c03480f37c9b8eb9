//! Copying between a program's buffer and packed bytes, resumable at any byte.

use super::copy::{self, Level};
use super::form::Form;
use super::layout::{FEW, LayoutBlock};
use super::walk::{self, RunSink, Steps};

/// What is gone through block by block lies within so many bytes.
const NEAR: u64 = 8192;

/// Copies the runs to the packed bytes (`PACK`), or from them.
struct Mover<const PACK: bool> {
    packed: *mut u8,
}

impl<const PACK: bool> Mover<PACK> {
    /// Where the next `len` packed bytes are.
    #[inline(always)]
    fn next(&mut self, len: usize) -> *mut u8 {
        let at = self.packed;
        self.packed = at.wrapping_add(len);
        at
    }
}

impl<const PACK: bool> RunSink for Mover<PACK> {
    #[inline]
    unsafe fn run(&mut self, at: *mut u8, len: usize) {
        // SAFETY: WALK for the run; the packed side has or holds the range that is walked.
        unsafe { copy::run::<PACK>(at, self.next(len), len) };
    }

    #[inline]
    unsafe fn nest(&mut self, at: *mut u8, block: usize, outer: Steps, inner: Steps) {
        let packed = self.next(block * inner.count * outer.count);
        let level = |steps: Steps, packed| Level { count: steps.count, buffer: steps.stride as isize, packed };
        let (outer, inner) = (level(outer, (block * inner.count) as isize), level(inner, block as isize));
        // SAFETY: as `run`, for every block; packed ones lie side by side.
        unsafe { copy::nest::<PACK>(at, packed, block, outer, inner) };
    }

    #[inline]
    unsafe fn listed(&mut self, at: *mut u8, block: usize, displacements: &[i32]) {
        let packed = self.next(block * displacements.len());
        // SAFETY: as `nest`.
        unsafe { copy::listed::<PACK>(at, packed, block, displacements) };
    }

    /// One block after the other for some copies at a time, which stay in the first cache meanwhile.
    #[inline]
    unsafe fn repeated(&mut self, at: *mut u8, list: &[LayoutBlock], size: usize, copies: Steps) {
        let together = (NEAR / copies.stride.unsigned_abs().max(1)).min(128) as usize;
        if copies.count < FEW || together < FEW {
            // SAFETY: handed on.
            return unsafe { walk::one_by_one(self, at, list, copies) };
        }
        for first in (0..copies.count).step_by(together) {
            let count = together.min(copies.count - first);
            let at = at.wrapping_offset((first as i64).wrapping_mul(copies.stride) as isize);
            let packed = self.next(size * count);
            let level = Level { count, buffer: copies.stride as isize, packed: size as isize };
            for block in list {
                let at = at.wrapping_offset(block.disp as isize);
                let packed = packed.wrapping_add(block.start as usize);
                // SAFETY: as `nest`; packed copies lie side by side, and in each its blocks.
                unsafe { copy::few::<PACK>(at, packed, block.len as usize, level) };
            }
        }
    }
}

/// Calls a function for every run.
struct Visit<F>(F);

impl<F: FnMut(*mut u8, usize)> RunSink for Visit<F> {
    unsafe fn run(&mut self, at: *mut u8, len: usize) {
        (self.0)(at, len);
    }
}

impl Form {
    /// Bytes that `count` elements of this type take when packed, or none when that exceeds 2^63-1.
    #[inline]
    pub fn packed_size(&self, count: i64) -> Option<u64> {
        self.size().checked_mul(count).and_then(|size| u64::try_from(size).ok())
    }

    /// Copies the packed bytes `from..from + out.len()` of `count` elements at `base` into `out`.
    /// Answers how many there were: fewer than asked only at the end of the data.
    ///
    /// # Safety
    /// `base` with this form and count describes readable memory (null is allowed when displacements are absolute).
    #[inline]
    pub unsafe fn pack(&self, base: *const u8, count: i64, from: u64, out: &mut [u8]) -> usize {
        // SAFETY: the caller's promise, and `out` is a slice.
        unsafe { self.pack_to(base, count, from, out.as_mut_ptr(), out.len()) }
    }

    /// As [`Self::pack`] for memory that others may see: `len` bytes at `out`.
    ///
    /// # Safety
    /// As [`Self::pack`]; `out` is valid for writing `len` bytes and does not overlap the buffer.
    pub unsafe fn pack_to(&self, base: *const u8, count: i64, from: u64, out: *mut u8, len: usize) -> usize {
        let (from, to) = self.clip(count, from, len);
        let mut mover = Mover::<true> { packed: out };
        // SAFETY: WALK by the caller's promise; the range is clipped to the data and to `len`.
        unsafe { walk::copies(&self.layout, self.extent(), base.cast_mut(), count, from, to, &mut mover) };
        (to - from) as usize
    }

    /// Copies `data` to where the packed bytes from `from` on belong among `count` elements at `base`.
    /// Answers how many there were: fewer than given only when the elements are full.
    ///
    /// # Safety
    /// `base` with this form and count describes writable memory (null is allowed when displacements are absolute).
    #[inline]
    pub unsafe fn unpack(&self, base: *mut u8, count: i64, from: u64, data: &[u8]) -> usize {
        // SAFETY: the caller's promise, and `data` is a slice.
        unsafe { self.unpack_from(base, count, from, data.as_ptr(), data.len()) }
    }

    /// As [`Self::unpack`] for memory that others may see: `len` bytes at `data`.
    ///
    /// # Safety
    /// As [`Self::unpack`]; `data` is valid for reading `len` bytes and does not overlap the buffer.
    pub unsafe fn unpack_from(&self, base: *mut u8, count: i64, from: u64, data: *const u8, len: usize) -> usize {
        let (from, to) = self.clip(count, from, len);
        let mut mover = Mover::<false> { packed: data.cast_mut() };
        // SAFETY: WALK by the caller's promise; the range is clipped to the data and to `len`; it is only read.
        unsafe { walk::copies(&self.layout, self.extent(), base, count, from, to, &mut mover) };
        (to - from) as usize
    }

    /// Calls `visit(address, length)` for every run that holds the packed bytes `from..from + len`, in packed order.
    /// The addresses are computed, never used.
    pub fn visit_runs(&self, base: *const u8, count: i64, from: u64, len: usize, visit: impl FnMut(*mut u8, usize)) {
        let (from, to) = self.clip(count, from, len);
        let mut sink = Visit(visit);
        // SAFETY: this sink touches no memory, so WALK asks nothing of the base.
        unsafe { walk::copies(&self.layout, self.extent(), base.cast_mut(), count, from, to, &mut sink) };
    }

    /// The range of packed bytes that exists of `from..from + len`.
    #[inline]
    fn clip(&self, count: i64, from: u64, len: usize) -> (i64, i64) {
        let size = self.packed_size(count).unwrap_or(0);
        let from = from.min(size);
        let to = from.saturating_add(len as u64).min(size);
        (from as i64, to as i64)
    }
}

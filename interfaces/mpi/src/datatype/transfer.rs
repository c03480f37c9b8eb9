//! Copying between a program's buffer and packed bytes, resumable at any byte.

use std::ptr::copy_nonoverlapping;

use super::Datatype;
use super::walk::{self, Sink};

/// Writes the runs one after the other.
struct Gather {
    out: *mut u8,
}

/// Reads the runs one after the other.
struct Scatter {
    data: *const u8,
}

impl Sink for Gather {
    #[inline]
    unsafe fn run(&mut self, at: *mut u8, len: usize) {
        // SAFETY: WALK for the run; the packed side has room for the range that is walked.
        unsafe { copy_short(at, self.out, len) };
        self.out = self.out.wrapping_add(len);
    }

    #[inline]
    unsafe fn strided(&mut self, at: *mut u8, block: usize, stride: i64, count: usize) {
        // SAFETY: as `run`; packed blocks lie side by side.
        unsafe { copy_blocks(at, stride, self.out, block as i64, block, count) };
        self.out = self.out.wrapping_add(block * count);
    }
}

impl Sink for Scatter {
    #[inline]
    unsafe fn run(&mut self, at: *mut u8, len: usize) {
        // SAFETY: WALK for the run; the packed side holds the range that is walked.
        unsafe { copy_short(self.data, at, len) };
        self.data = self.data.wrapping_add(len);
    }

    #[inline]
    unsafe fn strided(&mut self, at: *mut u8, block: usize, stride: i64, count: usize) {
        // SAFETY: as `run`; packed blocks lie side by side.
        unsafe { copy_blocks(self.data, block as i64, at, stride, block, count) };
        self.data = self.data.wrapping_add(block * count);
    }
}

/// Copies one run; the lengths of single numbers without a call.
///
/// # Safety
/// `len` bytes are readable at `from` and writable at `to`, not overlapping.
#[inline]
unsafe fn copy_short(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: each arm copies exactly `len` bytes.
    unsafe {
        match len {
            4 => copy_nonoverlapping(from, to, 4),
            8 => copy_nonoverlapping(from, to, 8),
            16 => copy_nonoverlapping(from, to, 16),
            _ => copy_nonoverlapping(from, to, len),
        }
    }
}

/// Copies `count` blocks between two strides.
///
/// # Safety
/// Every block is readable on the one side and writable on the other, not overlapping.
unsafe fn copy_blocks(from: *const u8, step: i64, to: *mut u8, stride: i64, block: usize, count: usize) {
    let (step, stride) = (step as isize, stride as isize);
    // SAFETY: the same blocks in every arm.
    unsafe {
        match block {
            1 => copy_fixed::<1>(from, step, to, stride, count),
            2 => copy_fixed::<2>(from, step, to, stride, count),
            4 => copy_fixed::<4>(from, step, to, stride, count),
            8 => copy_fixed::<8>(from, step, to, stride, count),
            12 => copy_fixed::<12>(from, step, to, stride, count),
            16 => copy_fixed::<16>(from, step, to, stride, count),
            24 => copy_fixed::<24>(from, step, to, stride, count),
            32 => copy_fixed::<32>(from, step, to, stride, count),
            48 => copy_fixed::<48>(from, step, to, stride, count),
            64 => copy_fixed::<64>(from, step, to, stride, count),
            _ => {
                for i in 0..count as isize {
                    let (source, target) = (from.wrapping_offset(i * step), to.wrapping_offset(i * stride));
                    copy_nonoverlapping(source, target, block);
                }
            }
        }
    }
}

/// [`copy_blocks`] for a length known to the compiler, which makes each block one or a few moves.
///
/// # Safety
/// As [`copy_blocks`].
#[inline(always)]
unsafe fn copy_fixed<const LEN: usize>(from: *const u8, step: isize, to: *mut u8, stride: isize, count: usize) {
    let (mut source, mut target) = (from, to);
    for _ in 0..count {
        // SAFETY: the caller's blocks.
        unsafe { copy_nonoverlapping(source, target, LEN) };
        source = source.wrapping_offset(step);
        target = target.wrapping_offset(stride);
    }
}

/// Calls a function for every run.
struct Visit<F>(F);

impl<F: FnMut(*mut u8, usize)> Sink for Visit<F> {
    unsafe fn run(&mut self, at: *mut u8, len: usize) {
        (self.0)(at, len);
    }
}

impl Datatype {
    /// Bytes that `count` elements of this type take when packed, or none when that exceeds 2^63-1.
    #[inline]
    pub fn packed_size(&self, count: i64) -> Option<u64> {
        self.size().checked_mul(count).and_then(|size| u64::try_from(size).ok())
    }

    /// Copies the packed bytes `from..from + out.len()` of `count` elements at `base` into `out`.
    /// Answers how many there were: fewer than asked only at the end of the data.
    ///
    /// # Safety
    /// `base` with this type and count describes readable memory (null is allowed when displacements are absolute).
    #[inline]
    pub unsafe fn pack(&self, base: *const u8, count: i64, from: u64, out: &mut [u8]) -> usize {
        // SAFETY: the caller's promise, and `out` is a slice.
        unsafe { self.pack_to(base, count, from, out.as_mut_ptr(), out.len()) }
    }

    /// As [`Datatype::pack`] for memory that others may see: `len` bytes at `out`.
    ///
    /// # Safety
    /// As [`Datatype::pack`]; `out` is valid for writing `len` bytes and does not overlap the buffer.
    pub unsafe fn pack_to(&self, base: *const u8, count: i64, from: u64, out: *mut u8, len: usize) -> usize {
        let (from, to) = self.clip(count, from, len);
        // SAFETY: WALK by the caller's promise; the range is clipped to the data and to `len`.
        unsafe { walk::copies(self.layout(), self.extent(), base.cast_mut(), count, from, to, &mut Gather { out }) };
        (to - from) as usize
    }

    /// Copies `data` to where the packed bytes from `from` on belong among `count` elements at `base`.
    /// Answers how many there were: fewer than given only when the elements are full.
    ///
    /// # Safety
    /// `base` with this type and count describes writable memory (null is allowed when displacements are absolute).
    #[inline]
    pub unsafe fn unpack(&self, base: *mut u8, count: i64, from: u64, data: &[u8]) -> usize {
        // SAFETY: the caller's promise, and `data` is a slice.
        unsafe { self.unpack_from(base, count, from, data.as_ptr(), data.len()) }
    }

    /// As [`Datatype::unpack`] for memory that others may see: `len` bytes at `data`.
    ///
    /// # Safety
    /// As [`Datatype::unpack`]; `data` is valid for reading `len` bytes and does not overlap the buffer.
    pub unsafe fn unpack_from(&self, base: *mut u8, count: i64, from: u64, data: *const u8, len: usize) -> usize {
        let (from, to) = self.clip(count, from, len);
        // SAFETY: WALK by the caller's promise; the range is clipped to the data and to `len`.
        unsafe { walk::copies(self.layout(), self.extent(), base, count, from, to, &mut Scatter { data }) };
        (to - from) as usize
    }

    /// Calls `visit(address, length)` for every run that holds the packed bytes `from..from + len`, in packed order.
    /// The addresses are computed, never used.
    pub fn visit_runs(&self, base: *const u8, count: i64, from: u64, len: usize, visit: impl FnMut(*mut u8, usize)) {
        let (from, to) = self.clip(count, from, len);
        let mut sink = Visit(visit);
        // SAFETY: this sink touches no memory, so WALK asks nothing of the base.
        unsafe { walk::copies(self.layout(), self.extent(), base.cast_mut(), count, from, to, &mut sink) };
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

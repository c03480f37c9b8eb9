//! Copying around a weakness of processors.
//!
//! Zen 3 and its like copy long blocks with their instruction for that (`rep movsb`), which kernel and C library use
//! where it is there, at 3 GB/s in the place of 50 and more where the destination lies 1 to 31 bytes further on in its
//! page than the source does in its own. That is frequent: allocators put what is long 16 bytes behind the beginning of
//! a page, and rings, and the kernel's pages of what arrives, begin at one.
//!
//! So copies of our own are made in short pieces there, the kernel is not asked for such copies, and a packet over TCP
//! has a gap before its payload.

use crate::sys;
use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;

pub(crate) const PAGE_BYTES: usize = 4096;
/// From here on in front of the source, in bytes, nothing is slow any more.
const NEAR_BYTES: usize = 32;
/// The C library copies less than that by loads and stores.
const PIECE_BYTES: usize = 2048;
/// Where a buffer begins: at a multiple of this.
const ALIGNMENT: usize = 64;

/// Whether a long copy from one address to the other would be slow by the processor's own instruction.
#[inline]
pub fn is_slow(from: usize, to: usize) -> bool {
    (1..NEAR_BYTES).contains(&(to.wrapping_sub(from) % PAGE_BYTES))
}

/// Whether the kernel would copy slowly from one address to the other: [`is_slow`], on a processor that has the
/// weakness. Which that is, is tried once, and takes some ten microseconds.
pub fn is_slow_for_the_kernel(from: usize, to: usize) -> bool {
    static WEAK: OnceLock<bool> = OnceLock::new();
    is_slow(from, to) && *WEAK.get_or_init(|| time_of_copies(NEAR_BYTES / 2) > 4 * time_of_copies(0))
}

/// How long the processor's instruction takes for two pages, so far ahead of their place, in ticks of the clock; the
/// least of some tries.
fn time_of_copies(ahead: usize) -> u64 {
    let from = CopyBuffer::new(3 * PAGE_BYTES);
    let mut to = CopyBuffer::new(4 * PAGE_BYTES);
    let skew = (from.as_ptr() as usize).wrapping_sub(to.as_ptr() as usize) % PAGE_BYTES + ahead;
    let tries = (0..4).map(|_| {
        let begin = sys::ticks();
        copy_by_instruction(&from[..2 * PAGE_BYTES], &mut to[skew..][..2 * PAGE_BYTES]);
        sys::ticks().wrapping_sub(begin)
    });
    tries.min().unwrap_or_default()
}

#[cfg(target_arch = "x86_64")]
fn copy_by_instruction(from: &[u8], to: &mut [u8]) {
    assert_eq!(from.len(), to.len());
    // SAFETY: both ranges are as long as said, and the direction flag is clear, as everywhere.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") from.len() => _, inout("rsi") from.as_ptr() => _, inout("rdi") to.as_mut_ptr() => _,
            options(nostack, preserves_flags)
        );
    }
}

/// Other processors have no such instruction.
#[cfg(not(target_arch = "x86_64"))]
fn copy_by_instruction(from: &[u8], to: &mut [u8]) {
    to.copy_from_slice(from);
}

/// Copies `length` bytes, at much the same speed wherever they are.
///
/// # Safety
/// As `copy_nonoverlapping` of bytes.
#[inline]
pub unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    if length <= PIECE_BYTES || !is_slow(from as usize, to as usize) {
        // SAFETY: the caller's promise.
        return unsafe { std::ptr::copy_nonoverlapping(from, to, length) };
    }
    for at in (0..length).step_by(PIECE_BYTES) {
        let piece = PIECE_BYTES.min(length - at);
        // SAFETY: the caller's promise, for a part of the range.
        unsafe { std::ptr::copy_nonoverlapping(from.add(at), to.add(at), piece) };
    }
}

/// Bytes that begin with a cache line, for the kernel to copy into. Memory that is never written to costs nothing.
pub struct CopyBuffer {
    bytes: Box<[u8]>,
    start: usize,
    length: usize,
}

impl CopyBuffer {
    pub fn new(length: usize) -> Self {
        let bytes = vec![0; length + ALIGNMENT].into_boxed_slice();
        let start = bytes.as_ptr().align_offset(ALIGNMENT);
        Self { bytes, start, length }
    }
}

impl Deref for CopyBuffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.length]
    }
}

impl DerefMut for CopyBuffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_copied_to_and_nothing_beside_it() {
        let from: Vec<u8> = (0..3 * PAGE_BYTES).map(|at| (at * 7 + (at >> 8)) as u8).collect();
        let mut to = vec![0; 5 * PAGE_BYTES];
        let base = PAGE_BYTES + (from.as_ptr() as usize).wrapping_sub(to.as_ptr() as usize) % PAGE_BYTES;
        for ahead in [0, 1, 16, 31, 32, 4095] {
            for length in [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES - 1, from.len() - PAGE_BYTES] {
                to.fill(0xa5);
                let place = base + ahead;
                assert_eq!(is_slow(from.as_ptr() as usize, to[place..].as_ptr() as usize), (1..32).contains(&ahead));
                // SAFETY: length <= from.len(), and place + length <= to.len().
                unsafe { copy(from.as_ptr(), to[place..].as_mut_ptr(), length) };
                assert_eq!(to[place..place + length], from[..length], "{length} bytes {ahead} ahead");
                assert!(to[..place].iter().chain(&to[place + length..]).all(|byte| *byte == 0xa5));
            }
        }
    }

    /// Whichever processor this is, a copy from page to page alike is not slow.
    #[test]
    fn the_kernel_is_asked_to_copy_between_places_that_are_alike() {
        assert!(!is_slow_for_the_kernel(0x7000, 0x9000) && !is_slow_for_the_kernel(0x7010, 0x9000));
        assert_eq!(is_slow_for_the_kernel(0x7000, 0x9010), is_slow_for_the_kernel(0x3000, 0x501f));
    }

    #[test]
    fn a_buffer_begins_with_a_cache_line_and_has_all_its_bytes() {
        for length in [0, 1, 100, 1 << 20] {
            let mut buffer = CopyBuffer::new(length);
            assert_eq!((buffer.len(), buffer.as_ptr() as usize % ALIGNMENT), (length, 0));
            buffer.fill(7);
            assert!(buffer.iter().all(|byte| *byte == 7));
        }
    }
}

//! The bytes of a ring.

#[cfg(not(loom))]
use std::marker::PhantomData;

/// A ring of bytes that positions lead into. Positions count for ever; the ring takes them by its size.
pub trait RingBytes {
    fn size(&self) -> u64;
    /// Copies into the ring from position `at` on; not more than its size.
    fn write(&self, at: u64, from: &[u8]);
    /// Copies out of the ring.
    fn read(&self, at: u64, into: &mut [u8]);
    /// Offers lines just written to the receiver's core. A hint.
    fn hand_on(&self, at: u64, bytes: usize) {
        let _ = (at, bytes);
    }
}

/// A ring in shared memory, of a power of two bytes.
#[cfg(not(loom))]
#[derive(Clone, Copy)]
pub struct StreamRing<'a> {
    base: *mut u8,
    size: u64,
    _memory: PhantomData<&'a [u8]>,
}

#[cfg(not(loom))]
impl StreamRing<'_> {
    /// # Safety
    /// `size` bytes at `base` can be read and written as long as the ring lives; the size is a power of two.
    pub unsafe fn new(base: *mut u8, size: usize) -> Self {
        debug_assert!(size.is_power_of_two());
        Self { base, size: size as u64, _memory: PhantomData }
    }

    /// The pieces, before and after the end of the ring, that `bytes` bytes at `at` fall into.
    #[inline(always)]
    fn pieces(&self, at: u64, bytes: usize) -> (*mut u8, usize) {
        let offset = (at & (self.size - 1)) as usize;
        assert!(bytes as u64 <= self.size);
        // SAFETY: offset is below the size.
        (unsafe { self.base.add(offset) }, bytes.min(self.size as usize - offset))
    }
}

#[cfg(not(loom))]
impl RingBytes for StreamRing<'_> {
    #[inline(always)]
    fn size(&self) -> u64 {
        self.size
    }

    #[inline(always)]
    fn write(&self, at: u64, from: &[u8]) {
        let (place, first) = self.pieces(at, from.len());
        // SAFETY: the pieces are inside the ring; the peer, reading or not, can only spoil its own connection.
        unsafe {
            copy(from.as_ptr(), place, first);
            if first < from.len() {
                copy(from.as_ptr().add(first), self.base, from.len() - first);
            }
        }
    }

    #[inline(always)]
    fn read(&self, at: u64, into: &mut [u8]) {
        let (place, first) = self.pieces(at, into.len());
        // SAFETY: as above.
        unsafe {
            copy(place, into.as_mut_ptr(), first);
            if first < into.len() {
                copy(self.base, into.as_mut_ptr().add(first), into.len() - first);
            }
        }
    }

    #[inline(always)]
    fn hand_on(&self, at: u64, bytes: usize) {
        let (place, first) = self.pieces(at, bytes);
        crate::past_caches::hand_on(place, first);
    }
}

/// Copies without the way through the C library for the lengths that are most frequent where time counts most.
///
/// # Safety
/// As `copy_nonoverlapping`.
#[cfg(not(loom))]
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's; the overlapping halves cover the length exactly.
    unsafe {
        match bytes {
            0 => {}
            1 => *to = from.read(),
            8..=16 => halves::<8>(from, to, bytes),
            17..=32 => halves::<16>(from, to, bytes),
            33..=64 => halves::<32>(from, to, bytes),
            _ => crate::copying::copy(from, to, bytes),
        }
    }
}

/// Copies `N..=2 N` bytes as two pieces of `N` that may overlap.
///
/// # Safety
/// As `copy_nonoverlapping`.
#[cfg(not(loom))]
#[inline(always)]
unsafe fn halves<const N: usize>(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's: both pieces lie inside `bytes`.
    unsafe {
        let first = from.cast::<[u8; N]>().read_unaligned();
        let second = from.add(bytes - N).cast::<[u8; N]>().read_unaligned();
        to.cast::<[u8; N]>().write_unaligned(first);
        to.add(bytes - N).cast::<[u8; N]>().write_unaligned(second);
    }
}

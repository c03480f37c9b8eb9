//! The bytes of a ring.

#[cfg(not(loom))]
use std::marker::PhantomData;
#[cfg(not(loom))]
use weft_wire::stream::arena::{ANNEX_BYTES, ANNEX_STEP, ANNEXES};

/// A ring of bytes that positions lead into. Positions count for ever; the ring takes them by its size.
pub trait RingBytes: Sized {
    fn size(&self) -> u64;
    /// Copies into the ring from position `at` on; not more than its size.
    fn write(&self, at: u64, from: &[u8]);
    /// Copies out of the ring.
    fn read(&self, at: u64, into: &mut [u8]);
    /// Offers lines just written to the receiver's core. A hint.
    fn hand_on(&self, at: u64, bytes: usize) {
        let _ = (at, bytes);
    }
    /// The annex whose number is one less, of the same kind of memory: `None` where there is none.
    fn annex(&self, number: u32) -> Option<Self> {
        let _ = number;
        None
    }
    /// Of an annex: its memory comes and goes in such steps.
    fn step(&self) -> u64 {
        self.size()
    }
    /// Of an annex: makes memory for one step, which begins at a multiple of it. False where there is none.
    fn make(&self, at: u64) -> bool {
        let _ = at;
        true
    }
    /// Of an annex: gives the memory of so many bytes back, whole steps. What stood there is gone.
    fn forget(&self, at: u64, bytes: u64) {
        let _ = (at, bytes);
    }
}

/// A ring in shared memory, of a power of two bytes.
#[cfg(not(loom))]
#[derive(Clone, Copy)]
pub struct Ring<'a> {
    base: *mut u8,
    size: u64,
    /// The annexes of its side; null where there are none.
    annexes: *mut u8,
    _memory: PhantomData<&'a [u8]>,
}

#[cfg(not(loom))]
impl Ring<'_> {
    /// # Safety
    /// `size` bytes at `base` can be read and written as long as the ring lives; the size is a power of two.
    pub unsafe fn new(base: *mut u8, size: usize) -> Self {
        debug_assert!(size.is_power_of_two());
        Self { base, size: size as u64, annexes: std::ptr::null_mut(), _memory: PhantomData }
    }

    /// # Safety
    /// As [`Self::new`]; at `annexes` all those of a side lie in shared memory.
    #[inline(always)]
    pub unsafe fn with_annexes(base: *mut u8, size: usize, annexes: *mut u8) -> Self {
        // SAFETY: the caller's.
        Self { annexes, ..unsafe { Self::new(base, size) } }
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
impl RingBytes for Ring<'_> {
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

    fn annex(&self, number: u32) -> Option<Self> {
        let index = (number as usize).checked_sub(1).filter(|index| *index < ANNEXES && !self.annexes.is_null())?;
        // SAFETY: so many of that size lie there; a power of two.
        Some(unsafe { Self::new(self.annexes.add(index * ANNEX_BYTES), ANNEX_BYTES) })
    }

    fn step(&self) -> u64 {
        ANNEX_STEP as u64
    }

    fn make(&self, at: u64) -> bool {
        let (place, bytes) = self.pieces(at, ANNEX_STEP);
        crate::kernel::populate(place, bytes)
    }

    fn forget(&self, at: u64, bytes: u64) {
        let (place, first) = self.pieces(at, bytes.min(self.size) as usize);
        // SAFETY: inside the annex; who calls this has read it, or holds it alone.
        unsafe {
            crate::kernel::forget(place, first);
            if (first as u64) < bytes.min(self.size) {
                crate::kernel::forget(self.base, (bytes.min(self.size)) as usize - first);
            }
        }
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

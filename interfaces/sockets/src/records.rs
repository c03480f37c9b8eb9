//! Records of one kind, which are given out by number and come back.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// What can be such a record.
///
/// # Safety
/// Zeros are a valid one, and the threads of the process may share it.
pub unsafe trait PoolRecord: Sized + 'static {
    /// The place for the number of the next one that is free.
    fn next_free(&self) -> &AtomicU32;
}

/// Number 0 is never given out.
pub struct RecordPool<T> {
    at: AtomicPtr<T>,
    most: u32,
    /// The number of the first that is free, and above it how often this has changed.
    free: AtomicU64,
    unused_from: AtomicU32,
}

impl<T: PoolRecord> RecordPool<T> {
    pub const fn new(most: usize) -> Self {
        let at = AtomicPtr::new(std::ptr::null_mut());
        Self { at, most: most as u32, free: AtomicU64::new(0), unused_from: AtomicU32::new(1) }
    }

    /// Makes room for them (address space only). False when there is none.
    pub fn start(&self) -> bool {
        let at = weft_kernel::map_private(self.most as usize * size_of::<T>()).unwrap_or(std::ptr::null_mut());
        self.at.store(at.cast(), Ordering::Release);
        !at.is_null()
    }

    /// The record with a number that was given out.
    #[inline]
    pub fn at(&self, index: u32) -> &'static T {
        // SAFETY: numbers come from `take`, below `most`; the memory is never unmapped; zeros are a valid record.
        unsafe { &*self.at.load(Ordering::Relaxed).add(index as usize) }
    }

    pub fn take(&self) -> Option<u32> {
        loop {
            let head = self.free.load(Ordering::Acquire);
            let index = head as u32;
            if index == 0 {
                let fresh = self.unused_from.fetch_add(1, Ordering::Relaxed);
                if fresh >= self.most {
                    self.unused_from.store(self.most, Ordering::Relaxed);
                    return None;
                }
                return Some(fresh);
            }
            if self.change(head, self.at(index).next_free().load(Ordering::Relaxed)) {
                return Some(index);
            }
        }
    }

    pub fn put(&self, index: u32) {
        loop {
            let head = self.free.load(Ordering::Relaxed);
            self.at(index).next_free().store(head as u32, Ordering::Relaxed);
            if self.change(head, index) {
                return;
            }
        }
    }

    fn change(&self, head: u64, first: u32) -> bool {
        let next = (head >> 32).wrapping_add(1) << 32 | u64::from(first);
        self.free.compare_exchange(head, next, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

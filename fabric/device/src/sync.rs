//! Atomics, the real ones or loom's, and the asymmetric barrier in both worlds.

#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// The sender's side of the asymmetric barrier: orders an earlier store before a later load, at no cost, provided the
/// other side runs [`crate::sys::membarrier`] between its store and its load.
#[inline]
pub fn light_barrier() {
    #[cfg(not(loom))]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}

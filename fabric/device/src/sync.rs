//! Atomics, the real ones or loom's, the asymmetric barrier in both worlds, and the names of the orderings.
//!
//! Every ordering that something depends on has a [`Label`] and is written `ordering(Label::X, Release)` or
//! `barrier(Label::X, ..)`. Compiled as usual that is the ordering itself. Under loom one label can be weakened at run
//! time (`WEFT_WEAKEN=publish-cell-store`), and the models must then fail: see `shm::loom_models`.

#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// The orderings that something depends on, with the names that `WEFT_WEAKEN` knows them by.
macro_rules! labels {
    ($($(#[$doc:meta])* $label:ident = $name:literal,)+) => {
        /// An ordering that something depends on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Label {
            $($(#[$doc])* $label,)+
        }

        #[cfg(loom)]
        impl Label {
            pub const ALL: &[(Self, &'static str)] = &[$((Self::$label, $name),)+];
        }
    };
}

labels! {
    PublishCellStore = "publish-cell-store",
    PublishCellLoad = "publish-cell-load",
    ReturnCreditStore = "return-credit-store",
    ReturnCreditLoad = "return-credit-load",
    ReturnBulkStore = "return-bulk-store",
    ReturnBulkLoad = "return-bulk-load",
    /// The sender's barrier between its cell and its look at bit and doorbell.
    AnnounceSender = "announce-sender",
    /// The sender's barrier between joining the active set and its look at the doorbell.
    JoinActiveSender = "join-active-sender",
    /// The owner's barrier between clearing bits, lying down, and its look at the rings.
    LieDownOwner = "lie-down-owner",
    /// The consumer's barrier between returning credits and its look at the starved flag.
    StarvedConsumer = "starved-consumer",
    FinishChunk = "finish-chunk",
    StreamHeadStore = "stream-head-store",
    StreamHeadLoad = "stream-head-load",
    StreamTailStore = "stream-tail-store",
    StreamTailLoad = "stream-tail-load",
    StreamModeStore = "stream-mode-store",
    StreamModeLoad = "stream-mode-load",
    /// A publisher's barrier between head (or tail) and its look at who sleeps.
    StreamPublisher = "stream-publisher",
    /// A sleeper's barrier between arming and its last look.
    StreamSleeper = "stream-sleeper",
    /// A publisher's barrier between marking a slot active and its look at the set's bell.
    StreamMarker = "stream-marker",
    /// The receiver's barrier between saying that it reads the kernel and its look at the mode.
    StreamReader = "stream-reader",
    /// The sender's barrier between the final mode and its look at who reads the kernel.
    StreamFinal = "stream-final",
    /// The sender's barrier between saying that it sends and its look at the receiver's wish.
    StreamSending = "stream-sending",
    /// The receiver's barrier between its wish and its look at the sender.
    StreamWish = "stream-wish",
    DatagramHeadStore = "datagram-head-store",
    DatagramHeadLoad = "datagram-head-load",
    DatagramTailStore = "datagram-tail-store",
    DatagramTailLoad = "datagram-tail-load",
    /// The sender's barrier between saying that it is inside and its look at the gate.
    DatagramSending = "datagram-sending",
    /// The receiver's barrier between closing the gate and its look at who is inside.
    DatagramGate = "datagram-gate",
    DatagramLeaveStore = "datagram-leave-store",
    DatagramLeaveLoad = "datagram-leave-load",
}

#[cfg(loom)]
impl Label {
    fn is_weakened(self) -> bool {
        static WEAKENED: std::sync::OnceLock<Option<Label>> = std::sync::OnceLock::new();
        let weakened = WEAKENED.get_or_init(|| {
            let name = std::env::var("WEFT_WEAKEN").ok()?;
            let found = Self::ALL.iter().find(|(_, known)| *known == name);
            Some(found.unwrap_or_else(|| panic!("no ordering is labelled '{name}'")).0)
        });
        *weakened == Some(self)
    }
}

/// `strong`, unless a model asks what happens without it.
#[inline(always)]
pub fn ordering(label: Label, strong: Ordering) -> Ordering {
    #[cfg(loom)]
    if label.is_weakened() {
        return Ordering::Relaxed;
    }
    let _ = label;
    strong
}

/// A sender's side of the asymmetric barrier: orders an earlier store before a later load, at no cost, provided the
/// other side runs [`owner_barrier`] between its store and its load. With `fences` (no such barrier in this kernel) it
/// is a fence.
#[inline(always)]
pub fn sender_barrier(label: Label, fences: bool) {
    barrier(label, fences, || std::sync::atomic::compiler_fence(Ordering::SeqCst));
}

/// The owner's side of the asymmetric barrier, which pays for both.
pub fn owner_barrier(label: Label, fences: bool) {
    barrier(label, fences, crate::kernel::barrier);
}

#[inline(always)]
fn barrier(label: Label, fences: bool, side: impl FnOnce()) {
    match () {
        #[cfg(loom)]
        () if label.is_weakened() => {}
        () if cfg!(loom) || fences => fence(Ordering::SeqCst),
        () => side(),
    }
    let _ = label;
}

/// A fence that both sides make.
pub fn full_barrier(label: Label) {
    barrier(label, true, || {});
}

//! Atomics, the real ones or loom's, the asymmetric barrier in both worlds, and the names of the orderings.
//!
//! Every ordering that something depends on has a [`Label`] and is written `ordering(Label::X, Release)` or
//! `barrier(Label::X, ..)`. Compiled as usual that is the ordering itself. Under loom one label can be weakened at run
//! time (`WEFT_WEAKEN=publish-cell-store`), and the models must then fail: see `shm::loom_models`.

#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// The orderings that something depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    PublishCellStore,
    PublishCellLoad,
    ReturnCreditStore,
    ReturnCreditLoad,
    ReturnBulkStore,
    ReturnBulkLoad,
    /// The sender's barrier between its cell and its look at bit and doorbell.
    AnnounceSender,
    /// The sender's barrier between joining the active set and its look at the doorbell.
    JoinActiveSender,
    /// The owner's barrier between clearing bits, lying down, and its look at the rings.
    LieDownOwner,
    /// The consumer's barrier between returning credits and its look at the starved flag.
    StarvedConsumer,
    FinishChunk,
    StreamHeadStore,
    StreamHeadLoad,
    StreamTailStore,
    StreamTailLoad,
    StreamModeStore,
    StreamModeLoad,
    /// A publisher's barrier between head (or tail) and its look at who sleeps.
    StreamPublisher,
    /// A sleeper's barrier between arming and its last look.
    StreamSleeper,
    /// A publisher's barrier between marking a slot active and its look at the set's bell.
    StreamMarker,
    /// The receiver's barrier between saying that it reads the kernel and its look at the mode.
    StreamReader,
    /// The sender's barrier between the final mode and its look at who reads the kernel.
    StreamFinal,
    /// The sender's barrier between saying that it sends and its look at the receiver's wish.
    StreamSending,
    /// The receiver's barrier between its wish and its look at the sender.
    StreamWish,
    DatagramHeadStore,
    DatagramHeadLoad,
    DatagramTailStore,
    DatagramTailLoad,
    /// The sender's barrier between saying that it is inside and its look at the gate.
    DatagramSending,
    /// The receiver's barrier between closing the gate and its look at who is inside.
    DatagramGate,
    DatagramLeaveStore,
    DatagramLeaveLoad,
}

#[cfg(loom)]
impl Label {
    pub const ALL: [(Self, &'static str); 32] = [
        (Self::PublishCellStore, "publish-cell-store"),
        (Self::PublishCellLoad, "publish-cell-load"),
        (Self::ReturnCreditStore, "return-credit-store"),
        (Self::ReturnCreditLoad, "return-credit-load"),
        (Self::ReturnBulkStore, "return-bulk-store"),
        (Self::ReturnBulkLoad, "return-bulk-load"),
        (Self::AnnounceSender, "announce-sender"),
        (Self::JoinActiveSender, "join-active-sender"),
        (Self::LieDownOwner, "lie-down-owner"),
        (Self::StarvedConsumer, "starved-consumer"),
        (Self::FinishChunk, "finish-chunk"),
        (Self::StreamHeadStore, "stream-head-store"),
        (Self::StreamHeadLoad, "stream-head-load"),
        (Self::StreamTailStore, "stream-tail-store"),
        (Self::StreamTailLoad, "stream-tail-load"),
        (Self::StreamModeStore, "stream-mode-store"),
        (Self::StreamModeLoad, "stream-mode-load"),
        (Self::StreamPublisher, "stream-publisher"),
        (Self::StreamSleeper, "stream-sleeper"),
        (Self::StreamMarker, "stream-marker"),
        (Self::StreamReader, "stream-reader"),
        (Self::StreamFinal, "stream-final"),
        (Self::StreamSending, "stream-sending"),
        (Self::StreamWish, "stream-wish"),
        (Self::DatagramHeadStore, "datagram-head-store"),
        (Self::DatagramHeadLoad, "datagram-head-load"),
        (Self::DatagramTailStore, "datagram-tail-store"),
        (Self::DatagramTailLoad, "datagram-tail-load"),
        (Self::DatagramSending, "datagram-sending"),
        (Self::DatagramGate, "datagram-gate"),
        (Self::DatagramLeaveStore, "datagram-leave-store"),
        (Self::DatagramLeaveLoad, "datagram-leave-load"),
    ];

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

//! What a stream's two directions hold at this moment, as seen from outside of their locks.

use super::answers::Writable;
use super::connection::Stream;
use std::sync::atomic::Ordering;
use weft_device::shm::stream::{FoundBytes, LOW_WATER, SendRoom, find, has_rest, room};
use weft_wire::stream::arena::{DirectionMode, RING_BYTES};

impl Stream {
    /// What a receiver would find, without the lock.
    #[inline]
    pub fn readable(&self, received_by_kernel: u64) -> FoundBytes {
        let own = &self.own().receiver;
        find(self.incoming(), own, self.generation(), RING_BYTES as u64, received_by_kernel)
    }

    /// Whether the ring has bytes behind those that must be read from the kernel first.
    pub fn has_rest_in_ring(&self) -> bool {
        has_rest(self.incoming(), &self.own().receiver, self.generation())
    }

    /// Whether both directions are the kernel's for good, and nothing is left in our ring.
    #[inline]
    pub fn is_over(&self) -> bool {
        let own = self.own();
        own.receiver.phase.load(Ordering::Relaxed) == DirectionMode::Final as u32
            && own.sender.phase.load(Ordering::Relaxed) == DirectionMode::Final as u32
            && own.sender.unsettled.load(Ordering::Relaxed) == 0
    }

    /// Whether what we send goes by the kernel for good.
    #[inline]
    pub fn sends_by_kernel(&self) -> bool {
        self.own().sender.phase.load(Ordering::Relaxed) == DirectionMode::Final as u32
    }

    /// Whether a receiver would still have bytes of the ring to read, also where it waits for them to come back by the
    /// kernel.
    pub fn has_unread(&self) -> bool {
        let own = self.own();
        let sender = &self.incoming().sender;
        let mut taken = own.receiver.tail.load(Ordering::Relaxed);
        let end = match sender.mode.load(Ordering::Acquire) {
            mode if !self.peer_attached() || mode == DirectionMode::Kernel as u32 => taken,
            mode if mode == DirectionMode::Final as u32 => sender.final_at.load(Ordering::Relaxed),
            _ => sender.head.load(Ordering::Acquire),
        };
        if own.receiver.wants.load(Ordering::Relaxed) != 0 {
            // What came back, before its sender has said that it did.
            let by_kernel = own.side.received_by_kernel.load(Ordering::Relaxed);
            taken += by_kernel.saturating_sub(sender.kernel_before.load(Ordering::Relaxed));
        }
        own.receiver.phase.load(Ordering::Relaxed) != DirectionMode::Final as u32 && end > taken
    }

    /// What a sender would find, without the lock.
    #[inline]
    pub fn writable(&self) -> Writable {
        match room(self.outgoing(), &self.own().sender, self.generation(), RING_BYTES as u64) {
            SendRoom::Ring(bytes) if bytes >= LOW_WATER => Writable::Ring(bytes as usize),
            SendRoom::Ring(_) => Writable::Full,
            SendRoom::Kernel => Writable::Kernel,
            SendRoom::Broken => Writable::Broken,
        }
    }

    /// Whether the ring is full and the receiver has taken nothing of it for `patience_ns`, as far as somebody has
    /// looked.
    #[cold]
    pub fn is_stuck(&self, now_ns: u64, patience_ns: u64) -> bool {
        let (own, tail) = (&self.own().sender, self.outgoing().receiver.tail.load(Ordering::Relaxed));
        if self.writable() != Writable::Full {
            return false;
        }
        let since = own.full_since_ns.load(Ordering::Relaxed);
        if since == 0 || own.full_at.load(Ordering::Relaxed) != tail {
            own.full_at.store(tail, Ordering::Relaxed);
            own.full_since_ns.store(now_ns, Ordering::Relaxed);
            return false;
        }
        now_ns.saturating_sub(since) >= patience_ns
    }
}

//! The lines of a slot as atomics, shared ones and those of one side.

use crate::sync::{AtomicU32, AtomicU64};
use weft_wire::stream::arena::{KERNEL_EVENTS, SLEEPERS, STAMPS, listener};

/// Written by the sender.
#[repr(C, align(64))]
pub struct SenderLine {
    pub head: AtomicU64,
    pub mode: AtomicU32,
    pub attached: AtomicU32,
    pub kernel_before: AtomicU64,
    pub final_at: AtomicU64,
    pub closing: AtomicU32,
    pub gone: AtomicU32,
    pub leaving: AtomicU32,
    pub events: AtomicU32,
    pub kept: AtomicU64,
    pub kept_event: AtomicU32,
}

/// Written by the receiver (but `sending`), looked at by the sender with every publication. Armed words are swapped to
/// zero by the sender.
#[repr(C, align(64))]
pub struct WatchLine {
    pub wait: AtomicU64,
    pub set: AtomicU64,
    pub attached: AtomicU32,
    pub want_kernel: AtomicU32,
    pub reading_kernel: AtomicU32,
    pub sending: AtomicU32,
    pub ordered: AtomicU32,
}

/// Written by the receiver.
#[repr(C, align(64))]
pub struct ReceiverLine {
    pub tail: AtomicU64,
    pub told: AtomicU32,
}

/// Armed by the sender, swapped to zero by the receiver.
#[repr(C, align(64))]
pub struct RoomLine {
    pub wait: AtomicU64,
    pub set: AtomicU64,
}

/// Written by the sender, looked at by a receiver with several streams that have something: see `order`.
#[repr(C, align(64))]
pub struct Stamps(pub [AtomicU64; STAMPS]);

/// What the processes of a side have done by the kernel on connections without a slot.
#[repr(C, align(64))]
pub struct KernelCounts {
    pub count: AtomicU64,
    _line: [u64; 7],
    pub events: [KernelEvent; KERNEL_EVENTS],
}

/// One of these. Begun at 0: it is being written; done at 0: it goes on, or nobody says when it ends. The upper half of
/// the connection's word is how many bytes its sender had sent there by the kernel.
#[repr(C)]
pub struct KernelEvent {
    pub begun: AtomicU64,
    pub done: AtomicU64,
    pub connection: AtomicU64,
}

/// One direction of a slot.
#[repr(C, align(64))]
pub struct SlotDirection {
    pub sender: SenderLine,
    pub watch: WatchLine,
    pub receiver: ReceiverLine,
    pub room: RoomLine,
    pub stamps: Stamps,
}

/// What one process of a side is told.
#[repr(C, align(1024))]
pub struct SideListener {
    pub summary: AtomicU64,
    _line: [u64; 7],
    pub active: [AtomicU64; listener::ACTIVE_WORDS],
    _gap: [u64; 8],
    pub sleeping: [AtomicU64; SLEEPERS],
}

/// What the sender knows of itself. In memory of its side only; everything but the lock is touched under it.
#[repr(C, align(64))]
pub struct OwnSender {
    pub lock: AtomicU32,
    /// 1: somebody sleeps for the lock.
    pub contended: AtomicU32,
    /// Published, so that the bytes of a call whose process died are as if never sent.
    pub head: AtomicU64,
    /// Last believed tail.
    pub tail: AtomicU64,
    /// [`weft_wire::stream::arena::DirectionMode`]
    pub phase: AtomicU32,
    pub broken: AtomicU32,
    /// While the ring is given back: up to where it went through the kernel, and where the receiver stopped.
    pub given: AtomicU64,
    pub stopped_at: AtomicU64,
    pub giving: AtomicU32,
    /// 1: after the switch to the kernel the receiver was not seen yet outside of a read that it may have begun before
    /// the switch to the ring.
    pub unsettled: AtomicU32,
    /// What the side had received of the other direction when it last sent.
    pub received: AtomicU64,
    /// Where the receiver was when somebody last found the ring full, and since when it has been there; 0: never.
    pub full_at: AtomicU64,
    pub full_since_ns: AtomicU64,
}

impl SenderLine {
    /// Offers the line to the receiver's core. A hint.
    #[inline(always)]
    pub fn hand_on(&self) {
        #[cfg(not(loom))]
        crate::past_caches::hand_on((&raw const *self).cast(), size_of::<Self>());
    }
}

/// What the receiver knows of itself.
#[repr(C, align(64))]
pub struct OwnReceiver {
    pub lock: AtomicU32,
    pub contended: AtomicU32,
    pub tail: AtomicU64,
    /// Last believed head.
    pub head: AtomicU64,
    pub phase: AtomicU32,
    pub broken: AtomicU32,
    /// 1: it wants the kernel and takes nothing more from the ring.
    pub wants: AtomicU32,
    /// 1: it wanted the kernel, the sender has ended without an answer, and what is left is read from the ring.
    pub ended: AtomicU32,
}

/// What the processes of a side share about it.
#[repr(C, align(64))]
pub struct OwnSide {
    pub references: AtomicU32,
    pub nonblocking: AtomicU32,
    pub generation: AtomicU32,
    /// Bytes that went through the kernel, as all processes of the side count them together.
    pub sent_by_kernel: AtomicU64,
    pub received_by_kernel: AtomicU64,
    pub options: CallOptions,
}

/// Options of the socket that calls follow: they are the open description's, and so belong to all who share it. Kept by
/// the caller.
#[repr(C)]
pub struct CallOptions {
    /// Fewer bytes do not wake a receiver.
    pub low_water: AtomicU32,
    /// 1: a receiver is told how many bytes are left.
    pub tells_left: AtomicU32,
    /// Nanoseconds that a call may wait, 0 for ever.
    pub receive_timeout: AtomicU64,
    pub send_timeout: AtomicU64,
    /// An error that the kernel has told one of them, and that is still owed to the program; 0 for none.
    pub owed_error: AtomicU32,
    /// 1: one of them has given the connection up, and its end is decided.
    pub cut_off: AtomicU32,
}

/// A slot as one side knows it.
#[repr(C, align(64))]
pub struct OwnSlot {
    pub sender: OwnSender,
    pub receiver: OwnReceiver,
    pub side: OwnSide,
}

#[cfg(test)]
pub(in crate::shm) mod zero {
    //! Lines as new memory holds them.
    use super::*;

    fn word() -> AtomicU32 {
        AtomicU32::new(0)
    }

    fn long() -> AtomicU64 {
        AtomicU64::new(0)
    }

    pub fn direction() -> SlotDirection {
        SlotDirection {
            sender: SenderLine {
                head: long(),
                mode: word(),
                attached: word(),
                kernel_before: long(),
                final_at: long(),
                closing: word(),
                leaving: word(),
                gone: word(),
                events: word(),
                kept: long(),
                kept_event: word(),
            },
            watch: WatchLine {
                wait: long(),
                set: long(),
                attached: word(),
                want_kernel: word(),
                reading_kernel: word(),
                sending: word(),
                ordered: word(),
            },
            receiver: ReceiverLine { tail: long(), told: word() },
            room: RoomLine { wait: long(), set: long() },
            stamps: Stamps(std::array::from_fn(|_| long())),
        }
    }

    #[cfg(not(loom))]
    pub fn by_kernel() -> KernelCounts {
        let event = || KernelEvent { begun: long(), done: long(), connection: long() };
        KernelCounts { count: long(), _line: [0; 7], events: std::array::from_fn(|_| event()) }
    }

    pub fn listener() -> SideListener {
        SideListener {
            summary: long(),
            _line: [0; 7],
            active: std::array::from_fn(|_| long()),
            _gap: [0; 8],
            sleeping: std::array::from_fn(|_| long()),
        }
    }

    pub fn own_sender() -> OwnSender {
        OwnSender {
            lock: word(),
            contended: word(),
            head: long(),
            tail: long(),
            phase: word(),
            broken: word(),
            given: long(),
            stopped_at: long(),
            giving: word(),
            unsettled: word(),
            received: long(),
            full_at: long(),
            full_since_ns: long(),
        }
    }

    pub fn own_receiver() -> OwnReceiver {
        OwnReceiver {
            lock: word(),
            contended: word(),
            tail: long(),
            head: long(),
            phase: word(),
            broken: word(),
            wants: word(),
            ended: word(),
        }
    }
}

#[cfg(not(loom))]
mod layout {
    use super::*;
    use std::mem::offset_of;
    use weft_wire::stream::arena::{direction, header};

    const _: () = assert!(size_of::<KernelCounts>() == header::KERNEL_BYTES);
    const _: () =
        assert!(size_of::<SlotDirection>() == direction::BYTES && size_of::<SideListener>() == listener::BYTES);
    const _: () = assert!(offset_of!(SlotDirection, sender.head) == direction::sender::HEAD);
    const _: () = assert!(offset_of!(SlotDirection, sender.mode) == direction::sender::MODE);
    const _: () = assert!(offset_of!(SlotDirection, sender.attached) == direction::sender::ATTACHED);
    const _: () = assert!(offset_of!(SlotDirection, sender.kernel_before) == direction::sender::KERNEL_BEFORE);
    const _: () = assert!(offset_of!(SlotDirection, sender.final_at) == direction::sender::FINAL_AT);
    const _: () = assert!(offset_of!(SlotDirection, sender.closing) == direction::sender::CLOSING);
    const _: () = assert!(offset_of!(SlotDirection, sender.leaving) == direction::sender::LEAVING);
    const _: () = assert!(offset_of!(SlotDirection, sender.gone) == direction::sender::GONE);
    const _: () = assert!(offset_of!(SlotDirection, sender.events) == direction::sender::EVENTS);
    const _: () = assert!(offset_of!(SlotDirection, sender.kept) == direction::sender::KEPT);
    const _: () = assert!(offset_of!(SlotDirection, sender.kept_event) == direction::sender::KEPT_EVENT);
    const _: () = assert!(offset_of!(SlotDirection, receiver.told) == direction::receiver::TOLD);
    const _: () = assert!(offset_of!(SlotDirection, stamps) == direction::STAMPS);
    const _: () = assert!(offset_of!(SlotDirection, watch.wait) == direction::watch::WAIT);
    const _: () = assert!(offset_of!(SlotDirection, watch.set) == direction::watch::SET);
    const _: () = assert!(offset_of!(SlotDirection, watch.attached) == direction::watch::ATTACHED);
    const _: () = assert!(offset_of!(SlotDirection, watch.ordered) == direction::watch::ORDERED);
    const _: () = assert!(offset_of!(SlotDirection, watch.want_kernel) == direction::watch::WANT_KERNEL);
    const _: () = assert!(offset_of!(SlotDirection, watch.reading_kernel) == direction::watch::READING_KERNEL);
    const _: () = assert!(offset_of!(SlotDirection, watch.sending) == direction::watch::SENDING);
    const _: () = assert!(offset_of!(SlotDirection, receiver.tail) == direction::receiver::TAIL);
    const _: () = assert!(offset_of!(SlotDirection, room.wait) == direction::room::WAIT);
    const _: () = assert!(offset_of!(SlotDirection, room.set) == direction::room::SET);
    const _: () = assert!(offset_of!(SideListener, summary) == listener::SUMMARY);
    const _: () = assert!(offset_of!(SideListener, active) == listener::ACTIVE);
    const _: () = assert!(offset_of!(SideListener, sleeping) == listener::SLEEPING);
}

//! Streams of bytes between two processes beside a kernel socket (layout: `weft_wire::stream::arena`).
//!
//! A connection is a slot of an arena, two directions of one [`StreamSender`] and one [`StreamReceiver`] each. A
//! direction begins in the kernel, switches to its ring, and may go back to the kernel once. What a side must believe
//! later stands in memory of its own ([`lines::OwnSender`], [`lines::OwnReceiver`]); what the peer writes are claims,
//! and one that is impossible makes the direction broken, nothing else.
//!
//! Orderings:
//! - `stream-head`: the sender's release store of the head pairs with the receiver's acquire load; it publishes bytes.
//! - `stream-tail`: the receiver's release store of the tail pairs with the sender's acquire load; it gives room back.
//! - `stream-mode`: the sender's release store of the mode pairs with the receiver's acquire load; it publishes the
//!   position of the switch.
//! - `stream-sleep`: a publisher stores head or tail, then looks who sleeps; a sleeper arms, then looks at head or
//!   tail. The sleeper makes the barrier for both ([`crate::sync`]).
//! - `stream-mark`: the same for a set: the publisher marks the slot, then looks at the set's bell; the set's owner
//!   stores its bell, makes the barrier, then scans.
//! - `stream-final`: the receiver says that it reads the kernel, then looks at the mode; the sender stores the final
//!   mode, then looks whether the receiver reads. Both fence: one of them sees the other.
//! - `stream-wish`: the sender says that it sends, then looks at the receiver's wish; the receiver stores its wish,
//!   makes the barrier for both, then looks at the sender.
//! - `stream-told`: see [`order`].

#[cfg(not(loom))]
mod arena;
mod armed;
#[cfg(not(loom))]
pub mod bell;
mod bytes;
#[cfg(not(loom))]
mod gateway;
pub mod lines;
#[cfg(not(loom))]
mod lock;
#[cfg(all(test, loom))]
mod loom_models;
#[cfg(not(loom))]
mod mirror;
#[cfg(all(test, not(loom)))]
mod mirrored;
#[cfg(all(test, not(loom)))]
mod nonsense;
#[cfg(not(loom))]
pub mod order;
#[cfg(all(test, not(loom)))]
mod properties;
mod receiver;
mod sender;

#[cfg(not(loom))]
pub use arena::Arena;
pub use armed::{BellCalls, arm, disarm, fire_all, lie_down, scan, sleeper_barrier};
pub use bytes::RingBytes;
#[cfg(not(loom))]
pub use bytes::StreamRing;
#[cfg(not(loom))]
pub use gateway::{FarEnd, Gateway, GatewayCounters, PROGRAM, Ticked};
#[cfg(not(loom))]
pub use lock::{HowLocked, StreamLock};
pub use receiver::{ByteSource, FoundBytes, StreamReceiver, find, has_rest};
pub use sender::{SendRoom, SendTarget, StreamSender, room};

/// A sender is writable, and is woken, when so much of the ring is free: a third, as the kernel has it
/// (`sk_stream_is_writable`). Programs expect that a short write still fits after a long one has ended.
pub const LOW_WATER: u64 = weft_wire::stream::arena::RING_BYTES as u64 / 3;

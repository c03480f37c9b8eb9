//! `shm`: processes of one host over a shared segment (layout: `weft_wire::segment`).
//!
//! Per ordered pair a single-producer single-consumer [`ring`] of cells with a bulk area beside it; per member a
//! mailbox with the [`doorbell`] and the set of active senders; per pair a few slots for long messages that both sides
//! [`copy`] together.

pub mod block;
mod blocks;
pub mod copy;
pub mod datagram;
mod device;
pub mod distance;
mod doorbell;
mod incoming;
#[cfg(all(test, loom))]
mod loom_models;
pub mod memory;
#[cfg(all(test, not(loom)))]
mod nonsense;
mod outgoing;
mod ring;
#[cfg(all(test, not(loom)))]
mod ring_properties;
mod segment;
mod slots;
pub mod stream;
mod views;

pub use blocks::NoBlocks;
pub use copy::{Copied, CopyJob, CopySlot, Direction, ShownMemory, TakenSlot};
pub use device::ShmDevice;
pub use doorbell::Doorbell;
pub use memory::Memory;
pub use ring::LARGEST_PACKET;
pub use segment::{Segment, SegmentError};
pub use slots::CopySlots;

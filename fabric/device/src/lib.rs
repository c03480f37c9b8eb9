//! The hardware abstraction layer: one [`Device`] contract and the devices that keep it.
//!
//! - [`shm`]: processes of one host over a shared segment.
//! - [`loopback`]: endpoints of one process; the reference.
//!
//! Beside them: [`handover`] passes the segment's descriptor on, [`probe`] says what can be used here and why.
//!
//! Invariants:
//! - A device moves packets and knows nothing of messages, matching or ranks' meaning.
//! - Nothing here blocks except [`Doorbell::sleep`](shm::Doorbell::sleep), the one place where a process sleeps.
//! - What a peer wrote is copied, checked, then used. No reference ever points at bytes that a peer may change;
//!   payloads are [`Foreign`], which can only be copied out.
//! - System calls of the data path stand in [`sys`], nowhere else.
//!
//! Test: `cargo test -p weft-device` (conformance on every device, properties), `cargo xtask loom` (orderings).

mod contract;
#[cfg(not(loom))]
pub mod handover;
pub mod loopback;
#[cfg(not(loom))]
mod probe;
pub mod shm;
mod sync;
pub mod sys;

#[cfg(all(test, not(loom)))]
mod conformance;

#[cfg(not(loom))]
pub use probe::{Report, probe};

pub use contract::{Capabilities, Device, Foreign, Packet, PeerFault, Posted, Sink};

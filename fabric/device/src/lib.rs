//! The hardware abstraction layer: one [`Device`] contract and the devices that keep it.
//!
//! - [`shm`]: processes of one host over a shared segment.
//! - [`tcp`]: processes of any hosts, over the kernel's TCP.
//! - [`udp`]: no device, but datagrams between any hosts, which may be lost. The device over them is in `weft-fabric`,
//!   where the machine is known that makes packets in order of them.
//! - [`xdp`]: no device of its own, but a faster way for the datagrams of one.
//! - [`loopback`]: endpoints of one process; the reference.
//!
//! Beside them: [`handover`] passes the segment's descriptor on, [`probe`] says what can be used here and why,
//! [`past_caches`] copies what need not stay in a cache, [`copying`] all else that is long, [`clock`] says what time it
//! is.
//!
//! Invariants:
//! - A device moves packets and knows nothing of messages, matching or ranks' meaning.
//! - On the data path nothing here blocks except [`Doorbell::sleep`](shm::Doorbell::sleep) with the futex behind it,
//!   and [`TcpSleeper::sleep`](tcp::TcpSleeper::sleep). What waits for sockets or pipes ([`handover`], a few calls of
//!   [`sys`]) is for start and end only.
//! - What a peer wrote is copied, checked, then used. No reference ever points at bytes that a peer may change;
//!   payloads are [`Foreign`], which can only be copied out.
//! - System calls of the data path stand in [`sys`], in `tcp/socket`, `tcp/epoll`, `udp/socket`, `xdp/socket` and, for
//!   what lives in preloaded libraries, [`kernel`]; nowhere else.
//! - In [`shm`] offsets become references in two files only (`views` for the segment, `stream/arena` for arenas).
//!
//! Not here: what a packet means (`weft-fabric`), where things stand in the segment (`weft-wire`).
//!
//! Test: `cargo test -p weft-device` (conformance on every device, properties, nonsense from a peer),
//! `cargo xtask loom` (orderings).

pub mod clock;
mod contract;
pub mod copying;
#[cfg(not(loom))]
pub mod handover;
pub use weft_kernel as kernel;
pub mod loopback;
pub mod past_caches;
#[cfg(not(loom))]
mod probe;
pub mod shm;
#[cfg(not(loom))]
pub mod sleep;
mod sync;
pub mod sys;
#[cfg(not(loom))]
pub mod tcp;
#[cfg(not(loom))]
pub mod udp;
#[cfg(not(loom))]
pub mod xdp;

#[cfg(all(test, not(loom)))]
mod conformance;
/// The suite is compiled into the tests of other crates, too.
#[cfg(all(test, not(loom)))]
extern crate self as weft_device;

#[cfg(not(loom))]
pub use probe::{ProbeReport, probe};

pub use contract::{
    Capabilities, Device, Foreign, NoMemory, Packet, PeerFault, Posted, ReceiveRoom, Sink, bytes_of, hand_on, words_of,
};

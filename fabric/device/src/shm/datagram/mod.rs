//! Datagrams between two processes beside their kernel sockets (meaning of the lines: `weft_wire::stream::datagram`).
//!
//! A slot of an arena is here a pair of sockets, each direction a ring of records and a *gate*. Nobody is ever woken
//! from here: a receiver that is about to sleep closes its gate, and a sender that finds it closed sends by the kernel,
//! which wakes whoever sleeps. So the one thing that must hold is that no record comes into a ring behind the last look
//! of a receiver that sleeps.
//!
//! Orderings:
//! - `datagram-head`: the sender's release store of the head pairs with the receiver's acquire load; it publishes a
//!   record.
//! - `datagram-tail`: the receiver's release store of the tail pairs with the sender's acquire load; it gives room
//!   back.
//! - `datagram-gate`: the sender says that it is inside, then looks at the gate; the receiver closes the gate, makes
//!   the barrier for both, then looks whether a sender is inside. One of them sees the other.
//! - `datagram-leave`: the sender's release store of "nobody inside" pairs with the receiver's acquire load: whoever
//!   saw the gate open has published before.

#[cfg(all(test, loom))]
mod loom_models;
#[cfg(all(test, not(loom)))]
mod properties;
mod receiver;
mod sender;

pub use receiver::{DatagramReceiver, NextDatagram, close, is_inside, open, sleeper_barrier, waiting};
pub use sender::DatagramSender;

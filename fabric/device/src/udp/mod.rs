//! `udp`: datagrams between processes of any hosts, over the kernel's UDP.
//!
//! A [`UdpPort`] sends and receives datagrams, many with one system call, and knows nothing of what is in them: not who
//! a rank is, not whether one was lost. It never waits; its descriptor is one to sleep on.
//!
//! - What goes to one address in datagrams of one size leaves as one *run*, which the kernel or the card cuts
//!   (`UDP_SEGMENT`); what comes so is taken as one (`UDP_GRO`).
//! - What the kernel has no room for stays, and is tried again; what it refuses for good is dropped, as a network may.
//! - What the kernel says of an address, at once or later by a message of the network, is told as a [`AddressReport`].
//! - A datagram is never cut by the network: one too large for the way is dropped.
//!
//! A lane ([`crate::xdp`]) may lie underneath the socket's address. Then a datagram goes by it to whom a believed one
//! has come from by it, not long ago; whatever the lane does not take goes by the socket, which always works.

mod by_lane;
mod faults;
mod inbox;
mod outbox;
mod port;
mod report;
mod run;
mod socket;

pub use faults::Faults;
pub use port::{Came, UdpPort, largest_datagram};
pub use report::AddressReport;

/// The longest datagram.
pub const LONGEST: usize = weft_wire::link::LONGEST;

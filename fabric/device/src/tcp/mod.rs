//! `tcp`: processes of any hosts that reach each other, over the kernel's TCP (what is said: `weft_wire::tcp`).
//!
//! One connection for each pair of ranks that talk, made when the first packet is posted. Both may dial at the same
//! time; the lower rank of the two chooses which connection stays. Each proves to the other that it knows the key of
//! the job. That keeps out whoever finds the port: other jobs, other users, scanners. It does not keep out who sits
//! between the hosts and can change what passes, for the packets themselves carry no proof; unless the job is encrypted
//! ([`sealed`]).
//!
//! Nothing here waits but [`TcpSleeper::sleep`]. What the kernel has no room for is kept, up to a bound, and then posts
//! are refused. A look at the sockets is a system call, so not every poll takes one: see [`look`].

mod book;
mod device;
mod dial;
mod epoll;
mod everywhere;
mod foreign;
mod greet;
mod guest;
mod link;
mod look;
mod output;
mod peer;
mod post;
mod reception;
mod sealed;
mod sleep;
pub(crate) mod socket;
#[cfg(test)]
mod tests;

pub use device::TcpDevice;
pub use everywhere::everywhere;
pub use look::Look;
pub use peer::{PeerIdentity, PeerPlace};
pub use sleep::TcpSleeper;
pub use socket::begin;

/// Ranks of as many hosts on the loopback interface, on narrow connections.
#[cfg(test)]
pub(crate) fn network(members: u32) -> Vec<TcpDevice> {
    tests::narrow_network(members)
}

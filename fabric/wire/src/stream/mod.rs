//! Byte streams beside a kernel socket: what their shared memory and their rendezvous look like.
//!
//! - [`arena`]: the memory that two processes share, one slot for each connection between them.
//! - [`page`]: the page that one process shares with the rendezvous.
//! - [`gateway`]: what a process and the rendezvous share for connections to other hosts.
//! - [`meeting`]: what the rendezvous of two hosts say to each other.
//! - [`packet`]: what processes and the rendezvous say to each other.
//! - [`parcel`]: what two hosts say to each other about a connection between them.
//! - [`tally`]: what all processes of a command count together.
//! - [`datagram`]: what a slot holds that stands for a pair of datagram sockets.

pub mod arena;
pub mod datagram;
pub mod gateway;
pub mod meeting;
pub mod packet;
pub mod page;
pub mod parcel;
pub mod tally;

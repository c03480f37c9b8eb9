//! Byte streams beside a kernel socket: what their shared memory and their rendezvous look like.
//!
//! - [`arena`]: the memory that two processes share, one slot for each connection between them.
//! - [`page`]: the page that one process shares with the rendezvous.
//! - [`packet`]: what processes and the rendezvous say to each other.
//! - [`datagram`]: what a slot holds that stands for a pair of datagram sockets.

pub mod arena;
pub mod datagram;
pub mod packet;
pub mod page;

//! Datagrams that leave together, for the socket that sends them.

use crate::tcp::socket::KernelAddress;
use std::net::SocketAddr;

/// Where a datagram goes, as the kernel wants it.
#[derive(Clone, Copy)]
pub struct SocketName {
    pub address: KernelAddress,
    pub bytes: usize,
}

/// Datagrams of one size, but for the last that may be shorter, to one address.
pub struct DatagramRun {
    pub to: SocketName,
    pub address: SocketAddr,
    pub start: usize,
    pub bytes: usize,
    pub segment: usize,
    pub count: u32,
    /// Another datagram may follow.
    pub open: bool,
}

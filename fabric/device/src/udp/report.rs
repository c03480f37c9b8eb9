//! What is said of addresses.

use std::io;
use std::net::SocketAddr;

/// What the kernel or the network has said of datagrams to an address.
#[derive(Debug)]
pub struct AddressReport {
    pub address: SocketAddr,
    pub error: io::Error,
    /// This host says so. Otherwise it is a message from the network, and anybody can send such messages.
    pub is_own: bool,
}

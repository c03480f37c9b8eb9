//! What a protocol is for the switch: it gives packets that have arrived their meaning, and posts its own.
//!
//! A protocol beside [`crate::port`] is a file, which implements [`Protocol`], and a line in the list of
//! [`crate::switch`]. Its packets have the kind [`Kind::Other`](weft_wire::cell::Kind::Other), and name it by their
//! context. They arrive whole and in the order of posting, each peer's for itself, but have no place among messages:
//! the fabric may bring them before or after what the same peer has sent by another protocol. A bulk payload may be
//! cut: its later parts have the same header, and no control words.

use crate::api::{Fault, Peer};
use crate::devices::Devices;
use crate::requests::Requests;
use weft_device::Packet;

/// Why a packet is against the protocol.
pub(crate) type Breach = &'static str;

/// A protocol. `Below` is what it shares with the others: the table of requests, which lies with [`crate::port`].
pub(crate) trait Protocol<Below = Requests> {
    /// A packet of it has arrived. After an error nothing more comes from that peer.
    fn handle_packet(&mut self, packet: Packet<'_>, below: &mut Below) -> Result<(), Breach>;

    /// Whether anything waits to be moved by [`Self::pump`].
    fn has_work(&self) -> bool {
        false
    }

    /// Moves what waits into the devices as far as there is room; true if anything moved.
    fn pump(&mut self, devices: &mut Devices, below: &mut Below) -> bool {
        let _ = (devices, below);
        false
    }

    /// The peers that something waits for.
    fn awaited(&self) -> Vec<u32> {
        Vec::new()
    }

    /// One more peer, the next one after all that there are, on no host of this job.
    fn add_peer(&mut self);

    /// Nothing goes to or comes from the peer any more: what needs it ends so.
    fn lose_peer(&mut self, peer: Peer, fault: Fault, below: &mut Below);
}

/// A protocol that is named by a number.
pub(crate) trait Numbered: Protocol {
    /// What its packets have as their context.
    const NUMBER: u32;

    /// For the process `me` among `peers`.
    fn new(me: u32, peers: u32) -> Self;
}

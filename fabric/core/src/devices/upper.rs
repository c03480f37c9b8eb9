//! What the devices see of who receives from them.

use weft_device::shm::CopySlots;
use weft_device::{Packet, PeerFault, Room, Sink};

/// How a packet has come from another host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Datagrams,
    Connection,
}

impl By {
    pub const fn other(self) -> Self {
        match self {
            Self::Datagrams => Self::Connection,
            Self::Connection => Self::Datagrams,
        }
    }
}

/// Where packets go, and what several devices have to know of each other.
pub(crate) trait Upper: Sink {
    /// As [`Sink::handle_packet`], for what comes by one of two ways that may lead to its sender.
    fn handle_packet_by(&mut self, packet: Packet<'_>, by: By) -> Result<(), &'static str>;

    /// Whether what is handed on now comes by the device for long messages.
    fn set_long_way(&mut self, by_long_way: bool);

    fn is_lost(&self, peer: u32) -> bool;

    /// Whether devices are to be told of a loss.
    fn has_newly_lost(&self) -> bool;

    /// A peer that one device has lost: no other shall bring anything of it, nor take anything for it.
    fn take_newly_lost(&mut self) -> Option<u32>;

    /// A peer of another job shares copy slots with us from now on, as this member of their segment; or none any more.
    fn share_copies(&mut self, peer: u32, slots: Option<(CopySlots, u32, i32)>);

    /// Whether a copy is under way with a peer.
    fn has_copies_with(&self, peer: u32) -> bool;

    /// Tells the user what goes wrong with the devices.
    fn tell(&self, what: &dyn std::fmt::Display);
}

/// Hands on what comes by one of the two ways.
pub(crate) struct Ordered<'a, U> {
    pub upper: &'a mut U,
    pub by: By,
}

impl<U: Upper> Sink for Ordered<'_, U> {
    #[inline]
    fn handle_packet(&mut self, packet: Packet<'_>) -> Result<(), &'static str> {
        self.upper.handle_packet_by(packet, self.by)
    }

    fn handle_fault(&mut self, fault: PeerFault) {
        self.upper.handle_fault(fault);
    }

    fn room(&mut self, from: u32) -> Option<Room<'_>> {
        self.upper.room(from)
    }
}

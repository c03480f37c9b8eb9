//! What devices need of the protocols above them, and nothing else of those.

use std::fmt::Display;
use weft_device::shm::CopySlots;
use weft_device::{Packet, PeerFault, ReceiveRoom, Sink};

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

/// Where packets of all devices go, and what is asked there about peers.
pub(crate) trait Above: Sink {
    /// As [`Sink::handle_packet`], for a peer to which two devices lead, neither of which waits for the other.
    fn handle_packet_by(&mut self, packet: Packet<'_>, by: By) -> Result<(), &'static str>;

    /// Whether what is handled now comes by the device for long messages.
    fn set_by_long_way(&mut self, is_so: bool);

    /// Tells the user what goes wrong with devices.
    fn tell(&self, what: &dyn Display);

    fn is_lost(&self, peer: u32) -> bool;

    /// Whether devices are to be told of a loss, and whom next: nothing of it shall be brought any more, or taken for
    /// it.
    fn has_newly_lost(&self) -> bool;
    fn take_newly_lost(&mut self) -> Option<u32>;

    /// A peer of another job shares copy slots with us from now on, as this member of their segment and with this
    /// process id; or none any more.
    fn share_copies(&mut self, peer: u32, slots: Option<(CopySlots, u32, i32)>);

    /// Whether a copy is under way with a peer.
    fn has_copies_with(&self, peer: u32) -> bool;
}

/// Hands on what comes by one of two devices.
pub(super) struct OneOfTwo<'a, A> {
    pub above: &'a mut A,
    pub by: By,
}

impl<A: Above> Sink for OneOfTwo<'_, A> {
    #[inline]
    fn handle_packet(&mut self, packet: Packet<'_>) -> Result<(), &'static str> {
        self.above.handle_packet_by(packet, self.by)
    }

    fn handle_fault(&mut self, fault: PeerFault) {
        self.above.handle_fault(fault);
    }

    fn room(&mut self, from: u32) -> Option<ReceiveRoom<'_>> {
        self.above.room(from)
    }
}

/// Hands packets of members of a segment on as those of ranks.
pub(super) struct NamedRanks<'a, S> {
    pub sink: &'a mut S,
    pub ranks: &'a [u32],
}

impl<S: Sink> Sink for NamedRanks<'_, S> {
    #[inline]
    fn handle_packet(&mut self, mut packet: Packet<'_>) -> Result<(), &'static str> {
        packet.from = self.ranks[packet.from as usize];
        self.sink.handle_packet(packet)
    }

    fn handle_fault(&mut self, fault: PeerFault) {
        self.sink.handle_fault(match fault {
            PeerFault::Nonsense { peer, what } => PeerFault::Nonsense { peer: self.ranks[peer as usize], what },
            PeerFault::CutOff { peer } => PeerFault::CutOff { peer: self.ranks[peer as usize] },
            lost => lost,
        });
    }
}

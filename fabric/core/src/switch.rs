//! The protocol switch: it owns the protocols, and hands each the packets that name it.
//!
//! It is what the devices see of everything above ([`Above`]). The way of a short message to the port is one branch,
//! and no dynamic call. Who is lost is decided here, once for all protocols.

use crate::active::ActiveProtocol;
use crate::api::{Fault, Peer};
use crate::devices::{Above, By, Devices};
use crate::events::{self, Event, tell};
use crate::port::Port;
use crate::protocol::{Breach, Numbered, Protocol};
use crate::raw::Raw;
use crate::requests::Requests;
use weft_device::shm::CopySlots;
use weft_device::{NoMemory, Packet, PeerFault, ReceiveRoom, Sink};
use weft_wire::cell::Kind;

/// The protocols beside port, each with a name: what there is of every protocol is made here.
macro_rules! protocols {
    ($($(#[$on:meta])* $name:ident: $protocol:ty,)+) => {
        pub(crate) struct Others {
            $($(#[$on])* pub $name: $protocol,)+
        }

        impl Others {
            fn new(me: u32, peers: u32) -> Self {
                Self { $($(#[$on])* $name: <$protocol as Numbered>::new(me, peers),)+ }
            }

            fn handle_packet(&mut self, packet: Packet<'_>, requests: &mut Requests) -> Result<(), Breach> {
                match packet.head.protocol() {
                    $($(#[$on])* <$protocol as Numbered>::NUMBER => self.$name.handle_packet(packet, requests),)+
                    _ => Err("a packet of a protocol that there is not"),
                }
            }

            /// Calls `what` with each of them.
            fn each<R>(&mut self, mut what: impl FnMut(&mut dyn Protocol) -> R) -> impl Iterator<Item = R> {
                [$($(#[$on])* what(&mut self.$name),)+].into_iter()
            }

            #[inline]
            fn has_work(&self) -> bool {
                let mut any = false;
                $($(#[$on])* { any |= self.$name.has_work(); })+
                any
            }
        }
    };
}

protocols! {
    raw: Raw,
    active: ActiveProtocol,
    #[cfg(test)]
    echo: crate::echo::Echo,
}

pub(crate) struct Switch {
    pub port: Port,
    pub others: Others,
    me: u32,
    /// Peers below are ranks of our job, others processes of other jobs.
    ranks: u32,
    /// That a process of another job is lost is nothing to tell people: the interface does.
    pub is_quiet_of_others: bool,
    /// A peer that has no memory for us is lost before what the device has to say of ours was told.
    asks_for_refusals: bool,
    /// Lost since the devices were last told.
    newly_lost: Vec<u32>,
}

impl Switch {
    pub fn new(me: u32, ranks: u32, port: Port) -> Self {
        let others = Others::new(me, ranks);
        let (is_quiet_of_others, asks_for_refusals) = (false, false);
        Self { port, others, me, ranks, is_quiet_of_others, asks_for_refusals, newly_lost: Vec::new() }
    }

    /// One more peer, the next one after all that there are, on no host of this job.
    pub fn add_peer(&mut self) {
        self.port.add_peer();
        self.others.each(|other| other.add_peer()).for_each(drop);
    }

    /// Whether anything waits for room in the device, for a copy or to be told.
    #[inline]
    pub fn has_work(&self) -> bool {
        self.port.has_work() | self.others.has_work() | self.asks_for_refusals
    }

    /// Moves what waits into the devices as far as there is room; true if anything moved.
    pub fn pump(&mut self, devices: &mut Devices) -> bool {
        let moved = self.port.pump(devices, &mut ());
        let Self { port, others, .. } = self;
        let others = others.each(|other| other.has_work() && other.pump(devices, &mut port.requests));
        others.fold(moved, |moved, other| moved | other)
    }

    /// Peers that something waits for in the device or in a copy.
    pub fn awaited(&mut self) -> Vec<u32> {
        let mut all = self.port.awaited();
        self.others.each(|other| other.awaited()).for_each(|more| all.extend(more));
        all
    }

    /// A packet that is no short message.
    fn route(&mut self, packet: Packet<'_>) -> Result<(), Breach> {
        match packet.head.kind.is_of_port() {
            true => self.port.handle_packet(packet, &mut ()),
            false => self.others.handle_packet(packet, &mut self.port.requests),
        }
    }

    /// The peer broke the rules, died or cannot be reached: everything that needs it ends with this fault.
    fn lose_peer(&mut self, peer: u32, fault: Fault) {
        if self.port.is_lost(peer) {
            return;
        }
        self.port.requests.note_loss(Peer(peer), fault);
        if fault == Fault::PeerLost {
            crate::join::note_lost((peer < self.ranks).then_some(peer));
        }
        tell(events::EventKind::Lost, || Event::Lost { peer });
        self.newly_lost.push(peer);
        let Self { port, others, .. } = self;
        others.each(|other| other.lose_peer(Peer(peer), fault, &mut port.requests)).for_each(drop);
        port.lose_peer(Peer(peer), fault, &mut ());
    }

    /// The peer's process has ended, and what it sent has been taken.
    pub fn handle_loss(&mut self, peer: u32) {
        self.lose_peer(peer, Fault::PeerLost);
    }

    /// All that the devices have refused is told.
    pub fn refusals_are_told(&mut self) {
        self.asks_for_refusals = false;
    }

    /// Nothing can be sent to a peer any more.
    pub fn handle_no_memory(&mut self, refusal: &NoMemory) {
        self.tell(refusal);
        self.lose_peer(refusal.peer, Fault::NoMemory);
    }

    /// The peer takes nothing any more.
    pub fn handle_end(&mut self, peer: u32) {
        if !self.port.is_lost(peer) {
            let me = self.me;
            eprintln!("weft: rank {me}: rank {peer} has ended before it took all that was sent to it");
        }
        self.lose_peer(peer, Fault::PeerLost);
    }
}

impl Sink for Switch {
    #[inline]
    fn handle_packet(&mut self, packet: Packet<'_>) -> Result<(), Breach> {
        if packet.head.kind == Kind::Short {
            self.port.on_short(packet);
            return Ok(());
        }
        self.route(packet)
    }

    fn handle_fault(&mut self, fault: PeerFault) {
        if !self.is_quiet_of_others || fault.peer() < self.ranks || !matches!(fault, PeerFault::Lost { .. }) {
            self.tell(&fault);
        }
        let ending = if let PeerFault::CutOff { .. } = fault { Fault::NoMemory } else { Fault::PeerLost };
        self.lose_peer(fault.peer(), ending);
        self.asks_for_refusals |= ending == Fault::NoMemory;
    }

    fn room(&mut self, from: u32) -> Option<ReceiveRoom<'_>> {
        self.port.room(from)
    }
}

impl Above for Switch {
    #[inline]
    fn handle_packet_by(&mut self, packet: Packet<'_>, by: By) -> Result<(), Breach> {
        // What the other device still brings of a lost peer has no place any more.
        if self.port.is_lost(packet.from) {
            return Ok(());
        }
        match packet.head.kind.is_of_port() {
            true => self.port.handle_packet_by(packet, by),
            false => self.route(packet),
        }
    }

    fn set_by_long_way(&mut self, is_so: bool) {
        self.port.incoming.by_long_way = is_so;
    }

    fn is_lost(&self, peer: u32) -> bool {
        self.port.is_lost(peer)
    }

    #[inline]
    fn has_newly_lost(&self) -> bool {
        !self.newly_lost.is_empty()
    }

    #[inline]
    fn take_newly_lost(&mut self) -> Option<u32> {
        self.newly_lost.pop()
    }

    fn share_copies(&mut self, peer: u32, slots: Option<(CopySlots, u32, i32)>) {
        self.port.share_copies(peer, slots);
    }

    fn has_copies_with(&self, peer: u32) -> bool {
        self.port.has_copies_with(peer)
    }

    fn tell(&self, what: &dyn std::fmt::Display) {
        eprintln!("weft: rank {}: {what}", self.me);
    }
}

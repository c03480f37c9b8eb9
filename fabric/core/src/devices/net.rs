//! The devices to other hosts, beside the segment of this one: which of them a packet goes by, and what they have to
//! know of each other.
//!
//! Where both datagrams and a connection lead to a rank, the selector says which messages use the connection once there
//! is one ([`weft_protocol::selector`], decision 14). Of each peer two streams may be open, one by each device. Neither
//! device waits for the other; [`crate::port`]'s `order` keeps the order of messages. Single copies, and collectives on
//! shared memory, are for ranks of one host.

use super::above::{Above, By, NamedRanks, OneOfTwo};
use super::held::Unmet;
use super::places::MessagePlaces;
use super::table::{DeviceKind, RankWay, with_device};
use super::twos::{Posts, Twos};
use crate::events::{self, Event, tell};
use crate::links::Links;
use crate::watch::{Watch, begin_all};
use weft_device::shm::ShmDevice;
use weft_device::tcp::TcpDevice;
use weft_device::{Device, PeerFault, Posted};
use weft_protocol::selector::{self, Road};
use weft_wire::cell::{Head, Kind};
use weft_wire::settings::{DeviceName, DeviceOrder};

/// So many passes in a row may look at shared memory alone, where that has brought something or connections serve to
/// tell of ends. A look at the clock for them is a tenth of a short message.
const NEAR_PASSES: u32 = 16;

pub(super) struct Net {
    /// By rank, and then those of other jobs.
    pub(super) ways: Vec<RankWay>,
    /// The ranks of the members of the segment.
    pub(super) ranks: Vec<u32>,
    /// The host of each rank of the job, as its map numbers them.
    pub(super) hosts: Vec<u32>,
    /// The names of those hosts, as the user wrote them.
    pub(super) host_names: Vec<String>,
    /// Of this host.
    pub(super) addresses: Vec<std::net::IpAddr>,
    pub(super) order: DeviceOrder,
    pub(super) encrypts: bool,
    pub(super) links: Option<Links>,
    pub(super) tcp: TcpDevice,
    pub(super) watch: Watch,
    pub(super) places: MessagePlaces,
    /// The ways are others than they were.
    pub(super) changed: bool,
    /// Shared memory with processes of other jobs.
    pub(super) twos: Twos,
    pub(super) unmet: Unmet,
    /// What connections have carried about that, which is no message.
    pub(super) said: Posts,
    /// Passes in a row that have looked at shared memory alone.
    near_passes: u32,
    /// A device of tests.
    #[cfg(test)]
    pub(super) simulated: Option<weft_device::loopback::Loopback>,
}

impl Net {
    /// These ways, of which shared memory and `tcp` are there already, on one host that has no address.
    pub(super) fn new(ways: Vec<RankWay>, tcp: TcpDevice, order: DeviceOrder, encrypts: bool) -> Self {
        let ranks = ways.len();
        Self {
            ways,
            ranks: (0..ranks as u32).collect(),
            hosts: vec![0; ranks],
            host_names: Vec::new(),
            addresses: Vec::new(),
            order,
            encrypts,
            links: None,
            tcp,
            watch: Watch::default(),
            places: MessagePlaces::new(ranks),
            changed: false,
            twos: Twos::default(),
            unmet: Unmet::new(ranks as u32),
            said: Posts::default(),
            near_passes: 0,
            #[cfg(test)]
            simulated: None,
        }
    }

    pub(super) fn member_of(&self, rank: u32) -> Option<u32> {
        match self.ways.get(rank as usize) {
            Some(RankWay { which: DeviceKind::Shm, number }) => Some(*number),
            _ => None,
        }
    }

    /// What brings datagrams to a rank, if it is of this job.
    #[inline]
    pub(super) fn links_to(&mut self, rank: u32) -> Option<&mut Links> {
        self.links.as_mut().filter(|_| (rank as usize) < self.hosts.len())
    }

    /// How a packet goes to a rank. `None` where there is no room yet for what has to be said before it.
    #[inline]
    fn way_of(&mut self, to: u32, kind: Kind) -> Option<RankWay> {
        let way = self.ways[to as usize];
        match way.which {
            DeviceKind::Udp if !kind.is_of_port() && self.places.keeps_others_over_connection(to) => {
                Some(RankWay { which: DeviceKind::Tcp, ..way })
            }
            DeviceKind::Udp if kind.has_place() && !self.name_place(to) => None,
            // It says what there is to say of that.
            DeviceKind::Unmet if self.tcp.has_ended(to) => {
                self.ways[to as usize].which = DeviceKind::Tcp;
                Some(self.ways[to as usize])
            }
            _ => Some(way),
        }
    }

    /// Says by datagrams how many messages went over the connection, where that is to be said before the next one;
    /// false if there is no room.
    #[inline]
    fn name_place(&mut self, to: u32) -> bool {
        let (Some(place), Some(links)) = (self.places.to_be_named(to), &mut self.links) else { return true };
        let named = links.post_control(to, Head::control(Kind::Order), &[place]) != Posted::Full;
        if named {
            self.places.note_named(to);
        }
        named
    }

    /// Notes what went by one of two devices. What goes over the connection while nothing else leads to a rank counts,
    /// too: that may change.
    #[inline]
    fn note(&mut self, to: u32, way: RankWay, kind: Kind, posted: Posted) -> Posted {
        match way.which {
            DeviceKind::Udp => self.places.note(to, By::Datagrams, kind, posted),
            DeviceKind::Tcp => self.places.note(to, By::Connection, kind, posted),
            _ => posted,
        }
    }

    pub(super) fn post_control(&mut self, shm: &mut ShmDevice, to: u32, head: Head, control: &[u64]) -> Posted {
        let Some(way) = self.way_of(to, head.kind) else { return Posted::Full };
        let posted =
            with_device!((&mut) self, shm, way.which, device => device.post_control(way.number, head, control));
        self.note(to, way, head.kind, posted)
    }

    /// # Safety
    /// As [`Device::post_short`].
    pub(super) unsafe fn post_short(
        &mut self,
        shm: &mut ShmDevice,
        to: u32,
        head: Head,
        data: *const u8,
        length: usize,
    ) -> Posted {
        let Some(way) = self.way_of(to, head.kind) else { return Posted::Full };
        // SAFETY: the caller's promise.
        let posted = unsafe {
            with_device!((&mut) self, shm, way.which, device => device.post_short(way.number, head, data, length))
        };
        self.note(to, way, head.kind, posted)
    }

    /// # Safety
    /// As [`Device::post_bulk`].
    pub(super) unsafe fn post_bulk(
        &mut self,
        shm: &mut ShmDevice,
        to: u32,
        head: Head,
        control: &[u64],
        data: *const u8,
        length: usize,
    ) -> Posted {
        let Some(way) = self.way_of(to, head.kind) else { return Posted::Full };
        // SAFETY: the caller's promise.
        let posted = unsafe {
            with_device!(
                (&mut) self, shm, way.which, device => device.post_bulk(way.number, head, control, data, length)
            )
        };
        self.note(to, way, head.kind, posted)
    }

    /// See [`super::Devices::takes_whole`].
    pub(super) fn takes_whole(&mut self, shm: &mut ShmDevice, to: u32, length: usize) -> bool {
        let way = self.ways[to as usize];
        with_device!((&mut) self, &mut *shm, way.which, device => device.takes_whole(way.number, length))
            && self.road(shm, to, length) != Road::Both
    }

    pub(super) fn push(&mut self, shm: &mut ShmDevice, to: u32, more: bool) {
        let way = self.ways[to as usize];
        with_device!((&mut) self, shm, way.which, device => device.push(way.number, more));
    }

    /// See [`super::Devices::road`].
    pub(super) fn road(&mut self, shm: &mut ShmDevice, to: u32, length: usize) -> Road {
        let way = self.ways[to as usize];
        let declared = way.which.capabilities();
        if declared.shares_memory {
            return Road::Ring;
        }
        if declared.streams {
            return Road::Connection;
        }
        if declared.may_wait {
            return Road::Unmet;
        }
        let by_lane = || with_device!((&mut) self, &mut *shm, way.which, device => device.goes_by_lane(way.number));
        if selector::prefers_connection(length, by_lane) && self.reaches_by_stream(to) {
            return Road::Both;
        }
        Road::Datagrams { packet: self.packet_bytes(shm, to, length) }
    }

    /// As [`Device::packet_bytes`].
    pub(super) fn packet_bytes(&self, shm: &ShmDevice, to: u32, length: usize) -> usize {
        let way = self.ways[to as usize];
        with_device!((&) self, shm, way.which, device => device.packet_bytes(way.number, length))
    }

    /// Whether a device that streams leads to a rank, as the way to everything or besides another one. One that could
    /// and does not yet is asked to.
    pub(super) fn reaches_by_stream(&mut self, to: u32) -> bool {
        match self.ways[to as usize].which {
            // What is begun there ends there, also if another way is found meanwhile.
            which if which.capabilities().streams => true,
            DeviceKind::Udp if self.order.contains(DeviceName::Tcp) => {
                let is_open = self.links.as_ref().is_some_and(|links| !links.has_ended(to));
                is_open && {
                    self.tcp.reach(to);
                    self.tcp.is_linked(to)
                }
            }
            _ => false,
        }
    }

    pub(super) fn poll<A: Above>(&mut self, shm: &mut ShmDevice, above: &mut A) -> bool {
        let near = shm.poll(&mut NamedRanks { sink: above, ranks: &self.ranks }) | self.twos.poll(above);
        #[cfg(test)]
        let near = near | self.simulated.as_mut().is_some_and(|device| device.poll(above));
        if self.near_passes < NEAR_PASSES
            && self.links.is_none()
            && (near || self.is_quiet())
            && !above.has_newly_lost()
        {
            self.near_passes += 1;
            self.tcp.push_all();
            return near;
        }
        self.near_passes = 0;
        let links = match &mut self.links {
            Some(links) => links.poll(&mut OneOfTwo { above, by: By::Datagrams }),
            None => false,
        };
        if links {
            let descriptors = self.links.iter().flat_map(Links::descriptors);
            self.watch.note_find(|| descriptors.for_each(|descriptor| self.tcp.unwatch(descriptor)));
            self.tcp.note_elsewhere();
        }
        let far = self.poll_connections(above);
        while let Some(notice) = self.tcp.take_notice() {
            above.tell(&notice);
        }
        while let Some(rank) = above.take_newly_lost() {
            self.tcp.give_up(rank);
            self.leave_two(above, rank);
            if let Some(links) = self.links_to(rank) {
                links.handle_lost(rank);
            }
        }
        while let Some((rank, story)) = self.tcp.take_unreached() {
            match self.links_to(rank) {
                Some(links) => links.give_up_other(rank, &story),
                // Nothing else leads to a process of another job, and nobody else tells of its end.
                None => {
                    let story = format!("{} is lost: no address leads to it: {story}", self.tcp.title(rank));
                    above.handle_fault(PeerFault::Lost { peer: rank, story });
                }
            }
        }
        if self.links.is_some() {
            self.settle_links(above, far);
        }
        near | links | far
    }

    /// Whether nothing is expected of connections but the end of somebody.
    #[inline]
    fn is_quiet(&self) -> bool {
        self.tcp.is_quiet() && !self.has_strangers_work()
    }

    /// The next pass looks at connections.
    pub(super) fn look_soon(&mut self) {
        self.near_passes = NEAR_PASSES;
        self.tcp.look_soon();
        self.links.iter_mut().for_each(Device::look_soon);
    }

    /// What one of the two devices to other hosts has to know of the other.
    #[inline]
    pub(super) fn settle_links(&mut self, above: &impl Above, tcp_moved: bool) {
        let Some(links) = &mut self.links else { return };
        if let Some(lane) = links.take_failed_lane() {
            self.tcp.unwatch(lane.descriptor());
            tell_way(None, DeviceName::Xdp, DeviceName::Udp);
        }
        while let Some(notice) = links.take_notice() {
            above.tell(&notice);
        }
        while let Some(rank) = links.take_doubt() {
            self.tcp.reach(rank);
        }
        if tcp_moved {
            let lost = |rank: &u32| self.tcp.has_lost(*rank);
            (0..self.hosts.len() as u32).filter(lost).for_each(|rank| links.handle_lost(rank));
        }
        while let Some(rank) = links.take_return() {
            self.ways[rank as usize].which = DeviceKind::Udp;
            self.changed = true;
            tell_way(Some(rank), DeviceName::Tcp, name_of(links));
        }
        if !links.has_doubts() {
            return;
        }
        links.settle_doubts(|rank| self.tcp.is_linked(rank));
        while let Some(rank) = links.take_other() {
            // Nothing has gone by datagrams yet. What goes over the connection from now on is counted, so that what
            // goes by datagrams some day has its place behind it.
            self.ways[rank as usize].which = DeviceKind::Tcp;
            self.changed = true;
            tell_way(Some(rank), name_of(links), DeviceName::Tcp);
        }
    }

    pub(super) fn arm(&mut self) -> bool {
        self.tcp.arm() & self.links.as_mut().is_none_or(Device::arm)
    }

    /// Before a sleep on the sockets, for the one thread that does.
    pub(super) fn watch_links(&mut self) -> bool {
        let Self { links, tcp, watch, .. } = self;
        let descriptors: Vec<_> = links.iter().flat_map(Links::descriptors).collect();
        watch.arm(|| begin_all(descriptors.iter(), |one| tcp.watch(*one).is_ok(), |one| tcp.unwatch(*one)))
    }
}

/// The device that brings datagrams where a lane leads there.
fn name_of(links: &Links) -> DeviceName {
    if links.has_lane() { DeviceName::Xdp } else { DeviceName::Udp }
}

fn tell_way(peer: Option<u32>, from: DeviceName, to: DeviceName) {
    tell(events::EventKind::Way, || Event::Way { peer, from, to });
}

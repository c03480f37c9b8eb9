//! The devices to other hosts, beside the segment of this one: which of them a packet goes by, and what they have to know
//! of each other.
//!
//! Where both datagrams and a connection lead to a rank, the selector says which messages use the connection once there is
//! one ([`weft_protocol::selector`], decision 14). Of each peer two streams may be open, one by each device. Neither device waits for
//! the other; [`crate::port`]'s `order` keeps the order of messages. Single copies, and collectives on shared memory,
//! are for ranks of one host.

use super::Way;
use super::twos::{Posts, Twos};
use super::upper::{By, Ordered, Upper};
use crate::events::{self, Event, tell};
use crate::links::Links;
use crate::watch::{Watch, begin_all};
use weft_device::shm::ShmDevice;
use weft_device::tcp::TcpDevice;
use weft_device::{Device, Packet, PeerFault, Posted, Sink};
use weft_protocol::selector::{self, LINK_BYTES, Road};
use weft_wire::cell::{Head, INLINE_BYTES, Kind};
use weft_wire::settings::{DeviceName, DeviceOrder};

/// So many passes in a row may look at shared memory alone, where that has brought something or connections serve to
/// tell of ends. A look at the clock for them is a tenth of a short message.
const NEAR_PASSES: u32 = 16;

pub(super) struct Net {
    /// By rank, and then those of other jobs.
    pub(super) ways: Vec<Way>,
    /// The ranks of the members of the segment.
    pub(super) ranks: Vec<u32>,
    /// The host of each rank of the job, as its map numbers them.
    pub(super) hosts: Vec<u32>,
    /// Of this host.
    pub(super) addresses: Vec<std::net::IpAddr>,
    pub(super) order: DeviceOrder,
    pub(super) encrypts: bool,
    pub(super) links: Option<Links>,
    pub(super) tcp: TcpDevice,
    pub(super) watch: Watch,
    /// By rank: what was sent there by datagrams and over the connection.
    pub(super) sent: Vec<Sent>,
    /// The ways are others than they were.
    pub(super) changed: bool,
    /// Shared memory with processes of other jobs.
    pub(super) twos: Twos,
    /// What connections have carried about that, which is no message.
    pub(super) said: Posts,
    /// Passes in a row that have looked at shared memory alone.
    pub(super) near_passes: u32,
}

/// Messages to a rank to which two devices lead, for the order that its port keeps among them.
#[derive(Clone, Copy, Default)]
pub(super) struct Sent {
    pub(super) by_datagrams: u64,
    pub(super) over_connection: u64,
    /// So many of those over the connection were named by datagrams.
    pub(super) named: u64,
    /// Packets of protocols beside port went over the connection, while nothing else led there. They have no other order
    /// than that of their device, and stay with it.
    pub(super) others_over_connection: bool,
}

impl Net {
    pub(super) fn member_of(&self, rank: u32) -> Option<u32> {
        match self.ways.get(rank as usize) {
            Some(Way::Shm(member)) => Some(*member),
            _ => None,
        }
    }

    /// What brings datagrams to a rank, if it is of this job.
    #[inline]
    pub(super) fn links_to(&mut self, rank: u32) -> Option<&mut Links> {
        self.links.as_mut().filter(|_| (rank as usize) < self.hosts.len())
    }

    /// How a packet goes to a rank.
    #[inline]
    fn way_of(&self, to: u32, kind: Kind) -> Way {
        match self.ways[to as usize] {
            Way::Udp if !kind.is_of_port() && self.sent[to as usize].others_over_connection => Way::Tcp,
            way => way,
        }
    }

    /// Notes what went over the connection because nothing else leads to a rank: that may change.
    #[inline]
    fn note_over_connection(&mut self, to: u32, kind: Kind, posted: Posted) -> Posted {
        if posted != Posted::Full {
            let sent = &mut self.sent[to as usize];
            sent.over_connection += u64::from(kind.has_place());
            sent.others_over_connection |= !kind.is_of_port();
        }
        posted
    }

    pub(super) fn post_control(&mut self, shm: &mut ShmDevice, to: u32, head: Head, control: &[u64]) -> Posted {
        match self.way_of(to, head.kind) {
            Way::Shm(member) => shm.post_control(member, head, control),
            Way::Two(index) => {
                let two = self.twos.at(index);
                two.shm.post_control(two.them(), head, control)
            }
            Way::Unmet => self.post_unmet(to, head, &bytes_of(control)[..8 * control.len()], None),
            Way::Udp => self.post_link(to, head, &bytes_of(control)[..8 * control.len()], None),
            Way::Tcp => {
                let posted = self.tcp.post_control(to, head, control);
                self.note_over_connection(to, head.kind, posted)
            }
        }
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
        // SAFETY: the caller's promise.
        unsafe {
            match self.way_of(to, head.kind) {
                Way::Shm(member) => shm.post_short(member, head, data, length),
                Way::Two(index) => {
                    let two = self.twos.at(index);
                    two.shm.post_short(two.them(), head, data, length)
                }
                Way::Unmet => self.post_unmet(to, head, bytes_at(data, length), None),
                Way::Udp => self.post_link(to, head, bytes_at(data, length), None),
                Way::Tcp => {
                    let posted = self.tcp.post_short(to, head, data, length);
                    self.note_over_connection(to, head.kind, posted)
                }
            }
        }
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
        // SAFETY: the caller's promise.
        unsafe {
            match self.way_of(to, head.kind) {
                Way::Shm(member) => shm.post_bulk(member, head, control, data, length),
                Way::Two(index) => {
                    let two = self.twos.at(index);
                    two.shm.post_bulk(two.them(), head, control, data, length)
                }
                Way::Unmet => {
                    let bulk = bytes_at(data, length);
                    self.post_unmet(to, head, &bytes_of(control)[..8 * control.len()], Some(bulk))
                }
                Way::Udp => {
                    let bulk = bytes_at(data, length.min(self.link_bytes(to, length)));
                    self.post_link(to, head, &bytes_of(control)[..8 * control.len()], Some(bulk))
                }
                Way::Tcp => {
                    let posted = self.tcp.post_bulk(to, head, control, data, length);
                    self.note_over_connection(to, head.kind, posted)
                }
            }
        }
    }

    pub(super) fn poll(&mut self, shm: &mut ShmDevice, upper: &mut impl Upper) -> bool {
        let near = shm.poll(&mut Named { sink: upper, ranks: &self.ranks }) | self.twos.poll(upper);
        if self.near_passes < NEAR_PASSES
            && self.links.is_none()
            && (near || self.is_quiet())
            && !upper.has_newly_lost()
        {
            self.near_passes += 1;
            self.tcp.push_out();
            return near;
        }
        self.near_passes = 0;
        let links = match &mut self.links {
            Some(links) => links.poll(&mut Ordered { upper, by: By::Datagrams }),
            None => false,
        };
        if links {
            let descriptors = self.links.iter().flat_map(Links::descriptors);
            self.watch.note_find(|| descriptors.for_each(|descriptor| self.tcp.unwatch(descriptor)));
            self.tcp.note_elsewhere();
        }
        let far = self.poll_connections(upper);
        while let Some(notice) = self.tcp.take_notice() {
            upper.tell(&notice);
        }
        while let Some(rank) = upper.take_newly_lost() {
            self.tcp.give_up(rank);
            self.leave_two(upper, rank);
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
                    upper.handle_fault(PeerFault::Lost { peer: rank, story });
                }
            }
        }
        if self.links.is_some() {
            self.settle_links(upper, far);
        }
        near | links | far
    }

    /// Whether nothing is expected of connections but the end of somebody.
    #[inline]
    fn is_quiet(&self) -> bool {
        self.tcp.is_quiet() && !self.twos.has_work()
    }

    /// The next pass looks at connections.
    pub(super) fn look_soon(&mut self) {
        self.near_passes = NEAR_PASSES;
        self.tcp.look_soon();
        self.links.iter_mut().for_each(Links::look_soon);
    }

    #[inline]
    pub(super) fn post_link(&mut self, to: u32, head: Head, inline: &[u8], bulk: Option<&[u8]>) -> Posted {
        let Some(links) = &mut self.links else { return Posted::Full };
        if !head.kind.has_place() {
            return links.post(to, &head, inline, bulk);
        }
        let sent = &mut self.sent[to as usize];
        if sent.named != sent.over_connection {
            let place = sent.over_connection.to_le_bytes();
            if links.post(to, &Head::control(Kind::Order), &place, None) == Posted::Full {
                return Posted::Full;
            }
            sent.named = sent.over_connection;
        }
        let posted = links.post(to, &head, inline, bulk);
        sent.by_datagrams += u64::from(posted != Posted::Full);
        posted
    }

    #[inline]
    pub(super) fn link_bytes(&self, to: u32, length: usize) -> usize {
        match &self.links {
            // Cut by the link, which costs less than packets of their own.
            _ if length <= LINK_BYTES => length,
            Some(links) => links.packet_bytes(to),
            None => 1,
        }
    }

    /// See [`super::Devices::road`].
    pub(super) fn road(&mut self, to: u32, length: usize) -> Road {
        match self.ways[to as usize] {
            Way::Shm(_) | Way::Two(_) => Road::Ring,
            Way::Unmet => Road::Unmet,
            Way::Tcp => Road::Connection,
            Way::Udp => {
                let by_lane = || self.links.as_mut().is_some_and(|links| links.go_by_lane(to));
                match selector::prefers_connection(length, by_lane) && self.has_long_way(to) {
                    true => Road::Both,
                    false => Road::Datagrams { packet: self.link_bytes(to, length) },
                }
            }
        }
    }

    /// See [`super::Devices::has_long_way`].
    pub(super) fn has_long_way(&mut self, to: u32) -> bool {
        if self.ways[to as usize] == Way::Tcp {
            // What is begun there ends there, also if another way is found meanwhile.
            return true;
        }
        let is_alive = |links: &Links| !links.has_ended(to);
        if self.ways[to as usize] != Way::Udp
            || !self.order.contains(DeviceName::Tcp)
            || !self.links.as_ref().is_some_and(is_alive)
        {
            return false;
        }
        self.tcp.reach(to);
        self.tcp.is_linked(to)
    }

    /// What one of the two devices to other hosts has to know of the other.
    #[inline]
    pub(super) fn settle_links(&mut self, upper: &mut impl Upper, tcp_moved: bool) {
        let Some(links) = &mut self.links else { return };
        if let Some(lane) = links.take_failed_lane() {
            self.tcp.unwatch(lane.descriptor());
            tell_way(None, DeviceName::Xdp, DeviceName::Udp);
        }
        while let Some(notice) = links.take_notice() {
            upper.tell(&notice);
        }
        while let Some(rank) = links.take_doubt() {
            self.tcp.reach(rank);
        }
        if tcp_moved {
            let lost = |rank: &u32| self.tcp.has_lost(*rank);
            (0..self.hosts.len() as u32).filter(lost).for_each(|rank| links.handle_lost(rank));
        }
        while let Some(rank) = links.take_return() {
            self.ways[rank as usize] = Way::Udp;
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
            self.ways[rank as usize] = Way::Tcp;
            self.changed = true;
            tell_way(Some(rank), name_of(links), DeviceName::Tcp);
        }
    }

    pub(super) fn arm(&mut self) -> bool {
        self.tcp.arm() & self.links.as_mut().is_none_or(Links::arm)
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
    tell(events::Kind::Way, || Event::Way { peer, from, to });
}

/// Control words as bytes.
#[inline]
pub(super) fn bytes_of(control: &[u64]) -> [u8; INLINE_BYTES] {
    let mut bytes = [0; INLINE_BYTES];
    for (to, word) in bytes.chunks_exact_mut(8).zip(control) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// # Safety
/// `data` is readable for `length` bytes while the answer lives.
#[inline]
unsafe fn bytes_at<'a>(data: *const u8, length: usize) -> &'a [u8] {
    // SAFETY: the caller's promise; an empty range may come with any pointer.
    if length == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data, length) } }
}

/// Hands packets of members on as those of ranks.
struct Named<'a, S> {
    sink: &'a mut S,
    ranks: &'a [u32],
}

impl<S: Sink> Sink for Named<'_, S> {
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

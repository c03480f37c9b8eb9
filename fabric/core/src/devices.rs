//! The devices of an endpoint, and which of them leads to which rank.
//!
//! A job on one host has one device, whose members are the ranks. On several hosts a member of the segment is one of the
//! ranks of this host, and a table says for every rank of the job which device leads there, under which number. Above
//! this room everybody is a rank.
//!
//! For each rank the endpoint chooses at the start: the first device in `WEFT_DEVICE` that leads there, which is shared
//! memory inside a host and datagrams between hosts. The counters `shm_packets`, `udp_packets`, `tcp_packets` and
//! `xdp_datagrams` say which devices were used. Where the job lies on one host there is no table, and the short path
//! has one branch more than it would have without one.

mod foreign;
mod held;
mod net;
mod sleep;
mod slots;
mod strangers;
mod tell;
mod twos;
mod upper;

use crate::join::JoinError;
use crate::links::Links;
use crate::watch::Watch;
pub(crate) use foreign::Opening;
use net::{Net, Sent};
pub(crate) use sleep::Sleeper;
pub(crate) use slots::Slots;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use twos::{Posts, Twos};
pub(crate) use upper::{By, Upper};
use weft_device::shm::{Segment, ShmDevice};
use weft_device::tcp::{self, Place, TcpDevice};
use weft_device::udp::Faults;
use weft_device::xdp::Lane;
use weft_device::{Device, NoMemory, Posted, kernel};
use weft_protocol::selector::machine::Best;
use weft_protocol::selector::{LINK_BYTES, Road};
use weft_wire::cell::Head;
use weft_wire::job_map::JobMap;
use weft_wire::settings::{DeviceName, DeviceOrder};

/// What a rank of a job on several hosts is given at its start.
pub struct Across {
    pub map: JobMap,
    pub rank: u32,
    /// Where other ranks reach this one.
    pub listener: OwnedFd,
    /// Where their datagrams do.
    pub datagrams: Option<OwnedFd>,
    /// A faster way for those, if there is one.
    pub lane: Option<Lane>,
    /// What those suffer that arrive, in tests.
    pub faults: Option<Faults>,
    /// What goes by other devices than shared memory is encrypted, for all ranks of the job.
    pub encrypts: bool,
}

/// How packets reach a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// This member of the segment.
    Shm(u32),
    Udp,
    Tcp,
    /// A segment that we share with this process of another job alone.
    Two(u32),
    /// Of another job, and nothing has gone there yet.
    Unmet,
}

pub(crate) struct Devices {
    shm: ShmDevice,
    me: u32,
    /// More than the segment; `None` where all ranks are its members, under their own numbers.
    net: Option<Box<Net>>,
}

impl Devices {
    /// The one device of a job on one host.
    pub fn local(shm: ShmDevice, me: u32, size: u32, order: DeviceOrder) -> Result<Self, JoinError> {
        if size > 1 && !order.contains(DeviceName::Shm) {
            return Err(JoinError::NoWay { rank: u32::from(me == 0), order: order.to_string() });
        }
        Ok(Self { shm, me, net: None })
    }

    /// The devices of a rank of a job on several hosts: to each other rank the first in `order` that can lead there.
    pub fn across(mut shm: ShmDevice, across: Across, order: DeviceOrder) -> Result<Self, JoinError> {
        let Across { map, rank: me, listener, datagrams, lane, faults, encrypts } = across;
        if encrypts && kernel::true_random().is_none() {
            // Keys of links and connections are made from numbers that must never come again.
            return Err(JoinError::NoRandomNumbers);
        }
        let sends_by_lane = order.contains(DeviceName::Xdp);
        let my_host = map.ranks[me as usize].host;
        let way = |rank: &weft_wire::job_map::Rank| {
            order.names().find_map(|name| match name {
                DeviceName::Shm => (rank.host == my_host).then_some(Way::Shm(rank.member)),
                // The same datagrams, by the lane where it leads and otherwise by the socket.
                DeviceName::Xdp => (datagrams.is_some() && lane.is_some()).then_some(Way::Udp),
                DeviceName::Udp => datagrams.is_some().then_some(Way::Udp),
                DeviceName::Tcp => Some(Way::Tcp),
            })
        };
        let no_way = |rank: usize| JoinError::NoWay { rank: rank as u32, order: order.to_string() };
        let ways: Vec<Way> = (map.ranks.iter().enumerate())
            .map(|(number, rank)| match number as u32 == me {
                true => Ok(Way::Shm(rank.member)),
                false => way(rank).ok_or_else(|| no_way(number)),
            })
            .collect::<Result<_, _>>()?;
        let ranks = map.ranks_on(my_host).map(|rank| rank as u32).collect();
        let hosts = map.ranks.iter().map(|rank| rank.host).collect();
        let addresses = map.hosts[my_host as usize].addresses.clone();
        let others =
            |wanted: fn(&Way) -> bool| ways.iter().enumerate().any(|(rank, way)| rank as u32 != me && wanted(way));
        let alone = !others(|way| matches!(way, Way::Shm(_)));
        let places = |port: fn(&weft_wire::job_map::Rank) -> u16| {
            map.ranks.iter().map(|rank| place(&map, rank, my_host, port(rank))).collect()
        };
        let mut tcp =
            TcpDevice::new(me, map.key, listener, places(|rank| rank.tcp_port), alone).map_err(JoinError::Network)?;
        tcp.set_encrypts(encrypts);
        shm.sleep_on_bell(tcp.hang_bell().map_err(JoinError::Network)?);
        let links = match datagrams {
            Some(socket) if order.contains(DeviceName::Udp) || sends_by_lane && lane.is_some() => {
                let has_other = order.contains(DeviceName::Tcp);
                let places = places(|rank| rank.udp_port);
                let mut links =
                    Links::new(me, &map.key, encrypts, socket, places, alone, has_other).map_err(JoinError::Network)?;
                if !others(|way| *way == Way::Tcp) {
                    tcp.stand_by();
                }
                faults.into_iter().for_each(|faults| links.set_faults(faults));
                if let Some(lane) = lane {
                    // Without xdp, too: whoever started us may keep it open, and then datagrams come by it.
                    links.set_lane(lane, sends_by_lane);
                }
                Some(links)
            }
            _ => None,
        };
        let sent = vec![Sent::default(); ways.len()];
        Ok(Self {
            shm,
            me,
            net: Some(Box::new(Net {
                ways,
                ranks,
                hosts,
                addresses,
                order,
                encrypts,
                links,
                tcp,
                watch: Watch::default(),
                sent,
                changed: false,
                twos: Twos::default(),
                said: Posts::default(),
                near_passes: 0,
            })),
        })
    }

    pub fn segment(&self) -> &Segment {
        self.shm.segment()
    }

    /// The member of the segment that is `rank`, if shared memory leads there.
    #[inline]
    pub fn member_of(&self, rank: u32) -> Option<u32> {
        match &self.net {
            None => Some(rank),
            Some(net) => net.member_of(rank),
        }
    }

    /// Whether the job has other devices than shared memory.
    pub fn is_across(&self) -> bool {
        self.net.is_some()
    }

    pub fn is_local(&self, rank: u32) -> bool {
        self.member_of(rank).is_some()
    }

    /// The number of a rank's host; the same in every process of the job, whatever devices it may use.
    pub fn host_of(&self, rank: u32) -> u32 {
        self.net.as_ref().map_or(0, |net| net.hosts.get(rank as usize).copied().unwrap_or(u32::MAX))
    }

    /// The member that this process is.
    pub fn my_member(&self) -> u32 {
        self.member_of(self.me).unwrap_or_default()
    }

    pub fn slots(&self) -> Slots {
        let members = |net: &Net| (0..net.ways.len() as u32).map(|rank| net.member_of(rank)).collect();
        Slots::new(self.shm.copy_slots(), self.net.as_deref().map(members))
    }

    /// # Safety
    /// As [`Device::post_short`].
    #[inline]
    pub unsafe fn post_short(&mut self, to: u32, head: Head, data: *const u8, length: usize) -> Posted {
        match &mut self.net {
            // SAFETY: the caller's promise.
            None => unsafe { self.shm.post_short(to, head, data, length) },
            // SAFETY: the caller's promise.
            Some(net) => unsafe { net.post_short(&mut self.shm, to, head, data, length) },
        }
    }

    #[inline]
    pub fn post_control(&mut self, to: u32, head: Head, control: &[u64]) -> Posted {
        match &mut self.net {
            None => self.shm.post_control(to, head, control),
            Some(net) => net.post_control(&mut self.shm, to, head, control),
        }
    }

    /// # Safety
    /// As [`Device::post_bulk`].
    #[inline]
    pub unsafe fn post_bulk(&mut self, to: u32, head: Head, control: &[u64], data: *const u8, length: usize) -> Posted {
        match &mut self.net {
            // SAFETY: the caller's promise.
            None => unsafe { self.shm.post_bulk(to, head, control, data, length) },
            // SAFETY: the caller's promise.
            Some(net) => unsafe { net.post_bulk(&mut self.shm, to, head, control, data, length) },
        }
    }

    /// As [`Self::post_short`].
    pub fn post_inline(&mut self, to: u32, head: Head, bytes: &[u8]) -> Posted {
        // SAFETY: the slice is as long.
        unsafe { self.post_short(to, head, bytes.as_ptr(), bytes.len()) }
    }

    /// As [`Self::post_bulk`], in packets that are good for a message of this length.
    pub fn post_bytes(&mut self, to: u32, head: Head, control: &[u64], bytes: &[u8]) -> Posted {
        let most = match self.net.as_deref().map(|net| (net.ways[to as usize], net)) {
            Some((Way::Udp, net)) => net.link_bytes(to, bytes.len()),
            Some((Way::Tcp, _)) => bytes.len(),
            _ => Best::default().packet(bytes.len()),
        };
        // SAFETY: the slice is as long.
        unsafe { self.post_bulk(to, head, control, bytes.as_ptr(), bytes.len().min(most)) }
    }

    /// Whether more posts may follow the next ones before anything is polled or waited for: short ones may then share what
    /// the network carries in one piece, until the next poll or [`Self::push_out`].
    #[inline]
    pub fn gather(&mut self, may_follow: bool) {
        if let Some(net) = &mut self.net {
            net.tcp.gather(may_follow);
        }
    }

    /// Lets go what waits for company.
    #[inline]
    pub fn push_out(&mut self) {
        if let Some(net) = &mut self.net {
            net.tcp.push_out();
            net.links.iter_mut().for_each(Links::push_all);
        }
    }

    /// Whether a bulk payload of `length` bytes would leave whole, as one packet.
    #[inline]
    pub fn takes_whole(&mut self, to: u32, length: usize) -> bool {
        match self.net.as_deref().map(|net| (net.ways[to as usize], net)) {
            None => self.shm.takes_whole(to, length),
            Some((Way::Shm(member), _)) => self.shm.takes_whole(member, length),
            Some((Way::Two(index), _)) => self.net.as_mut().is_some_and(|net| {
                let two = net.twos.at(index);
                two.shm.takes_whole(two.them(), length)
            }),
            Some((Way::Unmet, _)) => false,
            Some((Way::Udp, net)) => {
                let has_room = net.links.as_ref().is_some_and(|links| links.has_room(to, length));
                length <= LINK_BYTES && has_room && self.road(to, length) != Road::Both
            }
            Some((Way::Tcp, _)) => tcp::takes_whole(length),
        }
    }

    /// What leads to `to`, for a message of `length` bytes. A connection that would be better for it, and does not reach the
    /// rank yet, is asked to.
    #[inline]
    pub fn road(&mut self, to: u32, length: usize) -> Road {
        match &mut self.net {
            None => Road::Ring,
            Some(net) => net.road(to, length),
        }
    }

    /// Whether what is accepted for a rank may leave only later, while somebody calls us.
    #[inline]
    pub fn may_wait(&self, to: u32) -> bool {
        self.net.as_ref().is_some_and(|net| matches!(net.ways[to as usize], Way::Tcp | Way::Unmet))
    }

    /// Whether bytes for a rank wait for room in the kernel, or until it is known how they go.
    pub fn has_tail(&self, to: u32) -> bool {
        self.net.as_ref().is_some_and(|net| net.tcp.has_tail(to) || net.twos.holds(to))
    }

    /// Whether the connection carries long messages to `to`, as the way to everything or besides another one. Where it could
    /// and does not reach the rank yet, it is asked to.
    #[inline]
    pub fn has_long_way(&mut self, to: u32) -> bool {
        self.net.as_mut().is_some_and(|net| net.has_long_way(to))
    }

    /// Most bytes of a packet by that device that is not part of a stream.
    pub const LONG_PACKET_BYTES: usize = weft_wire::tcp::LARGEST_PACKET;

    /// As [`Self::post_bulk`], by that device.
    ///
    /// # Safety
    /// As [`Device::post_bulk`].
    pub unsafe fn post_long(&mut self, to: u32, head: Head, control: &[u64], data: *const u8, length: usize) -> Posted {
        match &mut self.net {
            // SAFETY: the caller's promise.
            Some(net) => unsafe { net.tcp.post_bulk(to, head, control, data, length) },
            None => Posted::Full,
        }
    }

    /// Begins a message of `length` bytes, not 0, by that device without asking, with as many of them as one packet takes.
    /// It is matched where it was posted, among those of both devices. Its receiver may owe a word about it, of this
    /// number.
    ///
    /// # Safety
    /// As [`Device::post_bulk`].
    pub unsafe fn post_long_eager(
        &mut self,
        to: u32,
        head: Head,
        data: *const u8,
        length: usize,
        word: Option<u64>,
    ) -> Posted {
        let Some(net) = &mut self.net else { return Posted::Full };
        let sent = &mut net.sent[to as usize];
        let control = [length as u64, sent.by_datagrams, word.unwrap_or(0)];
        let control = if word.is_some() { &control[..] } else { &control[..2] };
        // SAFETY: the caller's promise.
        let posted = unsafe { net.tcp.post_bulk(to, head, control, data, length) };
        sent.over_connection += u64::from(posted != Posted::Full);
        posted
    }

    /// A message to `to` is complete: what still waits for company leaves.
    #[inline]
    pub fn push(&mut self, to: u32) {
        if let Some(net) = &mut self.net {
            net.links_to(to).into_iter().for_each(|links| links.push(to));
        }
    }

    /// A message to `to` is complete, and more may follow at once.
    #[inline]
    pub fn push_soon(&mut self, to: u32) {
        if let Some(net) = &mut self.net {
            net.links_to(to).into_iter().for_each(|links| links.push_soon(to));
        }
    }

    /// What still waits for company leaves.
    #[inline]
    pub fn push_all(&mut self) {
        if let Some(net) = &mut self.net {
            net.links.iter_mut().for_each(Links::push_all);
        }
    }

    #[inline]
    pub fn poll(&mut self, upper: &mut impl Upper) -> bool {
        match &mut self.net {
            None => self.shm.poll(upper),
            Some(net) => net.poll(&mut self.shm, upper),
        }
    }

    /// Why nothing can be sent to a rank any more, told once.
    pub fn take_refusal(&mut self) -> Option<NoMemory> {
        let Some(refusal) = self.shm.take_refusal() else {
            return self.net.as_mut().and_then(|net| net.twos.take_refusal());
        };
        let peer = self.net.as_ref().map_or(refusal.peer, |net| net.ranks[refusal.peer as usize]);
        Some(NoMemory { peer, ..refusal })
    }

    /// Whether a rank takes nothing any more.
    pub fn has_ended(&self, rank: u32) -> bool {
        match self.net.as_deref().map(|net| (net.ways[rank as usize], net)) {
            None => self.segment().has_ended(rank),
            Some((Way::Shm(member), _)) => self.segment().has_ended(member),
            Some((Way::Udp, net)) => net.links.as_ref().is_some_and(|links| links.has_ended(rank)),
            Some((Way::Two(index), net)) => net.twos.has_left(index),
            Some((Way::Tcp | Way::Unmet, net)) => net.tcp.has_ended(rank),
        }
    }

    /// Wakes a rank with which we share memory.
    #[inline]
    pub fn wake(&mut self, rank: u32) {
        if let Some(member) = self.member_of(rank) {
            self.shm.wake(member);
        }
    }

    #[inline]
    pub fn order_before_look(&mut self) {
        self.shm.order_before_look();
    }

    /// Whether something was posted that waits until it is known how it goes there.
    pub fn has_held(&self) -> bool {
        self.net.as_ref().is_some_and(|net| net.twos.has_held(|rank| net.tcp.has_ended(rank)))
    }

    /// Takes leave of everybody; nothing is posted after it.
    pub fn say_farewell(&mut self) {
        if let Some(net) = &mut self.net {
            net.tcp.say_farewell();
            net.links.iter_mut().for_each(Links::say_farewell);
        }
    }

    /// Whether something that was posted has not left this process.
    pub fn has_output(&self) -> bool {
        let has = |net: &Net| net.tcp.has_output() || net.links.as_ref().is_some_and(Links::has_output);
        self.net.as_deref().is_some_and(has)
    }
}

/// Where other ranks reach `rank`: on its own host also where no address of that leads to itself.
fn place(map: &JobMap, rank: &weft_wire::job_map::Rank, my_host: u32, port: u16) -> Place {
    let host = &map.hosts[rank.host as usize];
    let near = (rank.host == my_host).then_some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let addresses = near.into_iter().chain(host.addresses.iter().copied());
    Place { host: host.name.clone(), addresses: addresses.map(|ip| SocketAddr::new(ip, port)).collect() }
}

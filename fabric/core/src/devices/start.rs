//! The devices that an endpoint starts with.

use super::Devices;
use super::net::Net;
use super::table::{DeviceKind, RankWay};
use crate::join::JoinError;
use crate::links::Links;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use weft_device::kernel;
use weft_device::shm::ShmDevice;
use weft_device::tcp::{PeerPlace, TcpDevice};
use weft_device::udp::Faults;
use weft_device::xdp::Lane;
use weft_wire::job_map::{JobMap, MappedRank};
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

impl Devices {
    /// The one device of a job on one host.
    pub fn local(shm: ShmDevice, me: u32, size: u32, order: DeviceOrder) -> Result<Self, JoinError> {
        if size > 1 && !order.contains(DeviceName::Shm) {
            return Err(JoinError::NoWay { rank: u32::from(me == 0), order: order.to_string() });
        }
        Ok(Self { shm, me, net: None, bell: None })
    }

    /// The devices of a rank of a job on several hosts: to each other rank the first in `order` that can lead there.
    pub fn across(mut shm: ShmDevice, across: Across, order: DeviceOrder) -> Result<Self, JoinError> {
        if across.encrypts && kernel::true_random().is_none() {
            // Keys of links and connections are made from numbers that must never come again.
            return Err(JoinError::NoRandomNumbers);
        }
        let ways = across.ways(order)?;
        let Across { map, rank: me, listener, datagrams, lane, faults, encrypts } = across;
        let my_host = map.ranks[me as usize].host;
        let alone = !leads_to_others(&ways, me, DeviceKind::Shm);
        let by_tcp = leads_to_others(&ways, me, DeviceKind::Tcp);
        let places = |port: fn(&MappedRank) -> u16| {
            map.ranks.iter().map(|rank| place(&map, rank, my_host, port(rank))).collect()
        };
        let mut tcp =
            TcpDevice::new(me, map.key, listener, places(|rank| rank.tcp_port), alone).map_err(JoinError::Network)?;
        tcp.set_encrypts(encrypts);
        shm.sleep_on_bell(tcp.hang_bell().map_err(JoinError::Network)?);
        let sends_by_lane = order.contains(DeviceName::Xdp);
        let wants_links = order.contains(DeviceName::Udp) || sends_by_lane && lane.is_some();
        let mut net = Net::new(ways, tcp, order, encrypts);
        if let Some(socket) = datagrams.filter(|_| wants_links) {
            let has_other = order.contains(DeviceName::Tcp);
            let places = places(|rank| rank.udp_port);
            let mut links =
                Links::new(me, &map.key, encrypts, socket, places, alone, has_other).map_err(JoinError::Network)?;
            if !by_tcp {
                net.tcp.stand_by();
            }
            faults.into_iter().for_each(|faults| links.set_faults(faults));
            if let Some(lane) = lane {
                // Without xdp, too: whoever started us may keep it open, and then datagrams come by it.
                links.set_lane(lane, sends_by_lane);
            }
            net.links = Some(links);
        }
        net.ranks = map.ranks_on(my_host).map(|rank| rank as u32).collect();
        net.hosts = map.ranks.iter().map(|rank| rank.host).collect();
        net.host_names = map.hosts.iter().map(|host| host.name.clone()).collect();
        net.addresses.clone_from(&map.hosts[my_host as usize].addresses);
        Ok(Self { shm, me, net: Some(Box::new(net)), bell: None })
    }
}

impl Across {
    /// The way to each rank.
    fn ways(&self, order: DeviceOrder) -> Result<Vec<RankWay>, JoinError> {
        let (has_datagrams, has_lane) = (self.datagrams.is_some(), self.lane.is_some());
        let my_host = self.map.ranks[self.rank as usize].host;
        let which = |rank: &MappedRank| {
            order.names().find_map(|name| match name {
                DeviceName::Shm => (rank.host == my_host).then_some(DeviceKind::Shm),
                // The same datagrams, by the lane where it leads and otherwise by the socket.
                DeviceName::Xdp => (has_datagrams && has_lane).then_some(DeviceKind::Udp),
                DeviceName::Udp => has_datagrams.then_some(DeviceKind::Udp),
                DeviceName::Tcp => Some(DeviceKind::Tcp),
            })
        };
        let way = |(number, rank): (u32, &MappedRank)| {
            let which = if number == self.rank { Some(DeviceKind::Shm) } else { which(rank) };
            let which = which.ok_or_else(|| JoinError::NoWay { rank: number, order: order.to_string() })?;
            Ok(RankWay { which, number: if which == DeviceKind::Shm { rank.member } else { number } })
        };
        (0..).zip(&self.map.ranks).map(way).collect()
    }
}

/// Whether a device leads to anybody but ourselves.
fn leads_to_others(ways: &[RankWay], me: u32, which: DeviceKind) -> bool {
    (0..).zip(ways).any(|(rank, way)| rank != me && way.which == which)
}

/// Where other ranks reach `rank`: on its own host also where no address of that leads to itself.
fn place(map: &JobMap, rank: &MappedRank, my_host: u32, port: u16) -> PeerPlace {
    let host = &map.hosts[rank.host as usize];
    let near = (rank.host == my_host).then_some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let addresses = near.into_iter().chain(host.addresses.iter().copied());
    PeerPlace { host: host.name.clone(), addresses: addresses.map(|ip| SocketAddr::new(ip, port)).collect() }
}

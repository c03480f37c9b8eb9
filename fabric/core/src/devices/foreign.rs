//! Ways to processes of other jobs: over TCP, wherever they are, and on this host through shared
//! memory ([`super::twos`]).
//!
//! Such a process is called at once over TCP: the end of that connection is how its loss is known. Where a job lies on
//! one host, the first card turns its devices into those of a job with a network.

use super::Devices;
use super::net::Net;
use super::table::{DeviceKind, RankWay};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use weft_device::shm::stream::bell;
use weft_device::tcp::{PeerIdentity, PeerPlace, TcpDevice};
use weft_wire::settings::{DeviceName, DeviceOrder};
use weft_wire::tcp::Key;

/// Where processes of other jobs reach this one.
pub(crate) struct ForeignOpening {
    pub me: PeerIdentity,
    pub key: Key,
    pub order: DeviceOrder,
    pub encrypts: bool,
}

impl Devices {
    /// Opens this process to those of other jobs; the addresses where they reach it. To be called once.
    ///
    /// A job on one host listens on this host alone.
    pub fn open_to_others(&mut self, size: u32, opening: ForeignOpening) -> io::Result<Vec<SocketAddr>> {
        let ForeignOpening { me, key, order, encrypts } = opening;
        let allowed = order.contains(DeviceName::Shm);
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        if let Some(net) = &mut self.net {
            net.tcp.open_to_others(me, key);
            net.twos.open(me, size, self.shm.bell(), allowed);
            let port = net.tcp.port()?;
            let addresses = std::iter::once(loopback).chain(net.addresses.iter().copied());
            return Ok(addresses.map(|ip| SocketAddr::new(ip, port)).collect());
        }
        let listener = TcpListener::bind((loopback, 0))?;
        let at = listener.local_addr()?;
        let places = vec![PeerPlace::default(); size as usize];
        // Nobody knows the key of this job, and nobody needs to: its processes share memory with us.
        let half = weft_device::kernel::true_random;
        let (Some(low), Some(high)) = (half(), half()) else {
            return Err(io::Error::other("the system gives no random numbers"));
        };
        let unknown = (u128::from(low) | u128::from(high) << 64).to_le_bytes();
        let mut tcp = TcpDevice::new(self.me, unknown, listener.into(), places, false)?;
        tcp.set_encrypts(encrypts);
        tcp.stand_by();
        tcp.open_to_others(me, key);
        let bell = tcp.hang_bell()?;
        let ways = (0..size).map(|number| RankWay { which: DeviceKind::Shm, number }).collect();
        let mut net = Net::new(ways, tcp, order, encrypts);
        net.twos.open(me, size, bell, allowed);
        net.changed = true;
        self.net = Some(Box::new(net));
        let doorbell = self.doorbell();
        self.shm.sleep_on_bell(bell);
        // Another thread may sleep there already, and nothing of the network would wake it.
        doorbell.ring();
        self.bell.take().into_iter().for_each(|old| bell::ring(old.number()));
        Ok(vec![at])
    }

    /// Opens this process, which is open to others of its host, to those of other hosts; the addresses where all of
    /// them reach it. What was told before stays good.
    pub fn open_widely(&mut self) -> io::Result<Vec<SocketAddr>> {
        let all = weft_device::xdp::interfaces()?.into_iter().flat_map(|interface| interface.addresses);
        let addresses: Vec<IpAddr> = all.filter(|ip| !ip.is_loopback()).collect();
        let net = self.net.as_mut().filter(|_| !addresses.is_empty());
        let net = net.ok_or_else(|| io::Error::other("this host has no address that others reach"))?;
        let port = net.tcp.open_widely()?;
        net.addresses.clone_from(&addresses);
        let addresses = std::iter::once(IpAddr::V4(Ipv4Addr::LOCALHOST)).chain(addresses);
        Ok(addresses.map(|ip| SocketAddr::new(ip, port)).collect())
    }

    /// A process of another job becomes a peer: the next one after all that there are.
    pub fn adopt(&mut self, them: PeerIdentity, key: &Key, place: PeerPlace) {
        let Some(net) = &mut self.net else { return };
        let near = may_be_near(&net.addresses, &place);
        let which = if net.twos.add(them, near) { DeviceKind::Unmet } else { DeviceKind::Tcp };
        let rank = net.ways.len() as u32;
        net.ways.push(RankWay { which, number: rank });
        net.places.add_peer();
        net.unmet.add_peer();
        net.changed = true;
        net.tcp.adopt(them, key, place);
        if which == DeviceKind::Unmet {
            net.tcp.set_lifeline(rank, true);
        }
    }
}

/// Whether a process that is reached at a place may be on this host, whose `addresses` these are: a hint, which who
/// cannot open what is offered contradicts.
fn may_be_near(addresses: &[IpAddr], place: &PeerPlace) -> bool {
    let mut theirs = place.addresses.iter().map(SocketAddr::ip).filter(|ip| !ip.is_loopback()).peekable();
    let mut mine = addresses.iter().filter(|ip| !ip.is_loopback()).peekable();
    // Who listens on the loopback interface alone is reached on its host alone.
    mine.peek().is_none() || theirs.peek().is_none() || theirs.any(|ip| addresses.contains(&ip))
}

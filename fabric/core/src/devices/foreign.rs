//! Ways to processes of other jobs: over TCP, wherever they are.

use super::net::{Net, Sent};
use super::{Devices, Way};
use crate::watch::Watch;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use weft_device::tcp::{Identity, Place, TcpDevice};
use weft_wire::settings::DeviceOrder;
use weft_wire::tcp::Key;

/// Where processes of other jobs reach this one.
pub(crate) struct Opening {
    pub me: Identity,
    pub key: Key,
    pub order: DeviceOrder,
    pub encrypts: bool,
}

impl Devices {
    /// Opens this process to those of other jobs; the addresses where they reach it. To be called once.
    ///
    /// A job on one host listens on this host alone.
    pub fn open_to_others(&mut self, size: u32, opening: Opening) -> io::Result<Vec<SocketAddr>> {
        let Opening { me, key, order, encrypts } = opening;
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        if let Some(net) = &mut self.net {
            net.tcp.open_to_others(me, key);
            let port = net.tcp.port()?;
            let addresses = std::iter::once(loopback).chain(net.addresses.iter().copied());
            return Ok(addresses.map(|ip| SocketAddr::new(ip, port)).collect());
        }
        let listener = TcpListener::bind((loopback, 0))?;
        let at = listener.local_addr()?;
        let places = vec![Place::default(); size as usize];
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
        self.net = Some(Box::new(Net {
            ways: (0..size).map(Way::Shm).collect(),
            ranks: (0..size).collect(),
            hosts: vec![0; size as usize],
            addresses: Vec::new(),
            order,
            encrypts,
            links: None,
            tcp,
            watch: Watch::default(),
            sent: vec![Sent::default(); size as usize],
            changed: true,
        }));
        let doorbell = self.doorbell();
        self.shm.sleep_on_bell(bell);
        // Another thread may sleep there already, and nothing of the network would wake it.
        doorbell.ring();
        Ok(vec![at])
    }

    /// A process of another job becomes a peer: the next one after all that there are.
    pub fn adopt(&mut self, them: Identity, key: &Key, place: Place) {
        let Some(net) = &mut self.net else { return };
        net.ways.push(Way::Tcp);
        net.sent.push(Sent::default());
        net.changed = true;
        net.tcp.adopt(them, key, place);
    }
}

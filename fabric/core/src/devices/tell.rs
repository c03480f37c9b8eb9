//! What tools see of the devices.

use super::Devices;
use super::table::DeviceKind;
use crate::status::Counters;
use weft_wire::settings::DeviceName;

impl Devices {
    /// Which devices lead to whom, for people.
    pub fn ways(&self) -> String {
        let Some(net) = &self.net else {
            return "shm to all ranks, which are of one host".to_owned();
        };
        let others = net.ways.iter().enumerate().filter(|(rank, _)| *rank as u32 != self.me);
        let which: Vec<DeviceKind> = others.map(|(_, way)| way.which).collect();
        let by = |wanted: DeviceKind| which.iter().filter(|which| **which == wanted).count();
        let near = which.iter().filter(|which| which.capabilities().shares_memory).count();
        let (udp, tcp, unmet) = (by(DeviceKind::Udp), by(DeviceKind::Tcp), by(DeviceKind::Unmet));
        let long = if net.order.contains(DeviceName::Tcp) { " (long messages by tcp)" } else { "" };
        let by_udp = match &net.links {
            Some(links) if links.has_lane() => format!("xdp (with udp) to {udp}{long}, "),
            Some(_) => format!("udp to {udp}{long}, "),
            None => String::new(),
        };
        let encrypted = if net.encrypts { ", both encrypted" } else { "" };
        let unmet = if unmet > 0 { format!(", {unmet} of other jobs not met yet") } else { String::new() };
        format!("shm to {near} of this host, {by_udp}tcp to {tcp}{encrypted}{unmet}; WEFT_DEVICE is {}", net.order)
    }

    /// The ways, if they are others than when this was last asked.
    pub fn new_ways(&mut self) -> Option<String> {
        let changed = self.net.as_mut().is_some_and(|net| std::mem::take(&mut net.changed));
        changed.then(|| self.ways())
    }

    /// Brings the devices' counters up to date.
    pub fn count(&self, counters: &mut Counters) {
        counters.wakeups_sent = self.shm.wakeups;
        (counters.shm_packets, counters.shm_bytes) = self.shm.posted();
        if let Some(net) = &self.net {
            let with_others = net.twos.posts();
            counters.wakeups_sent += with_others.wakeups;
            counters.shm_packets += with_others.packets;
            counters.shm_bytes += with_others.bytes;
            let counted = net.tcp.counters();
            counters.tcp_packets = counted.packets - net.said.packets;
            counters.tcp_bytes = counted.bytes - net.said.bytes;
            counters.strangers = counted.strangers;
            if let Some(links) = &net.links {
                let counted = links.counters();
                (counters.udp_packets, counters.udp_bytes) = (counted.packets, counted.bytes);
                (counters.udp_datagrams, counters.udp_lost) = (counted.datagrams, counted.lost);
                counters.strangers += counted.strangers;
                counters.xdp_datagrams = links.lane_datagrams();
            }
        }
    }
}

//! What a device more needs: one of tests carries messages of every length, and nobody above knows of it.

use super::Devices;
use super::net::Net;
use super::table::{DeviceKind, RankWay};
use crate::api::{Envelope, Peer, RequestId, Selector, SendMode};
use crate::limits::Limits;
use crate::port::Port;
use crate::raw;
use crate::status::{Counters, PageCounters, StatusMemory};
use crate::switch::Switch;
use std::net::TcpListener;
use std::time::{Duration, Instant};
use weft_device::loopback::Loopback;
use weft_device::shm::{Segment, ShmDevice};
use weft_device::tcp::{PeerPlace, TcpDevice};
use weft_wire::settings::Settings;

/// Longer than any scheduling.
const LOST: Duration = Duration::from_secs(60);

const ENVELOPE: Envelope = Envelope { context: 5, tag: 1, source: 0 };

/// A rank of two on hosts of their own, which only the simulated device joins.
fn rank(me: u32, device: Loopback) -> (Devices, Switch) {
    let segment = Segment::create(1).expect("memory");
    let shm = ShmDevice::join(segment.clone(), 0).expect("a member");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let tcp = TcpDevice::new(me, [0; 16], listener.into(), vec![PeerPlace::default(); 2], false).expect("a device");
    let ways = [0, 1].map(|rank| match rank == me {
        true => RankWay { which: DeviceKind::Shm, number: 0 },
        false => RankWay { which: DeviceKind::Simulated, number: rank },
    });
    let mut net = Net::new(ways.to_vec(), tcp, Settings::default().device, false);
    net.ranks = vec![me];
    net.simulated = Some(device);
    let devices = Devices { shm, me, net: Some(Box::new(net)), bell: None };
    let (slots, counters) = (devices.slots(), PageCounters::new(StatusMemory::new(&segment, 0, true)));
    (devices, Switch::new(me, 2, Port::new(me, 2, Limits::default(), slots, counters)))
}

/// Turns until all requests are complete.
fn finish(net: &mut [(Devices, Switch)], requests: &[(usize, RequestId)]) {
    let start = Instant::now();
    while requests.iter().any(|(me, request)| !net[*me].1.port.requests.is_complete(*request)) {
        for (devices, switch) in net.iter_mut() {
            devices.poll(switch);
            switch.pump(devices);
        }
        assert!(start.elapsed() < LOST, "a message is lost");
    }
    for &(me, request) in requests {
        assert_eq!(net[me].1.port.requests.take_outcome(request).expect("complete").fault, None);
    }
}

#[test]
fn a_device_that_is_added_carries_everything_and_nobody_above_knows() {
    let mut net: Vec<_> = Loopback::network(2).into_iter().zip(0..).map(|(device, me)| rank(me, device)).collect();
    for (number, length) in [0, 8, 48, 49, 700, 4_097, 70_000, 1_000_000].into_iter().enumerate() {
        let (from, to) = (number % 2, 1 - number % 2);
        let data: Vec<u8> = (0..length).map(|at: usize| (at * 31 + (at >> 8) + number) as u8).collect();
        let mut buffer = vec![0; length];
        let selector = Selector { context: 5, peer: Some(Peer(from as u32)), tag: Some(1) };
        // SAFETY: data and buffer outlive both requests, which end here.
        unsafe {
            let receive = net[to].1.port.post_receive(selector, buffer.as_mut_ptr(), length);
            let (devices, switch) = &mut net[from];
            let peer = Peer(to as u32);
            let send = switch.port.post_send(devices, peer, ENVELOPE, data.as_ptr(), length, SendMode::Standard);
            finish(&mut net, &[(from, send), (to, receive)]);
        }
        assert!(buffer == data, "{length} bytes");
    }
    let (data, mut buffer) = ([7u8; 1000], [0; 1000]);
    // SAFETY: as above.
    unsafe {
        let Switch { port, others, .. } = &mut net[1].1;
        let receive = others.raw.post_receive(Peer(0), buffer.as_mut_ptr(), buffer.len(), &mut port.requests);
        assert_eq!(raw::try_send(&mut net[0].0, Peer(1), data.as_ptr(), data.len()), data.len());
        finish(&mut net, &[(1, receive)]);
    }
    assert_eq!(buffer, data);
    for (devices, switch) in &mut net {
        let port = &mut switch.port;
        devices.count(&mut port.counters);
        let Counters { shm_packets, tcp_packets, udp_packets, .. } = *port.counters;
        assert_eq!((shm_packets, tcp_packets, udp_packets), (0, 0, 0));
    }
}

//! The device contract over datagrams: by sockets, by sockets over a bad network, and by lanes.

#[path = "../../../device/src/conformance/suite.rs"]
mod suite;

use super::tests::{KEY, sockets, start};
use super::*;
use suite::{DeviceNetwork, conformance};

/// The same with links that hold so little that they fill soon.
fn narrow(mut links: Links) -> Links {
    links.window_bytes = LEAST_WINDOW;
    links
}

struct Udp;
impl DeviceNetwork for Udp {
    type Endpoint = Links;
    fn of(members: u32) -> Vec<Links> {
        let (sockets, places) = sockets(members);
        (0..members).map(|me| narrow(start(me, &sockets, &places))).collect()
    }
}

struct EncryptedUdp;
impl DeviceNetwork for EncryptedUdp {
    type Endpoint = Links;
    fn of(members: u32) -> Vec<Links> {
        let (sockets, places) = sockets(members);
        let start = |(socket, me): (std::net::UdpSocket, u32)| {
            narrow(Links::new(me, &KEY, true, socket.into(), places.clone(), true, false).expect("a socket"))
        };
        sockets.into_iter().zip(0..).map(start).collect()
    }
}

struct BadNetwork;
impl DeviceNetwork for BadNetwork {
    type Endpoint = Links;
    fn of(members: u32) -> Vec<Links> {
        let mut net = Udp::of(members);
        for (links, seed) in net.iter_mut().zip(1..) {
            links.set_faults(Faults::new(seed, 20, 20, 10, 20));
        }
        net
    }
}

conformance! {
    udp: super::Udp,
    encrypted_udp: super::EncryptedUdp,
    bad_network: super::BadNetwork,
}

/// Between two network namespaces. Needs root.
#[cfg(feature = "hosts")]
#[allow(dead_code, reason = "other tests use more of it")]
#[path = "../../../device/tests/xdp/cable.rs"]
mod cable;

#[cfg(feature = "hosts")]
mod lanes {
    use super::cable::{Cable, lane, port, v4};
    use super::*;
    use std::sync::Mutex;
    use weft_device::xdp::Lanes;
    use weft_device::{Device, Posted};
    use weft_wire::cell::{Head, Kind};

    /// Ranks by turns on two hosts.
    struct ByLanes;

    /// Filters and hosts are there until the tests end.
    static KEPT: Mutex<Vec<(Cable, [Lanes; 2])>> = Mutex::new(Vec::new());

    impl DeviceNetwork for ByLanes {
        type Endpoint = Links;
        fn of(members: u32) -> Vec<Links> {
            let cable = Cable::new();
            let host = |me: u32| (me % 2) as u8 + 1;
            let sockets: Vec<_> = (0..members).map(|me| cable.socket(host(me))).collect();
            let place = |me: u32| PeerPlace {
                host: format!("host{}", host(me)),
                // As the kernel tells it.
                addresses: vec![SocketAddr::new(v4(host(me), 0).ip().to_canonical(), port(&sockets[me as usize]))],
            };
            let places: Vec<PeerPlace> = (0..members).map(place).collect();
            let mut lanes = [1, 2].map(|at| {
                let there: Vec<_> = (0..members).filter(|me| host(*me) == at).map(|me| &sockets[me as usize]).collect();
                cable.open(at, &there)
            });
            let start = |me: u32| {
                let socket = sockets[me as usize].try_clone().expect("another");
                let mut links =
                    Links::new(me, &KEY, false, socket.into(), places.clone(), true, false).expect("a socket");
                links.set_lane(lane(&mut lanes[me as usize % 2], me / 2), true);
                narrow(links)
            };
            let net = (0..members).map(start).collect();
            KEPT.lock().expect("nobody panics").push((cable, lanes));
            net
        }
    }

    conformance! { by_lanes: super::ByLanes }

    #[test]
    fn what_the_suite_posts_goes_by_lanes() {
        let mut net = super::suite::acquainted::<ByLanes>(2);
        for links in &mut net {
            let before = links.lane_datagrams();
            let to = 1 - links.own.me.rank;
            assert_eq!(links.post_control(to, Head::control(Kind::Raw), &[7]), Posted::Sent(0));
            links.push_all();
            assert!(links.has_lane() && links.lane_datagrams() > before);
        }
    }
}

//! Traffic that is not for a lane, and peers without one.

use super::cable::{Cable, LIMIT, lane, port, v4, v6, wait_until};
use super::{Both, deliver, next, pattern, receive, send};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use weft_device::udp::UdpPort;
use weft_device::xdp::LaneRoute;
use weft_wire::settings::XdpMode;

#[test]
fn one_side_may_have_no_lane() {
    let cable = Cable::new();
    let (socket, plain) = (cable.socket(1), cable.socket(2));
    let mut lanes = cable.open(1, &[&socket]);
    let mut lane = lane(&mut lanes, 0);
    for address in [v4, v6] {
        let mut place = [0; 2048];
        for number in 1..200 {
            let bytes = pattern(number, number as usize * 7);
            plain.send_to(&bytes, address(1, port(&socket))).expect("sent");
            let (ends, payload) = next(&mut lane);
            assert_eq!(payload, bytes);
            assert!(send(&mut lane, &LaneRoute::learn(&ends), &payload) && lane.flush());
            let (length, from) = plain.recv_from(&mut place).expect("the kernel takes it");
            assert_eq!((&place[..length], from), (&bytes[..], address(1, port(&socket))));
        }
    }
}

#[test]
fn datagrams_for_other_ports_and_large_ones_reach_their_sockets() {
    [XdpMode::Auto, XdpMode::Native].into_iter().for_each(|mode| others_reach_their_sockets(Both::with(mode)));
}

fn others_reach_their_sockets(mut both: Both) {
    let other = both.cable.socket(1);
    let mut place = [0; 65536];
    for address in [v4, v6] {
        for number in 0..100 {
            // Above what a packet takes they come in fragments, which no lane takes.
            for (socket, bytes) in [(&other, 1 + number as usize), (&other, 5000), (&both.sockets[0], 5000)] {
                let bytes = pattern(number, bytes);
                both.sockets[1].send_to(&bytes, address(1, port(socket))).expect("sent");
                let length = socket.recv(&mut place).expect("it comes");
                assert!(place[..length] == bytes);
            }
        }
    }
    assert_eq!(both.lanes[0].receive(|_| panic!("nothing was for the lane")), 0);
}

/// What a socket sends in one go stays apart, also where the filter sees it before the kernel has cut it.
#[test]
fn datagrams_that_leave_together_reach_a_lane_one_by_one() {
    for mode in [XdpMode::Auto, XdpMode::Native] {
        let mut both = Both::with(mode);
        let to = v4(1, port(&both.sockets[0]));
        let mut from =
            both.cable.on(2, || UdpPort::new(UdpSocket::bind("[::]:0").expect("a socket").into()).expect("a port"));
        for (number, sizes) in [vec![100, 100, 40], vec![700, 700], vec![1400, 300]].into_iter().enumerate() {
            let datagrams: Vec<_> = sizes.iter().map(|bytes| pattern(number as u32, *bytes)).collect();
            for datagram in &datagrams {
                assert!(from.send(&to, 0, |place| {
                    place[..datagram.len()].copy_from_slice(datagram);
                    Some(datagram.len())
                }));
            }
            assert!(from.flush());
            let got = receive(&mut both.lanes[0], datagrams.len());
            assert!(got.into_iter().map(|(_, payload)| payload).eq(datagrams), "{mode:?}: {sizes:?}");
        }
    }
}

#[test]
fn connections_beside_lanes_carry_all_their_bytes() {
    [XdpMode::Auto, XdpMode::Native].into_iter().for_each(|mode| connections_carry_all(Both::with(mode)));
}

fn connections_carry_all(mut both: Both) {
    let [route, _] = both.routes(v4);
    let listener = both.cable.on(1, || TcpListener::bind("10.77.0.1:0")).expect("a listener");
    let address = listener.local_addr().expect("bound");
    let bytes = pattern(5, 4 << 20);
    let connection = both.cable.on(2, || TcpStream::connect(address)).expect("connected");
    std::thread::scope(|scope| {
        scope.spawn(|| (&connection).write_all(&bytes).and_then(|()| connection.shutdown(std::net::Shutdown::Write)));
        let reading = scope.spawn(|| {
            let mut stream = listener.accept().expect("accepted").0;
            stream.set_read_timeout(Some(LIMIT)).expect("a limit");
            let mut got = Vec::new();
            stream.read_to_end(&mut got).expect("read");
            got
        });
        let [from, to] = &mut both.lanes;
        for number in 0u32..2000 {
            // Of the one before something may come again.
            let before = pattern(number.wrapping_sub(1), 500);
            deliver(from, to, &route, &pattern(number, 500), |payload| assert!(payload == before));
        }
        assert!(reading.join().expect("no panic") == bytes);
    });
}

#[test]
fn without_a_filter_the_socket_gets_the_datagrams() {
    [XdpMode::Auto, XdpMode::Native].into_iter().for_each(|mode| the_socket_gets_the_datagrams(&Cable::with(mode)));
}

fn the_socket_gets_the_datagrams(cable: &Cable) {
    let (socket, plain) = (cable.socket(1), cable.socket(2));
    let mut lanes = cable.open(1, &[&socket]);
    let mut lane = lane(&mut lanes, 0);
    plain.send_to(b"one", v4(1, port(&socket))).expect("sent");
    let route = LaneRoute::learn(&next(&mut lane).0);
    drop(lanes);
    wait_until(|| cable.program(1).is_none());
    plain.send_to(b"two", v4(1, port(&socket))).expect("sent");
    let mut place = [0; 16];
    assert_eq!(socket.recv(&mut place).expect("it comes"), 3);
    // What we send goes by the lane as before.
    assert!(send(&mut lane, &route, b"three") && lane.flush());
    assert_eq!(plain.recv(&mut place).expect("it comes"), 5);
}

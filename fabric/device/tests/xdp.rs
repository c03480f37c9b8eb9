//! Lanes between two network namespaces. Needs root.

#[path = "xdp/cable.rs"]
mod cable;
#[path = "xdp/faults.rs"]
mod faults;
#[path = "xdp/others.rs"]
mod others;
#[path = "xdp/shared.rs"]
mod shared;
#[path = "xdp/tap.rs"]
mod tap;

use cable::{Cable, LIMIT, lane, port, v4, v6};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Instant;
use weft_device::xdp::{BATCH, Ends, Lane, LaneRoute, Lanes, Unusable};
use weft_wire::settings::XdpMode;

/// Bytes that tell where they belong.
fn pattern(number: u32, length: usize) -> Vec<u8> {
    (0..length).map(|at| (number as usize * 31 + at * 7 + (at >> 8)) as u8).collect()
}

fn send(lane: &mut Lane, route: &LaneRoute, bytes: &[u8]) -> bool {
    let sent = lane.send(route, |place| {
        place[..bytes.len()].copy_from_slice(bytes);
        bytes.len()
    });
    assert!(matches!(sent, None | Some(_)) && sent.is_none_or(|length| length == bytes.len()));
    sent.is_some()
}

/// What comes next, however long it takes.
fn next(lane: &mut Lane) -> (Ends, Vec<u8>) {
    let mut all = receive(lane, 1);
    assert_eq!(all.len(), 1, "one was waited for");
    all.remove(0)
}

/// At least so many datagrams.
fn receive(lane: &mut Lane, count: usize) -> Vec<(Ends, Vec<u8>)> {
    let mut got = Vec::new();
    let begin = Instant::now();
    while got.len() < count {
        if lane.receive(|frame| got.push((frame.ends, frame.payload.to_vec()))) == 0 {
            assert!(begin.elapsed() < LIMIT, "{} of {count} came; {:?}", got.len(), lane.statistics());
            std::thread::yield_now();
        }
        assert_eq!(lane.fault(), None);
    }
    got
}

/// A rank with a socket and a lane on each host.
struct Both {
    cable: Cable,
    sockets: [UdpSocket; 2],
    lanes: [Lane; 2],
    /// The filters are there as long as these are.
    _attached: [Lanes; 2],
}

impl Both {
    fn new() -> Self {
        Self::with(XdpMode::Auto)
    }

    fn with(mode: XdpMode) -> Self {
        Self::with_each([mode; 2])
    }

    fn with_each(modes: [XdpMode; 2]) -> Self {
        let cable = Cable::new();
        let sockets = [cable.socket(1), cable.socket(2)];
        let mut attached = [(1, 0), (2, 1)].map(|(host, at)| cable.open_in_mode(host, &[&sockets[at]], modes[at]));
        let lanes = attached.each_mut().map(|lanes| lane(lanes, 0));
        Self { cable, sockets, lanes, _attached: attached }
    }

    fn ports(&self) -> [u16; 2] {
        self.sockets.each_ref().map(port)
    }

    /// The ways from the first to the second and back, learned from datagrams that sockets have sent.
    fn routes(&mut self, address: fn(u8, u16) -> SocketAddr) -> [LaneRoute; 2] {
        let ports = self.ports();
        [(1, 0, 1), (0, 1, 2)].map(|(from, to, host)| {
            self.sockets[from].send_to(b"hello", address(host, ports[to])).expect("sent");
            let (ends, payload) = next(&mut self.lanes[to]);
            assert_eq!((&payload[..], ends.from.port()), (&b"hello"[..], ports[from]));
            LaneRoute::learn(&ends)
        })
    }
}

#[test]
fn a_virtual_cable_has_its_filter_behind_the_driver_unless_told() {
    let words = [(XdpMode::Auto, "xdpgeneric"), (XdpMode::Generic, "xdpgeneric"), (XdpMode::Native, "xdp")];
    for (mode, word) in words {
        let both = Both::with(mode);
        let said = both.cable.about(1);
        assert!(said.split_whitespace().any(|said| said == word), "{mode:?}: {said}");
        assert_eq!(
            both.lanes[0].layout().sends_by_tap,
            mode != XdpMode::Native,
            "a filter in the driver would not see it"
        );
    }
}

#[test]
fn datagrams_of_every_length_go_both_ways() {
    [XdpMode::Auto, XdpMode::Native].into_iter().for_each(|mode| every_length_goes_both_ways(&mut Both::with(mode)));
}

fn every_length_goes_both_ways(both: &mut Both) {
    for address in [v4, v6] {
        // From a host that sends by a socket; what comes is answered by the lane.
        let ports = both.ports();
        both.sockets[0].send_to(b"first", address(2, ports[1])).expect("sent");
        let (ends, payload) = next(&mut both.lanes[1]);
        assert_eq!(payload, b"first");
        let there = LaneRoute::learn(&ends);
        assert!(send(&mut both.lanes[1], &there, b"answer") && both.lanes[1].flush());
        let (ends, payload) = next(&mut both.lanes[0]);
        assert_eq!((payload.as_slice(), ends.from.port(), ends.to.port()), (&b"answer"[..], ports[1], ports[0]));
        let routes = [LaneRoute::learn(&ends), there];
        let most = both.lanes[0].largest_payload(&routes[0]);
        assert_eq!(most, 1514 - routes[0].header_bytes());
        for number in 0..2000u32 {
            let (from, to) = if number % 2 == 0 { (0, 1) } else { (1, 0) };
            let bytes = pattern(number, 1 + number as usize * 13 % most);
            assert!(send(&mut both.lanes[from], &routes[from], &bytes) && both.lanes[from].flush());
            let (ends, payload) = next(&mut both.lanes[to]);
            assert!(payload == bytes && routes[to].is_of(&ends), "datagram {number}");
        }
    }
}

#[test]
fn a_stream_uses_every_frame_many_times() {
    [XdpMode::Auto, XdpMode::Native].into_iter().for_each(|mode| a_stream_uses_every_frame(&mut Both::with(mode)));
}

fn a_stream_uses_every_frame(both: &mut Both) {
    let [route, _] = both.routes(v4);
    let [from, to] = &mut both.lanes;
    let most = from.largest_payload(&route);
    let frames = from.layout().receive_frames() + from.layout().send_frames;
    let mut expected = 0;
    let mut sent = 0;
    let begin = Instant::now();
    while expected < 4 * frames {
        let before = sent;
        while sent < before + BATCH && send(from, &route, &pattern(sent, most)) {
            sent += 1;
        }
        // Frames may be there that nobody has taken back yet, as another test was inside the lock.
        assert!(begin.elapsed() < LIMIT, "nothing is on its way, and there is no room");
        assert!(from.flush());
        for (_, payload) in receive(to, (sent - expected) as usize) {
            assert!(payload == pattern(expected, most), "datagram {expected}");
            expected += 1;
        }
    }
    let (out, arrived) = (from.counters(), to.counters());
    assert_eq!((out.sent, arrived.received, arrived.malformed), (sent.into(), u64::from(sent) + 1, 0));
    // Into a tap they are written one by one.
    let most_calls = u64::from(sent / 4);
    assert!(from.layout().sends_by_tap || out.kicks <= most_calls, "{} calls for {sent} packets", out.kicks);
    assert_eq!(to.statistics().expect("numbers"), weft_device::xdp::Statistics::default());
}

/// A tap has room at any time.
#[test]
fn a_sender_without_room_is_told_so_and_has_room_again() {
    let mut both = Both::with(XdpMode::Native);
    let [route, _] = both.routes(v4);
    let [from, to] = &mut both.lanes;
    for round in 0..3 {
        let mut sent = 0;
        while send(from, &route, &pattern(sent, 100)) {
            sent += 1;
        }
        assert_eq!(sent, from.layout().send_frames, "round {round}");
        // The cable has room for fewer at once, and may drop some.
        let mut last = None;
        let begin = Instant::now();
        while !from.flush() {
            to.receive(|frame| last = check_later(last, frame.payload));
            assert!(begin.elapsed() < LIMIT, "they do not leave");
        }
        deliver(from, to, &route, b"mark", |payload| last = check_later(last, payload));
        assert!(last.is_some());
        assert_eq!(from.send(&route, |_| 0), Some(0), "nothing was written, and nothing is sent");
        assert!(from.flush());
    }
}

/// One of the datagrams of 100 bytes, later than the last.
fn check_later(last: Option<u32>, payload: &[u8]) -> Option<u32> {
    let first = last.map_or(0, |last| last + 1);
    let found = (first..2048).find(|number| payload == pattern(*number, 100));
    assert!(found.is_some(), "not one behind {last:?}");
    found
}

/// Sends until it arrives, since a cable on which others send may drop it. What else comes is for `other`, but what was
/// sent here and came twice.
fn deliver(from: &mut Lane, to: &mut Lane, route: &LaneRoute, bytes: &[u8], mut other: impl FnMut(&[u8])) {
    let begin = Instant::now();
    let mut arrived = false;
    while !arrived {
        assert!(begin.elapsed() < LIMIT, "it never arrives");
        send(from, route, bytes);
        from.flush();
        let mut looks = 0;
        while !arrived && looks < 1000 {
            to.receive(|frame| match frame.payload == bytes {
                true => arrived = true,
                false => other(frame.payload),
            });
            looks += 1;
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_sleeper_is_woken_by_what_arrives() {
    let mut both = Both::new();
    let [route, _] = both.routes(v4);
    let [from, to] = &mut both.lanes;
    for number in 0..100 {
        assert!(to.arm(), "nothing has come");
        let mut waited = libc::pollfd { fd: to.descriptor().as_raw_fd(), events: libc::POLLIN, revents: 0 };
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(send(from, &route, &pattern(number, 64)) && from.flush()));
            // SAFETY: one entry that lives across the call.
            assert_eq!(unsafe { libc::poll(&mut waited, 1, LIMIT.as_millis() as i32) }, 1);
        });
        assert!(!to.arm(), "there is something to do");
        assert_eq!(next(to).1, pattern(number, 64));
    }
}

#[test]
fn who_comes_second_is_told_whose_program_is_there() {
    let both = Both::new();
    let interface = both.cable.interface(1);
    let socket = both.cable.socket(1);
    let Err(refused) = both.cable.on(1, || Lanes::open(&interface, &[port(&socket)], XdpMode::Auto)) else {
        panic!("two filters")
    };
    assert!(matches!(&refused, Unusable::Taken { program, .. } if program == "weft_lanes"), "{refused}");
    assert!(refused.to_string().contains("eth0"), "{refused}");
}

#[test]
fn the_loopback_interface_has_no_lanes() {
    let cable = Cable::new();
    let refused = cable.on(1, || {
        let all = weft_device::xdp::interfaces().expect("interfaces");
        let local = all.iter().find(|interface| interface.name == "lo").expect("lo");
        Lanes::open(local, &[4000], XdpMode::Auto).err()
    });
    assert!(matches!(refused, Some(Unusable::NoEthernet(name)) if name == "lo"));
}

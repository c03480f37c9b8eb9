//! Long messages between hosts: which go without asking, and where their bytes are received.

mod common;
use common::*;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};
use weft_device::tcp::{PeerPlace, TcpDevice};
use weft_device::{Device, Packet, PeerFault, Posted, Sink};
use weft_fabric::{Bounds, Endpoint, Fault, Limits, RequestId, SendMode};
use weft_wire::cell::{Head, Kind};
use weft_wire::tcp::LARGEST_STREAMED;

/// Longer than any scheduling.
const LOST: Duration = Duration::from_secs(60);
const DEVICES: [&str; 3] = ["shm,tcp", "shm,udp,tcp", "shm,udp"];
/// Longer than what always goes without asking.
const LONG: usize = 200_000;

/// One message that is waited for, or that has come when its receive is posted.
fn pass(net: &mut [Endpoint], length: usize, waits: bool, seed: usize) {
    let (data, mut buffer) = (bytes(length, seed), vec![0; length]);
    let mut requests = Vec::new();
    for step in [waits, !waits] {
        requests.push(match step {
            true => (1, receive(&mut net[1], from(0, 3), &mut buffer)),
            false => (0, send(&mut net[0], 1, 3, &data)),
        });
        let start = Instant::now();
        while !waits && requests.len() == 1 && net[1].probe(from(0, 3)).is_none() {
            turn(net);
            assert!(start.elapsed() < LOST);
        }
    }
    for (member, request) in requests {
        assert_eq!(finish(net, member, request).fault, None);
    }
    assert!(buffer == data);
    settle(net);
}

/// How many of these messages were asked for.
fn asked(net: &mut [Endpoint], count: usize, waits: bool) -> u64 {
    let before = net[0].counters().rendezvous;
    (0..count).for_each(|seed| pass(net, LONG, waits, seed));
    net[0].counters().rendezvous - before
}

#[test]
fn they_go_unasked_to_who_waits_for_them_and_are_asked_for_otherwise() {
    for devices in DEVICES {
        let mut net = net_across(&[0, 1], devices, Limits::default());
        let (has_connection, start) = (devices.contains("tcp"), Instant::now());
        // Its way is found.
        while has_connection && net[0].counters().tcp_packets == 0 {
            pass(&mut net, 60_000, true, 1);
            assert!(start.elapsed() < LOST);
        }
        // With a few more, for words that come late.
        let few = |count: u64, of: u64| if has_connection { 1..=count + 3 } else { of..=of };
        let first = asked(&mut net, 20, true);
        assert!(few(1, 20).contains(&first), "{devices}: {first} of the first 20");
        let late = asked(&mut net, 70, false);
        assert!(late >= 50, "{devices}: {late} of 70 that came too early");
        let again = asked(&mut net, 200, true);
        assert!(few(64, 200).contains(&again), "{devices}: {again} of 200 when it waits again");
        pass(&mut net, 1 << 20, true, 5);
        let before = net[0].counters().rendezvous;
        pass(&mut net, (1 << 20) + 1, true, 5);
        assert_eq!(net[0].counters().rendezvous, before + 1, "{devices}: too long");
    }
}

/// Whoever sends much to a rank that takes nothing has most of it itself.
#[test]
fn who_does_not_wait_is_not_sent_much() {
    for devices in DEVICES {
        let mut net = net_across(&[0, 1], devices, Limits::default());
        (0..20).for_each(|seed| pass(&mut net, 1 << 20, true, seed));
        let data: Vec<_> = (0..40).map(|seed| bytes(1 << 20, seed)).collect();
        let sending: Vec<_> = data.iter().map(|data| send(&mut net[0], 1, 9, data)).collect();
        settle(&mut net);
        let gone = sending.iter().filter(|request| net[0].is_complete(**request)).count();
        assert!(gone <= 2, "{devices}: {gone} of 40 MiB");
        let mut buffer = vec![0; 1 << 20];
        for expected in &data {
            let request = receive(&mut net[1], from(0, 9), &mut buffer);
            assert_eq!(finish(&mut net, 1, request).fault, None);
            assert!(buffer == *expected, "{devices}: in their order");
        }
        for request in sending {
            assert_eq!(finish(&mut net, 0, request).fault, None);
        }
    }
}

/// Of all lengths, by every way, some waited for and some not, some into buffers that are too small.
#[test]
fn they_are_matched_in_their_order_among_others() {
    const LENGTHS: [usize; 7] = [8, 3000, 60_000, 70_000, 300_000, 1 << 20, (1 << 20) + 1];
    for (devices, seed) in DEVICES.into_iter().flat_map(|devices| (1..=4u64).map(move |seed| (devices, seed))) {
        let mut state = seed;
        let mut next = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % n) as usize
        };
        let mut net = net_across(&[0, 1], devices, Limits::default());
        for _ in 0..30 {
            let lengths: Vec<_> = (0..=next(6)).map(|_| LENGTHS[next(7)]).collect();
            let data: Vec<_> = lengths.iter().map(|length| bytes(*length, next(100))).collect();
            let modes: Vec<_> =
                lengths.iter().map(|_| [SendMode::Standard, SendMode::Synchronous][next(5) / 4]).collect();
            let room: Vec<_> = lengths.iter().map(|length| length - next(4) / 3 * next(*length as u64)).collect();
            let mut buffers: Vec<_> = room.iter().map(|room| vec![0xee; room + 64]).collect();
            let (mut sending, mut receiving): (Vec<RequestId>, Vec<RequestId>) = Default::default();
            while sending.len() < data.len() || receiving.len() < data.len() {
                if sending.len() < data.len() && (next(2) == 0 || receiving.len() == data.len()) {
                    sending.push(send_as(&mut net[0], 1, 3, &data[sending.len()], modes[sending.len()]));
                } else if receiving.len() < data.len() {
                    let at = receiving.len();
                    receiving.push(receive(&mut net[1], from(0, 3), &mut buffers[at][..room[at]]));
                }
                for _ in 0..next(40) {
                    turn(&mut net);
                }
            }
            for (at, request) in receiving.into_iter().enumerate() {
                let fault = (room[at] < lengths[at]).then_some(Fault::Truncated);
                check(finish(&mut net, 1, request), 0, 3, lengths[at], fault);
                assert!(buffers[at][..room[at]] == data[at][..room[at]], "{devices}, seed {seed}");
                assert!(buffers[at][room[at]..].iter().all(|byte| *byte == 0xee), "{devices}, seed {seed}");
            }
            for request in sending {
                assert_eq!(finish(&mut net, 0, request).fault, None);
            }
        }
    }
}

#[test]
fn a_sender_that_dies_in_the_middle_is_lost_and_the_receive_with_it() {
    for devices in ["shm,tcp", "shm,udp,tcp"] {
        let mut net = net_across(&[0, 1], devices, Limits::default());
        (0..4).for_each(|seed| pass(&mut net, 1 << 20, true, seed));
        let (data, mut buffer) = (bytes(64 << 20, 1), vec![0; 64 << 20]);
        let receiving = receive(&mut net[1], from(0, 3), &mut buffer);
        send(&mut net[0], 1, 3, &data);
        let start = Instant::now();
        let before = net[0].counters().tcp_bytes;
        while net[0].counters().tcp_bytes < before + (4 << 20) {
            turn(&mut net);
            assert!(start.elapsed() < LOST);
        }
        drop(net.remove(0));
        assert_eq!(finish(&mut net, 0, receiving).fault, Some(Fault::PeerLost), "{devices}");
        assert_ne!(buffer.last(), data.last(), "{devices}: in the middle");
    }
}

struct Deaf;

impl Sink for Deaf {
    fn handle_packet(&mut self, _: Packet<'_>) -> Result<(), &'static str> {
        Ok(())
    }
    fn handle_fault(&mut self, _: PeerFault) {}
}

/// A rank that speaks the device's language, and what of it is not the protocol's.
struct Rogue {
    device: TcpDevice,
    net: Vec<Endpoint>,
}

impl Rogue {
    fn new() -> Self {
        let mut job = job_across(&[0, 1]);
        let (rogue, good) = (job.remove(0).1, job.remove(0));
        let ports = rogue.map.ranks.iter().map(|rank| SocketAddr::from((Ipv4Addr::LOCALHOST, rank.tcp_port)));
        let places = ports.map(|port| PeerPlace { host: "host".into(), addresses: vec![port] }).collect();
        let device = TcpDevice::new(0, rogue.map.key, rogue.listener, places, true);
        let good = join_across(good, order("shm,tcp"), Limits::default(), Bounds::default());
        Self { device: device.expect("a device"), net: vec![good] }
    }

    /// Says it, unless it has been given up before.
    fn say(&mut self, kind: Kind, words: &[u64], bulk: &[u8]) {
        let head = Head { kind, context: CONTEXT, tag: 3, source: 100 };
        let (mut sent, start) = (0, Instant::now());
        while (sent == 0 || sent < bulk.len()) && start.elapsed() < LOST {
            let rest = &bulk[sent..];
            let (head, words) = if sent == 0 { (head, words) } else { (Head::control(Kind::More), &[][..]) };
            let posted = match rest {
                [] => self.device.post_control(1, head, words),
                // SAFETY: the bytes are readable.
                _ => unsafe { self.device.post_bulk(1, head, words, rest.as_ptr(), rest.len()) },
            };
            match posted {
                Posted::Sent(_) if bulk.is_empty() => break,
                Posted::Sent(bytes) => sent += bytes,
                // It has been given up.
                Posted::Full if self.device.has_ended(1) => break,
                Posted::Full => {}
            }
            self.device.poll(&mut Deaf);
            turn(&mut self.net);
        }
    }
}

#[test]
fn bytes_that_were_not_promised_lose_their_sender_and_go_nowhere() {
    let long = bytes(3 * LARGEST_STREAMED, 1);
    // What is said of the message, and how much comes.
    for (promised, room, sent) in [
        (LONG, 2 * LONG, LONG + 1),
        (LONG, LONG, 2 * LONG),
        (LONG, LONG / 2, LARGEST_STREAMED),
        (2 * LARGEST_STREAMED, 2 * LARGEST_STREAMED, 3 * LARGEST_STREAMED),
    ] {
        let (mut rogue, mut buffer) = (Rogue::new(), vec![0xee; room + 64]);
        let first = receive(&mut rogue.net[0], from(0, 3), &mut buffer[..room]);
        let second = receive(&mut rogue.net[0], from(0, 4), &mut []);
        rogue.say(Kind::Eager, &[promised as u64, 0, 1], &long[..sent]);
        let start = Instant::now();
        while !rogue.net[0].is_complete(second) {
            rogue.device.poll(&mut Deaf);
            turn(&mut rogue.net);
            assert!(start.elapsed() < LOST, "{promised} {room} {sent}");
        }
        assert_eq!(rogue.net[0].take_outcome(second).expect("it ends").fault, Some(Fault::PeerLost));
        assert!(rogue.net[0].is_complete(first));
        let end = promised.min(room);
        assert!(buffer[end..].iter().all(|byte| *byte == 0xee), "{promised} {room} {sent}");
    }
}

#[test]
fn a_word_about_nothing_loses_its_speaker() {
    let mut rogue = Rogue::new();
    let request = receive(&mut rogue.net[0], from(0, 3), &mut []);
    rogue.say(Kind::Waited, &[1, 1], &[]);
    let start = Instant::now();
    while !rogue.net[0].is_complete(request) {
        rogue.device.poll(&mut Deaf);
        turn(&mut rogue.net);
        assert!(start.elapsed() < LOST);
    }
    assert_eq!(rogue.net[0].take_outcome(request).expect("it ends").fault, Some(Fault::PeerLost));
}

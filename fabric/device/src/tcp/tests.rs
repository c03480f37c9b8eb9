//! What the conformance suite does not ask: how connections begin and end, and who is kept out.

use super::dial::{Dial, Due};
use super::epoll::Epoll;
use super::{PeerPlace, TcpDevice};
use crate::contract::{Device, Packet, PeerFault, Posted, Sink};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weft_wire::cell::{Head, Kind};
use weft_wire::tcp::{ANSWER_BYTES, Dialling, Key, LARGEST_PACKET, LARGEST_STREAMED, USE};

const KEY: Key = *b"a key of the job";
/// Longer than any scheduling.
const LOST: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Got {
    tags: Vec<(u32, i32)>,
    bytes: usize,
    faults: Vec<PeerFault>,
}

impl Sink for Got {
    fn handle_packet(&mut self, packet: Packet<'_>) -> Result<(), &'static str> {
        self.tags.push((packet.from, packet.head.tag));
        self.bytes += packet.bulk.map_or(0, |bulk| bulk.len());
        Ok(())
    }

    fn handle_fault(&mut self, fault: PeerFault) {
        self.faults.push(fault);
    }
}

fn listeners(count: u32) -> (Vec<TcpListener>, Vec<PeerPlace>) {
    let listeners: Vec<_> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
    let place = |(rank, listener): (usize, &TcpListener)| PeerPlace {
        host: format!("host{rank}"),
        addresses: vec![listener.local_addr().expect("bound")],
    };
    let places = listeners.iter().enumerate().map(place).collect();
    (listeners, places)
}

pub fn network(members: u32) -> Vec<TcpDevice> {
    let (listeners, places) = listeners(members);
    let device = |(me, listener): (usize, TcpListener)| {
        let mut device = TcpDevice::new(me as u32, KEY, OwnedFd::from(listener), places.clone(), true);
        // Who sleeps is woken by what the test is about, and by nothing else.
        device.iter_mut().for_each(|device| device.next_check_ns = u64::MAX);
        device.expect("a device")
    };
    listeners.into_iter().enumerate().map(device).collect()
}

/// The same, where the kernel keeps so little that the device fills soon.
pub fn narrow_network(members: u32) -> Vec<TcpDevice> {
    let mut net = network(members);
    net.iter_mut().for_each(|device| device.kernel_bytes = Some(16 << 10));
    net
}

fn head(tag: i32) -> Head {
    Head { tag, ..Head::control(Kind::Raw) }
}

fn send(device: &mut TcpDevice, to: u32, tag: i32) -> Posted {
    device.post_control(to, head(tag), &[])
}

/// Polls everybody until `done`.
fn until(net: &mut [TcpDevice], got: &mut [Got], done: impl Fn(&[Got]) -> bool) {
    let start = Instant::now();
    while !done(got) {
        let moved = net.iter_mut().zip(got.iter_mut()).fold(false, |moved, (device, got)| device.poll(got) | moved);
        if !moved {
            assert!(start.elapsed() < LOST, "what was waited for does not come");
            std::thread::yield_now();
        }
    }
}

fn sinks(count: usize) -> Vec<Got> {
    (0..count).map(|_| Got::default()).collect()
}

#[test]
fn of_two_that_dial_at_the_same_time_one_connection_stays() {
    for round in 0..50 {
        let (mut net, mut got) = (network(2), sinks(2));
        // Both have posted before either polls; in every third round one of them has got further.
        send(&mut net[0], 1, 1);
        if round % 3 == 1 {
            net[0].poll(&mut got[0]);
        }
        send(&mut net[1], 0, 2);
        if round % 3 == 2 {
            net[1].poll(&mut got[1]);
        }
        until(&mut net, &mut got, |got| got[0].tags == [(1, 2)] && got[1].tags == [(0, 1)]);
        for tag in 10..13 {
            send(&mut net[0], 1, tag);
            send(&mut net[1], 0, tag);
        }
        until(&mut net, &mut got, |got| got.iter().all(|got| got.tags.len() == 4));
        let ends: Vec<_> = net.iter().map(|device| device.ends()).collect();
        assert_eq!(ends[0].len(), 1, "{ends:?}");
        assert_eq!(ends[1], [(ends[0][0].1, ends[0][0].0)], "both hold ends of the same connection");
        assert!(net.iter().all(|device| device.counters().strangers == 0 && device.dialing.is_empty()));
        assert!(got.iter().all(|got| got.faults.is_empty()));
    }
}

/// Takes bytes, which come in so many parts.
#[derive(Default)]
struct Whole {
    bytes: Vec<u8>,
    parts: usize,
}

impl Sink for Whole {
    fn handle_packet(&mut self, packet: Packet<'_>) -> Result<(), &'static str> {
        if let Some(bulk) = packet.bulk {
            let mut bytes = vec![0; bulk.len()];
            // SAFETY: as long as that.
            unsafe { bulk.copy_to(bytes.as_mut_ptr(), bytes.len()) };
            self.bytes.extend(bytes);
            self.parts += 1;
        }
        Ok(())
    }

    fn handle_fault(&mut self, fault: PeerFault) {
        panic!("{fault:?}");
    }
}

/// Sends the bytes as parts of a stream, until so many have come; how many went in each packet.
fn stream<S: Sink>(net: &mut [TcpDevice], data: &[u8], sink: &mut S, come: impl Fn(&S) -> usize) -> Vec<usize> {
    let (mut sent, mut posts, mut got, start) = (0, Vec::new(), Got::default(), Instant::now());
    while come(sink) < data.len() {
        if sent < data.len() {
            let (rest, more) = (&data[sent..], Head::control(Kind::More));
            // SAFETY: the bytes are readable.
            if let Posted::Sent(bytes) = unsafe { net[0].post_bulk(1, more, &[], rest.as_ptr(), rest.len()) } {
                sent += bytes;
                posts.push(bytes);
            }
        }
        net[0].poll(&mut got);
        net[1].poll(sink);
        assert!(start.elapsed() < LOST, "{} of {} bytes", come(sink), data.len());
    }
    posts
}

#[test]
fn parts_of_streams_are_as_long_as_the_kernel_has_room_for() {
    // With room for much of it in the kernel, and with so little that most packets leave in parts; encrypted at last.
    for (kind, mut net) in [network(2), narrow_network(2), network(2)].into_iter().enumerate() {
        net.iter_mut().for_each(|device| device.set_encrypts(kind == 2));
        let mut got = sinks(2);
        send(&mut net[0], 1, 0);
        until(&mut net, &mut got, |got| got[1].tags.len() == 1);
        // The first payload lies badly for the kernel behind its header of 24 bytes, and goes behind a gap.
        let length = if kind == 1 { 1 } else { 8 } * LARGEST_STREAMED + 77;
        let memory: Vec<u8> = (0..length + 4096 + 8).map(|at| (at * 7 + (at >> 9)) as u8).collect();
        let data = &memory[memory.as_ptr().align_offset(4096) + 8..][..length];
        let before = net[0].counters();
        let mut whole = Whole::default();
        let posts = stream(&mut net, data, &mut whole, |whole| whole.bytes.len());
        assert!(whole.bytes == data, "the bytes in their order");
        let (longest, all) = (posts.iter().copied().max().unwrap_or_default(), &posts[..posts.len() - 1]);
        assert!(all.iter().all(|bytes| (LARGEST_PACKET..=LARGEST_STREAMED).contains(bytes)), "{posts:?}");
        let expected = [
            4 * LARGEST_PACKET..=LARGEST_STREAMED,
            LARGEST_PACKET..=2 * LARGEST_PACKET,
            LARGEST_PACKET..=LARGEST_PACKET,
        ];
        assert!(expected[kind].contains(&longest), "{posts:?}");
        assert!(kind == 2 || whole.parts > posts.len(), "{} parts of {} packets", whole.parts, posts.len());
        let counted = net[0].counters();
        assert_eq!((counted.packets - before.packets) as usize, posts.len());
        let fronts = (counted.bytes - before.bytes) as usize - data.len();
        assert!(fronts >= posts.len() * 24 + 32, "{fronts} bytes before payloads, one of them with a gap");
    }
}

/// What is not part of a stream comes as it was sent.
#[test]
fn long_packets_come_whole_behind_parts_of_streams() {
    let (mut net, mut got) = (network(2), Got::default());
    let data: Vec<u8> = (0..LARGEST_STREAMED).map(|at| (at * 5 + (at >> 9)) as u8).collect();
    let lengths = [5, 40_000, LARGEST_PACKET, LARGEST_PACKET, 32_768];
    for round in 0..20 {
        stream(&mut net, &data[..200_000], &mut Whole::default(), |whole| whole.bytes.len());
        let mut whole = Whole::default();
        let start = Instant::now();
        for length in lengths {
            // SAFETY: the bytes are readable.
            while unsafe { net[0].post_bulk(1, head(1), &[], data.as_ptr(), length) } == Posted::Full {
                net[0].poll(&mut got);
                net[1].poll(&mut whole);
                assert!(start.elapsed() < LOST);
            }
        }
        while whole.bytes.len() < lengths.iter().sum() {
            net[0].poll(&mut got);
            net[1].poll(&mut whole);
            assert!(start.elapsed() < LOST, "{} bytes", whole.bytes.len());
        }
        assert_eq!(whole.parts, lengths.len(), "in round {round}");
        let mut rest = &whole.bytes[..];
        for length in lengths {
            assert!(rest.split_off(..length).is_some_and(|bytes| *bytes == data[..length]));
        }
    }
}

#[test]
fn who_is_not_of_the_job_is_counted_and_keeps_nobody_waiting() {
    let (listeners, places) = listeners(2);
    let at = places[0].addresses[0];
    let mut net: Vec<_> = listeners
        .into_iter()
        .enumerate()
        .map(|(me, l)| TcpDevice::new(me as u32, KEY, OwnedFd::from(l), places.clone(), true).expect("a device"))
        .collect();
    let mut got = sinks(2);
    // Silent, one that says something else, one that leaves as ranks do too, and one with another key.
    let silent = TcpStream::connect(at).expect("connected");
    let says = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(at).expect("connected");
        stream.write_all(bytes).expect("sent");
        stream
    };
    let call = Dialling { from: 1, to: 0, nonce: [1; 16], encrypts: false };
    let mut others = vec![says(&[b'x'; 200]), says(&call.hello(b"another job key!"))];
    drop(TcpStream::connect(at).expect("connected"));
    // One that repeats what it has heard of a rank gets an answer, and can do nothing with it.
    let mut replay = says(&call.hello(&KEY));
    send(&mut net[1], 0, 7);
    until(&mut net, &mut got, |got| got[0].tags == [(1, 7)]);
    let start = Instant::now();
    while net[0].counters().strangers < 2 {
        net[0].poll(&mut got[0]);
        assert!(start.elapsed() < LOST, "{:?}", net[0].counters());
    }
    for stream in &mut others {
        assert!(matches!(stream.read(&mut [0; 8]), Ok(0) | Err(_)), "turned away without a word");
    }
    // The pair has its connection, so that what else says to be that rank is closed.
    let _ = replay.read(&mut [0; ANSWER_BYTES]);
    assert!(got.iter().all(|got| got.faults.is_empty()));
    drop(silent);
}

/// A proof of one time is none at another.
#[test]
fn who_repeats_a_whole_greeting_is_turned_away() {
    let (mut listeners, places) = listeners(2);
    let at = places[0].addresses[0];
    let listener = OwnedFd::from(listeners.remove(0));
    let mut device = TcpDevice::new(0, KEY, listener, places, true).expect("a device");
    let call = Dialling { from: 1, to: 0, nonce: [1; 16], encrypts: false };
    let mut replay = TcpStream::connect(at).expect("connected");
    replay.write_all(&call.hello(&KEY)).expect("sent");
    replay.write_all(&call.proof(&KEY, &[9; 16])).expect("sent");
    let start = Instant::now();
    while device.counters().strangers < 1 {
        device.poll(&mut Got::default());
        assert!(start.elapsed() < LOST, "{:?}", device.counters());
    }
    assert_eq!(device.ends(), []);
}

/// The lower rank holds the connection for the pair's before the higher one, which called, hears of it.
#[test]
fn who_leaves_while_it_dials_is_not_taken_for_dead() {
    let (mut net, mut got) = (network(2), sinks(2));
    net[1].reach(0);
    let proven = |device: &TcpDevice| device.peers[0].dial.as_ref().is_some_and(|dial| dial.is_proven());
    let start = Instant::now();
    while !net[0].is_linked(1) {
        net[0].poll(&mut got[0]);
        if !proven(&net[1]) {
            net[1].poll(&mut got[1]);
        }
        assert!(start.elapsed() < LOST, "no connection");
    }
    assert!(!net[1].is_linked(0));
    net[1].say_farewell();
    while net[1].has_output() {
        net[1].poll(&mut got[1]);
        assert!(start.elapsed() < LOST, "it does not end");
    }
    net.truncate(1);
    while !net[0].has_ended(1) {
        net[0].poll(&mut got[0]);
        assert!(start.elapsed() < LOST, "the end is not noticed");
    }
    assert!(got[0].faults.is_empty() && !net[0].has_lost(1), "{:?}", got[0].faults);
}

#[test]
fn who_leaves_while_nobody_answers_its_call_waits_for_nobody() {
    let (mut net, mut got) = (network(2), sinks(2));
    net[1].reach(0);
    // Taken by the kernel there, and by nobody else.
    let start = Instant::now();
    while net[1].peers[0].dial.as_ref().is_some_and(|dial| dial.is_connecting()) {
        net[1].poll(&mut got[1]);
        assert!(start.elapsed() < LOST, "no connection");
    }
    net[1].say_farewell();
    assert!(!net[1].has_output() && net[1].dialing.is_empty());
}

#[test]
fn a_peer_that_ends_without_a_farewell_is_lost_by_name() {
    let (mut net, mut got) = (network(3), sinks(3));
    for rank in [1, 2] {
        send(&mut net[0], rank, 1);
    }
    until(&mut net, &mut got, |got| got[1].tags.len() == 1 && got[2].tags.len() == 1);
    send(&mut net[1], 0, 5);
    let address = net[0].peers[1].place.addresses[0];
    drop(net.remove(1));
    let mut left = [got.remove(0), got.remove(1)];
    until(&mut net, &mut left, |got| !got[0].faults.is_empty());
    let text = left[0].faults[0].to_string();
    assert_eq!(text, format!("rank 1 on host host1 ({address}) is lost: its connection, so its process, has ended"));
    assert_eq!(left[0].tags, [(1, 5)], "what it sent before its end is not lost");
    assert_eq!(send(&mut net[0], 1, 6), Posted::Full);
    assert!(net[0].has_ended(1) && !net[0].has_ended(2));
    send(&mut net[0], 2, 9);
    until(&mut net, &mut left, |got| got[1].tags.last() == Some(&(0, 9)));
}

#[test]
fn a_farewell_comes_after_everything_and_is_no_fault() {
    let (mut net, mut got) = (network(2), sinks(2));
    let data = vec![7; 60_000];
    let mut sent = 0;
    // SAFETY: the data is readable.
    while let Posted::Sent(bytes) = unsafe { net[0].post_bulk(1, head(1), &[], data.as_ptr(), data.len()) } {
        sent += bytes;
    }
    assert!(sent > 0, "what has no connection yet is kept");
    net[0].say_farewell();
    until(&mut net, &mut got, |got| got[1].bytes == sent);
    let start = Instant::now();
    while !net[1].has_ended(0) {
        net[0].poll(&mut got[0]);
        net[1].poll(&mut got[1]);
        assert!(start.elapsed() < LOST, "no farewell");
    }
    assert!(!net[0].has_output() && got.iter().all(|got| got.faults.is_empty()));
    assert_eq!(send(&mut net[1], 0, 2), Posted::Full);
    until(&mut net, &mut got, |got| !got[1].faults.is_empty());
    assert!(got[1].faults[0].to_string().contains("rank 0 on host host0"), "{:?}", got[1].faults);
}

/// Another rank's call was on its way.
#[test]
fn who_is_connected_to_after_its_farewell_says_it_again() {
    let (mut net, mut got) = (network(2), sinks(2));
    net[0].say_farewell();
    net[1].reach(0);
    let start = Instant::now();
    while !net[1].has_ended(0) {
        net.iter_mut().zip(&mut got).for_each(|(device, got)| _ = device.poll(got));
        assert!(start.elapsed() < LOST, "no farewell on a connection that came later");
    }
    assert!(got.iter().all(|got| got.faults.is_empty()));
}

/// While a rank that leaves still waits for others, those that have heard it close.
#[test]
fn who_leaves_is_not_told_that_others_have_closed() {
    let (mut net, mut got) = (network(2), sinks(2));
    send(&mut net[0], 1, 1);
    until(&mut net, &mut got, |got| got[1].tags.len() == 1);
    net[0].say_farewell();
    let start = Instant::now();
    while !(net[1].has_ended(0) && net[0].has_ended(1)) {
        net[0].poll(&mut got[0]);
        net[1].poll(&mut got[1]);
        assert!(start.elapsed() < LOST, "nobody closes");
    }
    (0..3).for_each(|_| {
        net[0].look_soon();
        net[0].poll(&mut got[0]);
    });
    assert!(got.iter().all(|got| got.faults.is_empty()), "{:?}", got[0].faults);
}

#[test]
fn a_rank_that_breaks_the_protocol_is_lost_and_the_others_do_not_notice() {
    let (mut net, mut got) = (network(3), sinks(3));
    send(&mut net[2], 1, 1);
    until(&mut net, &mut got, |got| got[1].tags.len() == 1);
    // Rank 0 knows the key, and is a rogue.
    let mut rogue = TcpStream::connect(net[1].peers[1].place.addresses[0]).expect("connected");
    let call = Dialling { from: 0, to: 1, nonce: [3; 16], encrypts: false };
    rogue.write_all(&call.hello(&KEY)).expect("sent");
    rogue.set_nonblocking(true).expect("set");
    let mut answer = [0; ANSWER_BYTES];
    let start = Instant::now();
    while rogue.read_exact(&mut answer).is_err() {
        net[1].poll(&mut got[1]);
        assert!(start.elapsed() < LOST, "no answer");
    }
    let nonce = call.from_answer(&answer, &KEY).expect("a rank of the job");
    rogue.write_all(&call.proof(&KEY, &nonce)).expect("sent");
    rogue.write_all(&USE).expect("sent");
    rogue.write_all(&[b'x'; 100]).expect("sent");
    let mut left = net.split_off(1);
    let mut left_got = got.split_off(1);
    until(&mut left, &mut left_got, |got| !got[0].faults.is_empty());
    let text = left_got[0].faults[0].to_string();
    assert!(text.contains("rank 0 on host host0") && text.contains("nonsense: bytes between two packets"), "{text}");
    send(&mut left[1], 1, 2);
    until(&mut left, &mut left_got, |got| got[0].tags.len() == 2);
    drop(rogue.shutdown(Shutdown::Both));
}

/// An address that leads to a stranger does not keep the right one from being found.
#[test]
fn the_address_that_leads_to_the_peer_is_found_among_others() {
    let refused = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (listeners, mut places) = listeners(3);
    // First a port where nobody is, then a program that takes the connection and says nothing, then another rank.
    let wrong = [refused, silent.local_addr().expect("bound"), places[2].addresses[0]];
    places[1].addresses.splice(0..0, wrong);
    let device = |(me, listener): (usize, TcpListener)| {
        TcpDevice::new(me as u32, KEY, OwnedFd::from(listener), places.clone(), true).expect("a device")
    };
    let mut net: Vec<_> = listeners.into_iter().enumerate().map(device).collect();
    let mut got = sinks(3);
    send(&mut net[0], 1, 4);
    until(&mut net, &mut got, |got| got[1].tags == [(0, 4)]);
    assert_eq!(net[0].peers[1].address, Some(places[1].addresses[3]));
    assert_eq!(net[2].counters().strangers, 0, "a rank that was led to the wrong one is no stranger");
}

/// Time is an argument, so that nobody waits.
#[test]
fn a_peer_that_no_address_leads_to_is_given_up_with_the_story_of_each() {
    let places = listeners(2).1;
    let addresses: Vec<SocketAddr> = places.iter().map(|place| place.addresses[0]).collect();
    let epoll = Arc::new(Epoll::new().expect("a set"));
    let mut dial = Dial::new(0, 1, false, &addresses, 5).elsewhere();
    let (mut now_ns, mut noticed_ns, mut steps) = (5, 0, 0);
    let story = loop {
        match dial.handle_time(now_ns, &epoll, |index| index as u64) {
            Due::Nothing => {}
            Due::Notice(_) if noticed_ns != 0 => panic!("told twice"),
            Due::Notice(_) => noticed_ns = now_ns,
            Due::Quiet(story) => panic!("nobody has taken a connection: {story}"),
            Due::Unreachable(story) => break story,
        }
        while dial.is_connecting() {
            let mut ready = Vec::new();
            epoll.wait(&mut ready, Some(LOST));
            assert!(!ready.is_empty(), "nobody listens there, which the kernel says");
            for token in ready {
                assert!(dial.handle_ready(token as usize, &KEY, now_ns, &epoll, token).is_none());
            }
        }
        steps += 1;
        assert!(steps < 1000, "time goes on");
        now_ns = dial.next_ns().max(now_ns);
    };
    for address in addresses {
        assert!(story.contains(&format!("{address}: Connection refused")), "{story}");
    }
    assert_eq!((noticed_ns, now_ns), (3_000_000_005, 12_000_000_005));
    assert!(dial.tries() > 2 * 4, "each is tried again and again: {}", dial.tries());
}

/// A rank that computes looks at its sockets after any time.
#[test]
fn who_looks_late_still_tries_the_other_address() {
    const LATE_NS: u64 = 60_000_000_000;
    let refused = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addresses = [refused, listener.local_addr().expect("bound")];
    let epoll = Arc::new(Epoll::new().expect("a set"));
    let mut dial = Dial::new(0, 1, false, &addresses, 0);
    let look = |dial: &mut Dial, now_ns: u64| {
        let due = dial.handle_time(now_ns, &epoll, |index| index as u64);
        assert!(!matches!(due, Due::Unreachable(_)), "one address was not tried yet");
        let mut ready = Vec::new();
        epoll.wait(&mut ready, Some(LOST));
        assert!(!ready.is_empty(), "the kernel answers");
        ready
            .into_iter()
            .for_each(|token| assert!(dial.handle_ready(token as usize, &KEY, now_ns, &epoll, token).is_none()));
    };
    look(&mut dial, 0);
    assert_eq!(dial.tries(), 1, "the first one was refused");
    look(&mut dial, LATE_NS);
    assert!(matches!(dial.handle_time(LATE_NS, &epoll, |index| index as u64), Due::Nothing));
}

#[test]
fn a_host_without_an_address_is_given_up_at_once() {
    let mut dial = Dial::new(0, 1, false, &[], 0);
    let due = dial.handle_time(0, &Arc::new(Epoll::new().expect("a set")), |_| 0);
    assert!(matches!(due, Due::Unreachable(story) if story == "its host has no address"));
}

mod encrypted;
mod parts;
mod trouble;

mod sleeping {
    use super::*;
    use crate::shm::stream::bell;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn poll_or_sleep(device: &mut TcpDevice, got: &mut Got, asleep: &AtomicBool) {
        device.look_soon();
        if device.poll(got) || !device.arm() {
            return;
        }
        asleep.store(true, Ordering::Release);
        let start = Instant::now();
        device.sleeper().sleep(Some(LOST));
        assert!(start.elapsed() < LOST, "a lost wake-up");
        asleep.store(false, Ordering::Release);
    }

    #[test]
    fn packets_and_room_wake_who_sleeps() {
        const ROUNDS: usize = 300;
        static ASLEEP: [AtomicBool; 2] = [AtomicBool::new(false), AtomicBool::new(false)];
        let mut net = network(2);
        let (mut receiver, mut sender) = (net.pop().expect("two"), net.pop().expect("two"));
        let data = vec![1; 60_000];
        let total = ROUNDS * data.len();
        let sending = std::thread::spawn(move || {
            let mut got = Got::default();
            for round in 0..ROUNDS {
                // Now and then when the receiver surely sleeps.
                while round % 50 == 1 && !ASLEEP[1].load(Ordering::Acquire) {
                    sender.look_soon();
                    sender.poll(&mut got);
                    std::thread::yield_now();
                }
                // SAFETY: the data is readable.
                while unsafe { sender.post_bulk(1, head(1), &[], data.as_ptr(), data.len()) } == Posted::Full {
                    poll_or_sleep(&mut sender, &mut got, &ASLEEP[0]);
                }
            }
            while sender.has_output() {
                poll_or_sleep(&mut sender, &mut got, &ASLEEP[0]);
            }
            sender
        });
        let mut got = Got::default();
        while got.bytes < total {
            poll_or_sleep(&mut receiver, &mut got, &ASLEEP[1]);
        }
        sending.join().expect("the sender");
        assert_eq!((got.tags.len(), got.faults.len()), (ROUNDS, 0));
    }

    #[test]
    fn room_wakes_who_was_refused() {
        let (mut net, mut got) = (narrow_network(2), sinks(2));
        send(&mut net[0], 1, 1);
        until(&mut net, &mut got, |got| got[1].tags.len() == 1);
        let data = vec![1; 60_000];
        let mut quiet = 0;
        // Until the kernel takes nothing more, of which a post would be told only when the output has left.
        while quiet < 100 {
            // SAFETY: the data is readable.
            let refused = unsafe { net[0].post_bulk(1, head(1), &[], data.as_ptr(), data.len()) } == Posted::Full;
            net[0].look_soon();
            quiet = if net[0].poll(&mut got[0]) || !refused { 0 } else { quiet + 1 };
        }
        assert!(net[0].arm() && net[0].has_output());
        let sleeper = net[0].sleeper();
        let sleeping = std::thread::spawn(move || {
            let start = Instant::now();
            sleeper.sleep(Some(LOST));
            start.elapsed()
        });
        while !sleeping.is_finished() {
            net[1].poll(&mut got[1]);
        }
        assert!(sleeping.join().expect("the sleeper") < LOST, "not woken");
    }

    #[test]
    fn the_bell_wakes_who_sleeps_on_sockets() {
        let mut device = network(1).pop().expect("one");
        let number = device.hang_bell().expect("a bell");
        for _ in 0..100 {
            let sleeper = device.sleeper();
            let ringing = std::thread::spawn(move || bell::ring(number));
            let start = Instant::now();
            sleeper.sleep(Some(LOST));
            assert!(start.elapsed() < LOST, "not woken");
            ringing.join().expect("rung");
            // Answered: the next sleep does not end at once by this ring.
            device.disarm();
        }
        let mut ready = Vec::new();
        device.epoll.wait(&mut ready, Some(Duration::ZERO));
        assert_eq!(ready, []);
    }

    /// One thread sleeps while another one polls: what is meant for the sleeper must not be taken by who is awake.
    #[test]
    fn a_bell_that_others_see_still_wakes_who_sleeps() {
        let mut device = network(1).pop().expect("one");
        let number = device.hang_bell().expect("a bell");
        assert!(device.arm());
        let sleeper = device.sleeper();
        bell::ring(number);
        for _ in 0..3 {
            device.look_soon();
            device.poll(&mut Got::default());
        }
        let start = Instant::now();
        sleeper.sleep(Some(LOST));
        assert!(start.elapsed() < LOST, "not woken");
    }
}

impl TcpDevice {
    /// The two ends of every connection that we hold: ours and the other.
    fn ends(&self) -> Vec<(SocketAddr, SocketAddr)> {
        let links = self.peers.iter().filter_map(|peer| peer.link.as_ref());
        links.map(|link| (link.socket.name().expect("bound"), link.socket.peer().expect("connected"))).collect()
    }
}

#[test]
fn what_is_watched_ends_a_sleep_and_what_is_not_ends_none() {
    let device = network(1).remove(0);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.send_to(b"x", socket.local_addr().expect("bound")).expect("sent");
    let ready = || {
        let mut ready = Vec::new();
        device.epoll.wait(&mut ready, Some(Duration::ZERO));
        ready.len()
    };
    assert_eq!(ready(), 0);
    // What has come before is there. Who begins twice has begun.
    device.watch(socket.as_fd()).expect("watched");
    device.watch(socket.as_fd()).expect("watched");
    assert_eq!(ready(), 1);
    device.sleeper().sleep(None);
    device.unwatch(socket.as_fd());
    assert_eq!(ready(), 0);
    device.unwatch(socket.as_fd());
}

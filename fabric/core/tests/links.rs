//! Ranks that reach each other by datagrams only, over networks that lose, double, overtake and spoil them, and among
//! strangers.

mod common;
use common::*;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use weft_device::tcp::{PeerPlace, TcpDevice};
use weft_device::{Device, Packet, PeerFault, Sink};
use weft_fabric::job_map::JobMap;
use weft_fabric::{Bounds, Endpoint, Fault, Faults, Limits, Peer, SendMode};
use weft_protocol::reliable::{Config, Keyed, Link, LinkPosted};
use weft_wire::cell::{Head, Kind};
use weft_wire::link::header::Process;
use weft_wire::link::hello::Hello;
use weft_wire::link::keys;

/// Longer than any scheduling.
const LOST: Duration = Duration::from_secs(60);

/// Two ranks on two hosts; what arrives at either suffers `faults`, with another seed for each.
fn pair(devices: &str, faults: impl Fn(u64) -> Faults) -> Vec<Endpoint> {
    let job = job_across(&[0, 1]).into_iter().zip(0..);
    let join = |((segment, mut across), seed): ((_, weft_fabric::Across), u64)| {
        across.faults = Some(faults(seed));
        join_across((segment, across), order(devices), Limits::default(), Bounds::default())
    };
    job.map(join).collect()
}

fn until(net: &mut [Endpoint], what: &str, mut done: impl FnMut(&mut [Endpoint]) -> bool) {
    let start = Instant::now();
    while !done(net) {
        if !turn(net) {
            assert!(start.elapsed() < LOST, "{what}");
            std::thread::yield_now();
        }
    }
}

/// Messages of these sizes in both directions at the same time, in order and whole.
fn exchange(net: &mut [Endpoint], sizes: &[usize]) {
    let data: Vec<Vec<u8>> = sizes.iter().enumerate().map(|(at, size)| bytes(*size, at)).collect();
    let mut buffers: Vec<Vec<u8>> = [sizes, sizes].concat().iter().map(|size| vec![0; *size]).collect();
    let (mut receives, mut sends) = (Vec::new(), Vec::new());
    for (at, buffer) in buffers.iter_mut().enumerate() {
        let (me, other) = if at < sizes.len() { (0, 1) } else { (1, 0) };
        receives.push((me, receive(&mut net[me], from(other, 1), buffer)));
    }
    for (me, other) in [(0, 1), (1, 0)] {
        sends.extend(data.iter().map(|data| (me, send_as(&mut net[me], other, 1, data, SendMode::Standard))));
    }
    for (me, request) in receives.into_iter().chain(sends) {
        let mut outcome = None;
        until(net, "a message does not arrive", |net| {
            outcome = net[me].take_outcome(request);
            outcome.is_some()
        });
        assert_eq!(outcome.expect("taken").fault, None);
    }
    assert!(buffers.iter().zip(data.iter().chain(&data)).all(|(got, sent)| got == sent), "bytes are as they were sent");
}

#[test]
fn over_a_bad_network_every_message_arrives_once_and_whole() {
    // Seeds enough, and as many more until each kind of fault has been met.
    let (mut lost, mut spoilt, start) = (0, 0, Instant::now());
    for seed in 0.. {
        if seed >= 12 && lost > 0 && spoilt > 0 {
            break;
        }
        assert!(start.elapsed() < LOST, "{lost} lost, {spoilt} spoilt");
        println!("seed {seed}");
        let mut net = pair("udp", |side| Faults::new(2 * seed + side, 50, 30, 30, 50));
        let sizes: Vec<usize> =
            (0..40).map(|at| [0, 8, 48, 700, 5_000, 70_000][(at * 7 + seed as usize) % 6]).collect();
        exchange(&mut net, &sizes);
        for at in &mut net {
            let counters = at.counters();
            assert!(counters.udp_packets > 0 && counters.tcp_packets == 0, "{counters:?}");
            (lost, spoilt) = (lost + counters.udp_lost, spoilt + counters.strangers);
        }
    }
}

#[test]
fn over_a_bad_network_who_leaves_has_sent_everything() {
    let mut net = pair("udp", |side| Faults::new(side, 100, 50, 50, 50));
    exchange(&mut net, &[8]);
    let data = bytes(30_000, 1);
    let request = send(&mut net[0], 1, 2, &data);
    net[0].release(request);
    let (first, mut rest) = (net.remove(0), net);
    std::thread::scope(|scope| {
        scope.spawn(|| first.leave());
        let mut buffer = vec![0; data.len()];
        let request = receive(&mut rest[0], from(0, 2), &mut buffer);
        until(&mut rest, "the last message does not arrive", |rest| rest[0].take_outcome(request).is_some());
        assert!(buffer == data);
        rest.remove(0).leave();
    });
}

#[test]
fn where_datagrams_are_dropped_another_device_is_used_and_nothing_is_lost() {
    let mut net = pair("udp,tcp", |side| Faults::new(side, 1000, 0, 0, 0));
    exchange(&mut net, &[8, 0, 100_000, 48]);
    for at in &mut net {
        let counters = at.counters();
        assert!(counters.tcp_packets > 0 && counters.udp_packets == 0, "{counters:?}");
    }
}

/// Two ranks that datagrams do not reach until the answer is set to false, and the second one's socket.
fn cut(limits: Limits) -> (Vec<Endpoint>, UdpSocket, Arc<AtomicBool>) {
    let cut = Arc::new(AtomicBool::new(true));
    let job = job_across(&[0, 1]);
    let there = job[1].1.datagrams.as_ref().expect("a socket").try_clone().expect("another").into();
    let join = |(segment, mut across): (_, weft_fabric::Across)| {
        across.faults = Some(Faults::while_cut(cut.clone()));
        join_across((segment, across), order("udp,tcp"), limits, Bounds::default())
    };
    (job.into_iter().map(join).collect(), there, cut)
}

#[test]
fn who_could_not_be_reached_by_datagrams_is_once_the_way_is_open() {
    const SIZES: [usize; 8] = [8, 2_000_000, 48, 700, 50_000, 0, 100_000, 8];
    let (mut net, _, cut) = cut(Limits::default());
    exchange(&mut net, &SIZES);
    for at in &mut net {
        let counters = at.counters();
        assert!(counters.tcp_packets > 0 && counters.udp_packets == 0, "{counters:?}");
    }
    cut.store(false, Relaxed);
    let start = Instant::now();
    while net.iter_mut().any(|at| at.counters().udp_packets == 0) {
        exchange(&mut net, &SIZES);
        assert!(start.elapsed() < LOST, "datagrams are not tried again");
    }
    exchange(&mut net, &SIZES);
    let before: Vec<_> = net.iter_mut().map(|at| at.counters().udp_packets).collect();
    exchange(&mut net, &[8, 0, 48]);
    assert!(net.iter_mut().zip(before).all(|(at, before)| at.counters().udp_packets >= before + 3));
}

/// What was begun over the connection goes on there, and what is sent by datagrams meanwhile is matched behind it.
#[test]
fn a_way_that_opens_in_the_middle_of_a_message_does_not_break_it() {
    const LONG: usize = 16 << 20;
    for (eager, kind) in [(64 << 10, "asked for"), (LONG, "sent without asking")] {
        println!("{kind}");
        let (mut net, there, cut) = cut(Limits { eager, ..Limits::default() });
        exchange(&mut net, &[8]);
        // By their place: those of number 0 to 3 are sent before the way opens.
        let data = [LONG, 48, 700, 0, 48, 5_000, 8].map(|length| bytes(length, length));
        let mut got = data.each_ref().map(|data| vec![0; data.len()]);
        let mut receives: Vec<_> = got.iter_mut().map(|got| receive(&mut net[1], from(0, 2), got)).collect();
        let raw = bytes(2_000, 3);
        let mut raw_got = vec![0; raw.len()];
        // SAFETY: the buffer lives until the end, and nobody else touches it until the receive is complete.
        receives.push(unsafe { net[1].post_raw_receive(Peer(0), raw_got.as_mut_ptr(), raw_got.len()) });
        // SAFETY: the bytes are readable.
        let send_raw = |net: &mut [Endpoint], raw: &[u8]| unsafe {
            assert_eq!(net[0].try_raw_send(Peer(1), raw.as_ptr(), raw.len()), raw.len(), "there is room");
        };
        let mut sends = vec![send(&mut net[0], 1, 2, &data[0])];
        let bytes = net[0].counters().tcp_bytes;
        until(&mut net, "the long one does not begin", |net| net[0].counters().tcp_bytes > bytes + 100_000);
        sends.extend(data[1..4].iter().map(|data| send(&mut net[0], 1, 2, data)));
        send_raw(&mut net, &raw[..1_000]);
        // The receiver moves only where a datagram has come, so that the most of the message stays with its sender.
        cut.store(false, Relaxed);
        let start = Instant::now();
        while !net[0].ways().contains("udp to 1") {
            net[0].progress();
            if there.peek(&mut [0; 2000]).is_ok() {
                net[1].progress();
            }
            assert!(start.elapsed() < LOST, "the way does not open");
        }
        assert!(!net[0].is_complete(sends[0]), "it is still under way");
        sends.extend(data[4..].iter().map(|data| send(&mut net[0], 1, 2, data)));
        send_raw(&mut net, &raw[1_000..]);
        for (me, request) in receives.into_iter().map(|id| (1, id)).chain(sends.into_iter().map(|id| (0, id))) {
            let mut outcome = None;
            until(&mut net, "a message does not arrive", |net| {
                outcome = net[me].take_outcome(request);
                outcome.is_some()
            });
            assert_eq!(outcome.expect("taken").fault, None);
        }
        assert!(got == data && raw_got == raw);
        assert!(net[0].counters().udp_packets > 0, "the way was not open before the short ones were sent");
    }
}

#[test]
fn where_datagrams_pass_they_carry_what_is_short_and_a_connection_what_is_long() {
    let mut net = pair("udp,tcp", |_| Faults::default());
    exchange(&mut net, &[8, 48, 0]);
    assert!(net.iter_mut().all(|at| at.counters().udp_packets >= 3 && at.counters().tcp_packets == 0));
    // The first long ones may go before there is a connection.
    let start = Instant::now();
    while net.iter_mut().any(|at| at.counters().tcp_bytes < 1 << 20) {
        exchange(&mut net, &[8, 2_000_000, 8, 50_000, 8]);
        assert!(start.elapsed() < LOST, "no connection");
    }
}

/// Two ranks with a connection beside their datagrams.
fn connected(faults: impl Fn(u64) -> Faults) -> Vec<Endpoint> {
    let mut net = pair("udp,tcp", faults);
    connect(&mut net);
    net
}

/// Lets two ranks have a connection.
fn connect(net: &mut [Endpoint]) {
    let start = Instant::now();
    while net.iter_mut().any(|at| at.counters().tcp_packets < 2) {
        exchange(net, &[8, 50_000]);
        assert!(start.elapsed() < LOST, "no connection");
    }
}

#[test]
fn where_there_is_a_connection_what_needs_no_asking_goes_over_it_at_once() {
    let mut net = connected(|_| Faults::default());
    let counted = |at: &mut Endpoint| {
        let now = at.counters();
        [now.rendezvous, now.udp_packets, now.tcp_packets, now.tcp_bytes]
    };
    let before: Vec<_> = net.iter_mut().map(counted).collect();
    exchange(&mut net, &[1_025, 65_536, 30_000]);
    for (at, [asked, by_datagrams, packets, bytes]) in net.iter_mut().zip(before) {
        // Each is one packet with its head, nothing is asked, and no datagram goes with it.
        assert_eq!(counted(at), [asked, by_datagrams, packets + 3, bytes + 96_561 + 3 * 40]);
    }
    let before: Vec<_> = net.iter_mut().map(counted).collect();
    exchange(&mut net, &[1_024]);
    for (at, [asked, by_datagrams, packets, bytes]) in net.iter_mut().zip(before) {
        // Its place among those over the connection, and itself.
        assert_eq!(counted(at), [asked, by_datagrams + 2, packets, bytes]);
    }
}

#[test]
fn messages_that_go_by_two_devices_are_matched_in_the_order_in_which_they_were_sent() {
    const SIZES: [usize; 8] = [8, 20_000, 48, 700, 65_000, 100_000, 0, 9_000];
    for seed in 0..12 {
        println!("seed {seed}");
        let mut net = connected(|side| Faults::new(2 * seed + side, 100, 30, 30, 50));
        for round in 0..5 {
            let sizes: Vec<usize> = (0..40).map(|at| SIZES[(at * 3 + at / 8 + round + seed as usize) % 8]).collect();
            exchange(&mut net, &sizes);
        }
    }
}

/// What has arrived before it is received, too, also where the later ones came first.
#[test]
fn messages_that_nobody_receives_yet_keep_their_order_among_two_devices() {
    let mut net = connected(|_| Faults::default());
    let sizes = [20_000, 8, 30_000, 48, 100_000, 0, 700, 9_000, 8];
    let data: Vec<Vec<u8>> = sizes.iter().enumerate().map(|(at, size)| bytes(*size, at)).collect();
    for early in [1, 4, 9] {
        let sends: Vec<_> = data.iter().map(|data| send(&mut net[0], 1, 3, data)).collect();
        // The first ones are taken in; each look takes datagrams first, of which the second message is one.
        let selector = any();
        until(&mut net, "nothing arrives", |net| net[1].probe(selector).is_some());
        let mut buffers: Vec<Vec<u8>> = sizes.iter().map(|size| vec![0; *size]).collect();
        let mut receives = Vec::new();
        for (at, buffer) in buffers.iter_mut().enumerate() {
            if at == early {
                (0..100).for_each(|_| _ = turn(&mut net));
            }
            receives.push(receive(&mut net[1], selector, buffer));
        }
        for (request, size) in receives.into_iter().zip(sizes) {
            let mut outcome = None;
            until(&mut net, "a message does not arrive", |net| {
                outcome = net[1].take_outcome(request);
                outcome.is_some()
            });
            let outcome = outcome.expect("taken");
            assert_eq!((outcome.length, outcome.fault), (size as u64, None));
        }
        for request in sends {
            until(&mut net, "a send does not end", |net| net[0].take_outcome(request).is_some());
        }
        assert!(buffers == data);
    }
}

/// Nonsense, pieces of what ranks say, and a rank of another job that has the right addresses.
#[test]
fn what_strangers_send_is_counted_and_changes_nothing() {
    let job = job_across(&[0, 1]);
    let map = job[0].1.map.clone();
    let join = |rank| join_across(rank, order("udp"), Limits::default(), Bounds::default());
    let mut net: Vec<_> = job.into_iter().map(join).collect();
    exchange(&mut net, &[8, 5_000]);

    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let there = SocketAddr::new("127.0.0.1".parse().expect("an address"), map.ranks[1].udp_port);
    let mut nonsense = 0;
    for length in [1, 2, 51, 52, 60, 1232, 1472, 9000] {
        for first in [&b"WL\x01\x01"[..], b"WH\x01\x01", b"GET /"] {
            let mut junk = vec![0x5a; length];
            let count = first.len().min(length);
            junk[..count].copy_from_slice(&first[..count]);
            nonsense += u64::from(socket.send_to(&junk, there).is_ok());
        }
    }
    let (segment, mut across) = job_across(&[0, 1]).remove(0);
    across.map = JobMap { key: *b"a key of nobody!", ..map };
    let mut liar = join((segment, across));
    let data = [1; 8];
    let sending = send(&mut liar, 1, 1, &data);
    let start = Instant::now();
    // Some of the nonsense may not have found room; the liar calls again and again.
    while net[1].counters().strangers <= nonsense {
        liar.progress();
        turn(&mut net);
        assert!(start.elapsed() < LOST, "{:?}", net[1].counters());
    }
    assert!(!liar.is_complete(sending) && liar.counters().udp_packets == 0, "nobody has answered");
    exchange(&mut net, &[8, 5_000]);
    assert_eq!(net[1].counters().receives, 4, "nothing of the liar's was received");
}

/// What rank 1, which is written by hand and has this socket, may not say to the first of `net`, in a datagram that is
/// believed.
fn nonsense(net: &mut [Endpoint], map: &JobMap, socket: &UdpSocket) -> Vec<u8> {
    socket.set_nonblocking(true).expect("set");
    socket.connect(("127.0.0.1", map.ranks[0].udp_port)).expect("connected");
    let me = Process { rank: 1, incarnation: 9 };
    // Whom it talks to is said in the answer to a call.
    let to = Process { rank: 0, incarnation: 0 };
    let hello = Hello { is_answer: false, to, from: me, nonce: 5, count: 1, encrypts: false };
    let key = keys::of_hellos(&map.key);
    socket.send(&hello.pack(&key)).expect("sent");
    let (mut datagram, mut answer) = ([0; 1472], None);
    until(net, "no answer", |_| {
        let length = socket.recv(&mut datagram).unwrap_or(0);
        answer = Hello::parse(&datagram[..length], &key).filter(|hello| hello.is_answer);
        answer.is_some()
    });
    let other = answer.expect("heard").from;
    let key = keys::of_link(&map.key, me, other);
    let mut link = Link::new(Config::new(me, other, 1472), Keyed::new(&key), 1);
    assert_eq!(link.try_send(&Head::control(Kind::More), &[], Some(&[1; 10])), LinkPosted::Sent(10));
    let length = link.poll_transmit(2, &mut datagram).expect("there is something to send");
    datagram[..length].to_vec()
}

/// The other side of a connection that is spoken to by hand.
struct Hung;

impl Sink for Hung {
    fn handle_packet(&mut self, _: Packet<'_>) -> Result<(), &'static str> {
        Ok(())
    }

    fn handle_fault(&mut self, _: PeerFault) {}
}

#[test]
fn who_is_lost_by_datagrams_is_hung_up_on_and_not_heard_over_the_connection() {
    let mut job = job_across(&[0, 1]);
    let (_, rogue) = job.remove(1);
    let map = rogue.map;
    let mut net = vec![join_across(job.remove(0), order("udp,tcp"), Limits::default(), Bounds::default())];
    let place = |rank: &weft_fabric::job_map::MappedRank| PeerPlace {
        host: "here".to_owned(),
        addresses: vec![SocketAddr::new("127.0.0.1".parse().expect("an address"), rank.tcp_port)],
    };
    let places = map.ranks.iter().map(place).collect();
    let mut tcp = TcpDevice::new(1, map.key, rogue.listener, places, true).expect("a device");
    let head = |tag| Head { kind: Kind::Short, context: CONTEXT, tag, source: 101 };
    let (mut first, mut second) = ([0; 8], [0; 8]);
    let receives = [receive(&mut net[0], from(1, 1), &mut first), receive(&mut net[0], from(1, 2), &mut second)];
    assert_ne!(tcp.post_control(0, head(1), &[7]), weft_device::Posted::Full);
    until(&mut net, "nothing comes over the connection", |net| {
        tcp.poll(&mut Hung);
        net[0].is_complete(receives[0])
    });
    let socket = UdpSocket::from(rogue.datagrams.expect("a socket"));
    socket.send(&nonsense(&mut net, &map, &socket)).expect("sent");
    let mut outcome = None;
    until(&mut net, "nobody notices", |net| {
        outcome = net[0].take_outcome(receives[1]);
        outcome.is_some()
    });
    assert_eq!(outcome.expect("taken").fault, Some(Fault::PeerLost));
    until(&mut net, "the connection is kept", |_| {
        tcp.poll(&mut Hung);
        tcp.has_ended(0)
    });
    assert_eq!((first, second), ([7, 0, 0, 0, 0, 0, 0, 0], [0; 8]));
}

#[test]
fn whose_connection_has_ended_is_not_waited_for_by_datagrams() {
    let job = job_across(&[0, 1]);
    // Datagrams find nobody there, and the kernel does not say so.
    let _silent = job[1].1.datagrams.as_ref().expect("a socket").try_clone().expect("another");
    let join = |rank| join_across(rank, order("udp,tcp"), Limits::default(), Bounds::default());
    let mut net: Vec<_> = job.into_iter().map(join).collect();
    connect(&mut net);
    let mut buffer = [0; 8];
    let waiting = receive(&mut net[0], from(1, 9), &mut buffer);
    // As a kill ends it: no farewell.
    net.truncate(1);
    let mut outcome = None;
    until(&mut net, "nobody notices", |net| {
        outcome = net[0].take_outcome(waiting);
        outcome.is_some()
    });
    assert_eq!(outcome.expect("taken").fault, Some(Fault::PeerLost));
    until(&mut net, "a short one would be sent all the same", |net| net[0].has_ended(Peer(1)));
}

/// A rank that has the key, and breaks the rules above the link.
#[test]
fn a_rank_that_breaks_the_protocol_is_lost_and_the_others_do_not_notice() {
    let mut job = job_across(&[0, 1, 2]);
    let (_, rogue) = job.remove(1);
    let map = rogue.map;
    let join = |rank| join_across(rank, order("udp"), Limits::default(), Bounds::default());
    let mut net: Vec<_> = job.into_iter().map(join).collect();
    let socket = UdpSocket::from(rogue.datagrams.expect("a socket"));
    let nonsense = nonsense(&mut net, &map, &socket);
    let (mut lost, mut good) = ([0; 8], [0; 8]);
    let waiting = receive(&mut net[0], from(1, 1), &mut lost);
    let other = receive(&mut net[0], from(2, 1), &mut good);
    socket.send(&nonsense).expect("sent");
    let mut outcome = None;
    until(&mut net, "nobody notices", |net| {
        outcome = net[0].take_outcome(waiting);
        outcome.is_some()
    });
    assert_eq!(outcome.expect("taken").fault, Some(Fault::PeerLost));
    let sending = send(&mut net[1], 0, 1, &[7; 8]);
    until(&mut net, "the other rank does not get through", |net| net[0].is_complete(other));
    assert_eq!((good, net[0].has_ended(Peer(1)), net[0].has_ended(Peer(2))), ([7; 8], true, false));
    net[1].release(sending);
}

/// A blocking send that is complete need not be followed by any other call for long.
#[test]
fn what_is_complete_for_its_sender_leaves_though_the_sender_does_not_come_back() {
    let join = |rank| join_across(rank, order("udp"), Limits::default(), Bounds::default());
    let mut net: Vec<_> = job_across(&[0, 1]).into_iter().map(join).collect();
    exchange(&mut net, &[8]);
    let data = bytes(48, 1);
    let mut buffers = [[0; 48]; 40];
    let receives: Vec<_> = buffers.iter_mut().map(|buffer| receive(&mut net[1], from(0, 2), buffer)).collect();
    for _ in &receives {
        let request = send(&mut net[0], 1, 2, &data);
        assert!(net[0].is_complete(request));
        net[0].release(request);
    }
    for request in receives {
        until(&mut net[1..], "a message waits for its sender", |net| net[0].take_outcome(request).is_some());
    }
    assert!(buffers.iter().all(|buffer| *buffer == data[..]));
}

/// The same where the message goes over a connection and is more than the kernel has room for.
#[test]
fn what_the_kernel_has_no_room_for_is_not_complete() {
    for (devices, lengths) in [("udp,tcp", &[60_000][..]), ("tcp", &[48, 1_000, 8_000, 60_000, 66_000, 400_000])] {
        for length in lengths {
            println!("{length} bytes by {devices}");
            what_stays_in_the_process_is_not_complete(devices, *length);
        }
    }
}

fn what_stays_in_the_process_is_not_complete(devices: &str, length: usize) {
    let eager = Limits { eager: 1 << 20, ..Limits::default() };
    let join = |rank| join_across(rank, order(devices), eager, Bounds::default());
    let mut net: Vec<_> = job_across(&[0, 1]).into_iter().map(join).collect();
    let data = bytes(length, 1);
    until(&mut net, "no connection", |net| {
        let before = net[0].counters().tcp_packets;
        exchange(net, &[length]);
        net[0].counters().tcp_packets > before
    });
    // Nobody receives, so some time the kernel takes no more.
    let mut complete = 0;
    let pending = loop {
        let request = send(&mut net[0], 1, 2, &data);
        if !net[0].is_complete(request) {
            break request;
        }
        net[0].release(request);
        complete += 1;
    };
    let mut sends = vec![pending];
    sends.extend((0..20).map(|_| send(&mut net[0], 1, 2, &data)));
    let behind = send(&mut net[0], 1, 3, b"behind");
    let mut buffer = vec![0; length];
    let mut take = |net: &mut [Endpoint], who: &str| {
        let request = receive(net.last_mut().expect("the receiver"), from(0, 2), &mut buffer);
        until(net, who, |net| net.last_mut().expect("the receiver").take_outcome(request).is_some());
        assert!(buffer == data);
        buffer.fill(0);
    };
    for _ in 0..complete {
        take(&mut net[1..], "a message waits for its sender");
    }
    // The same for what has waited in this process.
    let mut taken = 0;
    while taken < sends.len() {
        while net[0].progress() {}
        match net[0].is_complete(sends[taken]) {
            true => take(&mut net[1..], "a message that has waited waits for its sender"),
            false => take(&mut net, "a message that waits does not come"),
        }
        taken += 1;
    }
    let mut got = [0; 6];
    let last = receive(&mut net[1], from(0, 3), &mut got);
    until(&mut net, "the last one does not come", |net| net[1].take_outcome(last).is_some());
    until(&mut net, "a send does not end", |net| sends.iter().chain([&behind]).all(|send| net[0].is_complete(*send)));
    assert!(got == *b"behind");
}

//! Ranks of several hosts in one job: the same messages over another device, and what is different about it.

mod common;
use common::*;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use weft_fabric::{Bounds, Endpoint, Fault, Limits, Monitor, Peer, Segment, SendMode};

/// Longer than any scheduling.
const LOST: Duration = Duration::from_secs(60);

/// Tests of what any device between hosts does, with the devices that a rank may use.
macro_rules! on_each_device {
    ($($(#[$about:meta])* fn $name:ident($devices:ident: &'static str) $body:block)*) => {$(
        $(#[$about])*
        mod $name {
            use super::*;
            fn run($devices: &'static str) $body

            #[test]
            fn tcp() {
                run("shm,tcp");
            }

            #[test]
            fn udp() {
                run("shm,udp");
            }

            /// Long messages by one, others by the other.
            #[test]
            fn both() {
                run("shm,udp,tcp");
            }
        }
    )*};
}

fn until(net: &mut [Endpoint], mut done: impl FnMut(&mut [Endpoint]) -> bool) {
    let start = Instant::now();
    while !done(net) {
        if !turn(net) {
            assert!(start.elapsed() < LOST, "what was waited for does not come");
            std::thread::yield_now();
        }
    }
}

fn one(net: &mut [Endpoint], ends: (u32, u32), length: usize, capacity: usize, mode: SendMode, early: bool) {
    let (sender, receiver) = (ends.0 as usize, ends.1 as usize);
    let data = bytes(length, capacity);
    let mut buffer = vec![0xee; capacity + 64];
    let mut post = |net: &mut [Endpoint]| receive(&mut net[receiver], from(ends.0, 3), &mut buffer[..capacity]);
    let (receiving, sending) = if early {
        (post(net), send_as(&mut net[sender], ends.1, 3, &data, mode))
    } else {
        let sending = send_as(&mut net[sender], ends.1, 3, &data, mode);
        until(net, |net| net[receiver].probe(from(ends.0, 3)).is_some());
        assert!(mode == SendMode::Standard || !net[sender].is_complete(sending), "nobody has begun to receive");
        (post(net), sending)
    };
    let fault = (length > capacity).then_some(Fault::Truncated);
    check(finish(net, receiver, receiving), ends.0, 3, length, fault);
    assert_eq!(finish(net, sender, sending).fault, None);
    let whole = length.min(capacity);
    assert!(buffer[..whole] == data[..whole], "{length} into {capacity}");
    assert!(buffer[whole..].iter().all(|b| *b == 0xee), "{length} into {capacity}: nothing behind the message");
}

const SIZES: [usize; 20] = [
    0, 1, 8, 47, 48, 49, 64, 4096, 8192, 8193, 32_769, 65_535, 65_536, 65_537, 65_600, 131_073, 262_145, 1_048_577,
    3_000_001, 20_000_000,
];

on_each_device! {
fn every_size_arrives_whole_from_another_host(devices: &'static str) {
    for limits in [Limits::default(), Limits { eager: 1 << 20, ..copying() }] {
        let mut net = net_across(&[0, 1], devices, limits);
        for size in SIZES {
            for mode in [SendMode::Standard, SendMode::Synchronous] {
                one(&mut net, (0, 1), size, size, mode, true);
                one(&mut net, (1, 0), size, size + 10, mode, false);
                one(&mut net, (0, 1), size + 1, size, mode, false);
            }
        }
        assert_eq!(net[0].counters().single_copy_bytes, 0, "nothing is copied out of another host's memory");
    }
}
}

on_each_device! {
fn ranks_of_one_host_talk_through_shared_memory_and_others_over_the_network(devices: &'static str) {
    let mut net = net_across(&[1, 0, 1, 0], devices, copying());
    let locals: Vec<Vec<bool>> = net.iter().map(|at| (0..4).map(|peer| at.is_local(Peer(peer))).collect()).collect();
    assert_eq!(locals[0], [true, false, true, false]);
    assert_eq!(locals[3], [false, true, false, true]);
    assert_eq!((net[0].world_size(), net[0].host_size()), (4, 2));
    let packets = |net: &mut [Endpoint]| -> Vec<(u64, u64)> {
        net.iter_mut().map(|at| (at.counters().shm_packets, at.counters().tcp_packets + at.counters().udp_packets)).collect()
    };
    one(&mut net, (0, 2), 8, 8, SendMode::Standard, true);
    assert_eq!(packets(&mut net), [(1, 0), (0, 0), (0, 0), (0, 0)]);
    one(&mut net, (0, 3), 8, 8, SendMode::Standard, true);
    assert_eq!(packets(&mut net), [(1, 1), (0, 0), (0, 0), (0, 0)]);
    one(&mut net, (3, 1), 1 << 20, 1 << 20, SendMode::Standard, true);
    let copied = net[1].counters().single_copy_bytes + net[3].counters().single_copy_bytes;
    assert!(copied > 0 && packets(&mut net)[3].1 == 0, "within a host long messages are copied once");
    one(&mut net, (3, 0), 1 << 20, 1 << 20, SendMode::Standard, true);
    let counters = net[3].counters();
    let (udp, tcp) = (counters.udp_bytes, counters.tcp_bytes);
    assert!(udp + tcp > 1 << 20, "{udp} {tcp}");
    assert_eq!((udp > 0, tcp > 0), (devices.contains("udp"), devices.contains("tcp") && tcp > 0), "{udp} {tcp}");
}
}

on_each_device! {
fn without_shared_memory_ranks_of_one_host_use_the_network_too(devices: &'static str) {
    let job = job_across(&[0, 0, 0]);
    let mut net: Vec<_> =
        job.into_iter().map(|rank| join_across(rank, order(devices.trim_start_matches("shm,")), copying(), Bounds::default())).collect();
    for ends in [(0, 1), (1, 2), (2, 0), (1, 0)] {
        one(&mut net, ends, 100_000, 100_000, SendMode::Standard, true);
    }
    for at in &mut net {
        assert!(!at.is_local(Peer((at.me().0 + 1) % 3)) && at.is_local(at.me()));
        assert_eq!((at.counters().shm_packets, at.counters().single_copy_bytes), (0, 0));
    }
}
}

#[test]
fn a_rank_that_no_allowed_device_leads_to_is_named() {
    let (segment, across) = job_across(&[0, 1]).remove(0);
    let error = Endpoint::join_across(segment, across, order("shm"), Limits::default(), Bounds::default());
    let text = error.err().expect("refused").to_string();
    assert!(text.contains("rank 1") && text.contains("of shm, which WEFT_DEVICE"), "{text}");
}

fn monitors(hosts: &[u32], devices: &str) -> Vec<Monitor<World>> {
    let open = |rank| {
        let world = Monitor::new();
        world.open(World(join_across(rank, order(devices), Limits::default(), ASLEEP)), false);
        world
    };
    job_across(hosts).into_iter().map(open).collect()
}

on_each_device! {
/// Who sleeps is woken by a socket as well as by a ring, whichever comes.
fn sleepers_are_woken_by_the_network_and_by_shared_memory(devices: &'static str) {
    watch(|| {
        const ROUNDS: i32 = 3000;
        let slept = AtomicU32::new(0);
        let worlds = monitors(&[0, 0, 1], devices);
        std::thread::scope(|scope| {
            for world in &worlds {
                let slept = &slept;
                scope.spawn(move || {
                    let me = world.enter().0.me().0;
                    let mut buffer = [0u8; 8];
                    for round in 0..ROUNDS {
                        // Round the three, so that rank 1 is woken by its neighbour and rank 0 from afar, and back
                        // again.
                        let (before, after) =
                            if round % 2 == 0 { ((me + 2) % 3, (me + 1) % 3) } else { ((me + 1) % 3, (me + 2) % 3) };
                        let data = round.to_le_bytes();
                        if me == 0 {
                            let request = send(&mut world.enter().0, after, 1, &data);
                            assert_eq!(wait(world, request).fault, None);
                        }
                        let request = receive(&mut world.enter().0, from(before, 1), &mut buffer);
                        assert_eq!(wait(world, request).fault, None);
                        assert_eq!(buffer[..4], data);
                        if me != 0 {
                            let request = send(&mut world.enter().0, after, 1, &data);
                            assert_eq!(wait(world, request).fault, None);
                        }
                    }
                    slept.fetch_add(world.enter().0.counters().sleeps as u32, Ordering::Relaxed);
                });
            }
        });
        assert!(slept.load(Ordering::Relaxed) > ROUNDS as u32, "the test sleeps");
        std::thread::scope(|scope| worlds.iter().for_each(|world| drop(scope.spawn(|| world.close().0.leave()))));
    });
}
}

on_each_device! {
fn who_leaves_has_sent_everything_first(devices: &'static str) {
    watch(|| {
        let mut net = net_across(&[0, 1], devices, Limits::default());
        // So that one of 200_000 bytes goes without asking over a connection.
        (0..4).for_each(|_| one(&mut net, (0, 1), 200_000, 200_000, SendMode::Standard, true));
        let last_length = if devices.contains("tcp") { 200_000 } else { 60_000 };
        let (mut last, first) = (net.pop().expect("two"), net.pop().expect("two"));
        let length = move |tag: i32| if tag == 49 { last_length } else { 60_000 };
        let leaving = std::thread::spawn(move || {
            let mut first = first;
            let data = bytes(200_000, 7);
            let requests: Vec<_> = (0..50).map(|tag| send(&mut first, 1, tag, &data[..length(tag)])).collect();
            requests.into_iter().for_each(|request| first.release(request));
            first.leave();
        });
        let expected = bytes(200_000, 7);
        for tag in 0..50 {
            let mut buffer = vec![0; length(tag)];
            let request = receive(&mut last, from(0, tag), &mut buffer);
            let outcome = finish(std::slice::from_mut(&mut last), 0, request);
            assert_eq!((outcome.fault, buffer == expected[..length(tag)]), (None, true));
        }
        // Who leaves waits until we have said that we have everything, which we do when we are called.
        while !leaving.is_finished() {
            turn(std::slice::from_mut(&mut last));
        }
        leaving.join().expect("left");
        last.leave();
    });
}
}

on_each_device! {
fn a_rank_that_dies_takes_only_what_needs_it_along(devices: &'static str) {
    let mut net = net_across(&[0, 1, 2], devices, Limits::default());
    one(&mut net, (0, 1), 8, 8, SendMode::Standard, true);
    one(&mut net, (0, 2), 8, 8, SendMode::Standard, true);
    let (mut lost, mut good) = ([0; 8], [0; 8]);
    let waiting = receive(&mut net[0], from(1, 3), &mut lost);
    let other = receive(&mut net[0], from(2, 3), &mut good);
    drop(net.remove(1));
    let start = Instant::now();
    let outcome = loop {
        turn(&mut net);
        if let Some(outcome) = net[0].take_outcome(waiting) {
            break outcome;
        }
        assert!(start.elapsed() < LOST, "nobody notices");
    };
    assert_eq!(outcome.fault, Some(Fault::PeerLost));
    let sending = send(&mut net[0], 1, 3, &[1; 8]);
    assert_eq!(finish(&mut net, 0, sending).fault, Some(Fault::PeerLost));
    let sent = send(&mut net[1], 0, 3, &[5; 8]);
    assert_eq!((finish(&mut net, 0, other).fault, finish(&mut net, 1, sent).fault), (None, None));
    assert_eq!(good, [5; 8]);
}
}

on_each_device! {
fn raw_bytes_go_to_another_host(devices: &'static str) {
    let mut net = net_across(&[0, 1], devices, Limits::default());
    let data = bytes(300_000, 3);
    let mut buffer = vec![0; data.len()];
    // SAFETY: the buffer outlives the request.
    let request = unsafe { net[1].post_raw_receive(Peer(0), buffer.as_mut_ptr(), buffer.len()) };
    let mut sent = 0;
    until(&mut net, |net| {
        // SAFETY: inside the data.
        sent += unsafe { net[0].try_raw_send(Peer(1), data[sent..].as_ptr(), data.len() - sent) };
        sent == data.len()
    });
    assert_eq!(finish(&mut net, 1, request).fault, None);
    assert!(buffer == data);
}
}

/// A job on one host has one device, and no setting makes it another.
#[test]
fn one_host_without_a_map_needs_shared_memory() {
    let segment = Segment::create(2).expect("segment");
    let endpoint = Endpoint::join_segment(segment, 0).expect("join");
    assert!(endpoint.is_local(Peer(1)) && !endpoint.is_local(Peer(2)));
}

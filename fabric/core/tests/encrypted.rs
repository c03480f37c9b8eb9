//! Ranks of a job that is encrypted.

mod common;
use common::*;
use std::net::UdpSocket;
use std::time::{Duration, Instant};
use weft_fabric::{Bounds, Endpoint, Fault, Faults, Limits};

/// Longer than any scheduling.
const LOST: Duration = Duration::from_secs(60);

/// Two ranks on two hosts, each of which encrypts or not.
fn pair(devices: &str, encrypts: [bool; 2], faults: impl Fn(u64) -> Option<Faults>) -> Vec<Endpoint> {
    let job = job_across(&[0, 1]).into_iter().zip(encrypts).zip(0..);
    let join = |(((segment, mut across), encrypts), seed): (((_, weft_fabric::Across), bool), u64)| {
        (across.encrypts, across.faults) = (encrypts, faults(seed));
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

/// Messages of many sizes in both directions, one after the other.
fn exchange(net: &mut [Endpoint]) {
    for (at, size) in [0, 8, 48, 700, 4096, 5_000, 70_000, 1_000_000, 8].into_iter().enumerate() {
        for (me, other) in [(0, 1), (1, 0)] {
            let data = bytes(size, at);
            let mut buffer = vec![0; size];
            let receiving = receive(&mut net[other], from(me as u32, 1), &mut buffer);
            let sending = send(&mut net[me], other as u32, 1, &data);
            for (whose, request) in [(other, receiving), (me, sending)] {
                let mut outcome = None;
                until(net, "a message does not arrive", |net| {
                    outcome = net[whose].take_outcome(request);
                    outcome.is_some()
                });
                assert_eq!(outcome.expect("taken").fault, None);
            }
            assert!(buffer == data, "{size} bytes are as they were sent");
        }
    }
}

#[test]
fn messages_of_all_sizes_arrive_by_each_device() {
    for devices in ["udp", "tcp", "udp,tcp"] {
        let mut net = pair(devices, [true; 2], |_| None);
        exchange(&mut net);
        assert!(net.iter_mut().all(|at| at.counters().strangers == 0));
        std::thread::scope(|scope| net.into_iter().for_each(|at| drop(scope.spawn(|| at.leave()))));
    }
}

/// The spoilt ones are counted among what nobody of the job has sent.
#[test]
fn over_a_bad_network_what_is_spoilt_is_dropped_and_counted() {
    let (mut spoilt, start) = (0, Instant::now());
    for seed in 0.. {
        if seed >= 4 && spoilt > 0 {
            break;
        }
        assert!(start.elapsed() < LOST, "nothing was spoilt");
        let mut net = pair("udp", [true; 2], |side| Some(Faults::new(2 * seed + side, 50, 30, 30, 50)));
        exchange(&mut net);
        spoilt += net.iter_mut().map(|at| at.counters().strangers).sum::<u64>();
    }
}

#[test]
fn ranks_that_do_not_agree_about_it_lose_each_other() {
    for devices in ["udp", "tcp", "udp,tcp"] {
        for encrypts in [[true, false], [false, true]] {
            let mut net = pair(devices, encrypts, |_| None);
            let sending = send(&mut net[0], 1, 1, &[1; 8]);
            let mut buffer = [0; 8];
            let receiving = receive(&mut net[0], from(1, 1), &mut buffer);
            let mut outcome = None;
            until(&mut net, "nobody notices", |net| {
                outcome = net[0].take_outcome(receiving);
                outcome.is_some()
            });
            assert_eq!(outcome.expect("taken").fault, Some(Fault::PeerLost), "{devices}");
            until(&mut net, "the message is not given up", |net| net[0].take_outcome(sending).is_some());
        }
    }
}

/// A datagram that is heard on the way, or made by somebody who does not have the key.
#[test]
fn datagrams_show_nothing_of_what_is_sent() {
    let text = b"nobody but the two ranks reads this";
    let heard = |encrypts: bool| {
        // The second rank is a socket that keeps what comes, and passes it on.
        let mut job = job_across(&[0, 1]);
        let tap = UdpSocket::bind("127.0.0.1:0").expect("a port");
        tap.set_nonblocking(true).expect("set");
        let there = job[0].1.map.ranks[1].udp_port;
        let here = job[0].1.map.ranks[0].udp_port;
        for (_, across) in &mut job {
            across.encrypts = encrypts;
            let other = 1 - across.rank as usize;
            across.map.ranks[other].udp_port = tap.local_addr().expect("bound").port();
        }
        let join = |rank| join_across(rank, order("udp"), Limits::default(), Bounds::default());
        let mut net: Vec<_> = job.into_iter().map(join).collect();
        let mut buffer = vec![0; text.len()];
        let receiving = receive(&mut net[1], from(0, 1), &mut buffer);
        let sending = send(&mut net[0], 1, 1, text);
        let (mut kept, mut datagram) = (Vec::new(), [0; 65_536]);
        until(&mut net, "the message does not arrive", |net| {
            while let Ok((length, from)) = tap.recv_from(&mut datagram) {
                kept.extend_from_slice(&datagram[..length]);
                let to = if from.port() == here { there } else { here };
                tap.send_to(&datagram[..length], ("127.0.0.1", to)).expect("sent");
            }
            net[1].is_complete(receiving)
        });
        net[0].release(sending);
        assert_eq!(net[1].take_outcome(receiving).expect("complete").fault, None);
        assert!(buffer == text);
        kept.windows(8).filter(|window| *window == &text[..8]).count()
    };
    assert!(heard(false) > 0, "what is not encrypted is read");
    assert_eq!(heard(true), 0);
}

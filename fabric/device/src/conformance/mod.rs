//! The conformance suite on the devices of this crate.

mod suite;

use crate::loopback::Loopback;
use crate::shm::{Segment, ShmDevice};
use crate::tcp::TcpDevice;
use suite::{DeviceNetwork, conformance};

struct InProcess;
impl DeviceNetwork for InProcess {
    type Endpoint = Loopback;
    fn of(members: u32) -> Vec<Loopback> {
        Loopback::network(members)
    }
}

struct Tcp;
impl DeviceNetwork for Tcp {
    type Endpoint = TcpDevice;
    fn of(members: u32) -> Vec<TcpDevice> {
        crate::tcp::network(members)
    }
}

struct EncryptedTcp;
impl DeviceNetwork for EncryptedTcp {
    type Endpoint = TcpDevice;
    fn of(members: u32) -> Vec<TcpDevice> {
        let mut net = crate::tcp::network(members);
        net.iter_mut().for_each(|device| device.set_encrypts(true));
        net
    }
}

struct SharedMemory;
impl DeviceNetwork for SharedMemory {
    type Endpoint = ShmDevice;
    fn of(members: u32) -> Vec<ShmDevice> {
        let segment = Segment::create(members).expect("segment");
        (0..members).map(|me| ShmDevice::join(segment.clone(), me).expect("join")).collect()
    }
}

conformance! {
    loopback: super::InProcess,
    tcp: super::Tcp,
    encrypted_tcp: super::EncryptedTcp,
    shm: super::SharedMemory,
}

/// Only a device with a doorbell sleeps.
mod sleeping {
    use super::suite::{LOST, Recorder, bytes, post};
    use super::*;
    use crate::contract::Device;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    fn drain<D: Device>(device: &mut D, sink: &mut Recorder) {
        while device.poll(sink) {}
    }

    /// One wait: polls once, then sleeps if it may. `asleep` says so from when nothing but a wake-up ends the wait.
    fn poll_or_sleep(device: &mut ShmDevice, me: u32, sink: &mut Recorder, asleep: &AtomicBool) -> bool {
        if device.poll(sink) {
            return false;
        }
        let sleeps = device.arm();
        if sleeps {
            asleep.store(true, Ordering::Release);
            let start = Instant::now();
            device.segment().doorbell(me).sleep(Some(LOST));
            assert!(start.elapsed() < LOST, "a lost wake-up");
            asleep.store(false, Ordering::Release);
        }
        device.disarm();
        sleeps
    }

    #[test]
    fn every_packet_wakes_its_sleeping_receiver() {
        const ROUNDS: i32 = 20_000;
        // In one round of so many the peer surely sleeps; in the others it may be about to.
        const SURE: i32 = 8;
        static ASLEEP: [AtomicBool; 2] = [AtomicBool::new(false), AtomicBool::new(false)];
        let let_sleep = |peer: usize, round: i32| {
            while round % SURE == 0 && !ASLEEP[peer].load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        };
        let threads: Vec<_> = SharedMemory::of(2)
            .into_iter()
            .zip([0u32, 1])
            .map(|(mut device, me)| {
                std::thread::spawn(move || {
                    let mut sink = Recorder::default();
                    let mut slept = 0;
                    for round in 0..ROUNDS {
                        if me == 0 {
                            let_sleep(1, round);
                            post(&mut device, me, 1, round, b"ping", false).expect("one at a time");
                        }
                        while sink.got.is_empty() {
                            slept += poll_or_sleep(&mut device, me, &mut sink, &ASLEEP[me as usize]) as i32;
                        }
                        assert_eq!(sink.got.pop_front().expect("not empty").head.tag, round);
                        if me == 1 {
                            let_sleep(0, round);
                            post(&mut device, me, 0, round, b"pong", false).expect("one at a time");
                        }
                    }
                    assert!(slept >= ROUNDS / SURE, "the test sleeps: {slept}");
                    device
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("member");
        }
    }

    #[test]
    fn every_credit_wakes_its_sleeping_sender() {
        const PACKETS: i32 = 30_000;
        let mut net = SharedMemory::of(2);
        let (mut receiver, mut sender) = (net.pop().expect("two"), net.pop().expect("two"));
        let sending = std::thread::spawn(move || {
            let mut sink = Recorder::default();
            for tag in 0..PACKETS {
                while post(&mut sender, 0, 1, tag, &bytes(if tag % 2 == 0 { 8 } else { 6000 }, 1), tag % 2 != 0)
                    .is_none()
                {
                    poll_or_sleep(&mut sender, 0, &mut sink, &AtomicBool::new(false));
                }
            }
            sender
        });
        let mut sink = Recorder::default();
        let mut next = 0;
        while next < PACKETS {
            poll_or_sleep(&mut receiver, 1, &mut sink, &AtomicBool::new(false));
            for packet in sink.got.drain(..) {
                assert_eq!(packet.head.tag, next);
                next += 1;
            }
        }
        sending.join().expect("sender");
    }

    #[test]
    fn a_credit_between_the_refusal_and_arming_is_not_overlooked() {
        let mut net = SharedMemory::of(2);
        let mut sink = Recorder::default();
        while post(&mut net[0], 0, 1, 0, b"x", false).is_some() {}
        drain(&mut net[1], &mut sink);
        assert!(!net[0].arm(), "there is room for what was refused");
        net[0].disarm();
        assert!(net[0].arm(), "nothing was refused since");
        net[0].disarm();
    }

    #[test]
    fn who_lies_down_gives_back_what_it_has_consumed() {
        let mut net = SharedMemory::of(2);
        let mut sink = Recorder::default();
        while post(&mut net[0], 0, 1, 0, b"x", false).is_some() {}
        for _ in 0..3 {
            net[1].poll(&mut sink);
        }
        net[1].arm();
        assert!(post(&mut net[0], 0, 1, 0, b"x", false).is_some());
        net[1].disarm();
    }
}

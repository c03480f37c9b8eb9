//! Threads and processes that really sleep, and are really woken.

mod common;
use common::*;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weft_fabric::{
    Bounds, DeliveryThread, Driven, Endpoint, Limits, Monitor, Outside, Peer, Segment, Selector, SendMode,
};

fn sleepy(segment: &Segment, me: u32) -> Endpoint {
    Endpoint::join_segment_with(segment.clone(), me, Limits::default(), ASLEEP).expect("join")
}

/// A value that lives until the process ends, as a program's monitor does. It stays reachable, so that a leak checker
/// knows that it is meant.
fn for_good<T: Sync>(value: T) -> &'static T {
    static KEPT: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let value: &'static T = Box::leak(Box::new(value));
    KEPT.lock().expect("no holder panics").push(std::ptr::from_ref(value) as usize);
    value
}

fn monitor(segment: &Segment, me: u32, threads: bool) -> &'static Monitor<World> {
    let world = for_good(Monitor::<World>::new());
    world.open(World(sleepy(segment, me)), threads);
    world
}

fn send_wait(world: &Monitor<World>, to: u32, tag: i32, data: &[u8]) {
    let request = send(&mut world.enter().0, to, tag, data);
    assert_eq!(wait(world, request).fault, None);
}

fn receive_wait(world: &Monitor<World>, selector: Selector, buffer: &mut [u8]) -> usize {
    let request = receive(&mut world.enter().0, selector, buffer);
    let outcome = wait(world, request);
    assert_eq!(outcome.fault, None);
    outcome.length as usize
}

fn hand_over(world: &Monitor<World>, me: u32, rounds: i32) {
    let mut buffer = [0u8; 8];
    for round in 0..rounds {
        // Sometimes long enough that the other side lies down, often while it does.
        for _ in 0..round as u32 * 7919 % 400 {
            std::hint::spin_loop();
        }
        if me == 0 {
            send_wait(world, 1, 1, &round.to_le_bytes());
        }
        assert_eq!(receive_wait(world, from(1 - me, 1), &mut buffer), 4);
        assert_eq!(buffer[..4], round.to_le_bytes());
        if me == 1 {
            send_wait(world, 0, 1, &round.to_le_bytes());
        }
    }
}

#[test]
fn no_wake_up_is_lost_in_a_hundred_thousand_hand_overs() {
    watch(|| {
        let segment = Segment::create(2).expect("segment");
        let threads = [0, 1].map(|me| {
            let world = monitor(&segment, me, false);
            std::thread::spawn(move || {
                hand_over(world, me, 50_000);
                // How often depends on who else wants the cores: an answer may be there before anybody has lain down.
                assert!(world.enter().0.counters().sleeps > 500, "the test sleeps");
            })
        });
        for thread in threads {
            thread.join().expect("member");
        }
    });
}

#[test]
fn processes_wake_each_other_too() {
    watch(|| {
        let segment = Segment::create(2).expect("segment");
        let child = fork(|| hand_over(monitor(&segment, 1, false), 1, 20_000));
        hand_over(monitor(&segment, 0, false), 0, 20_000);
        assert_eq!(reap(child), 0);
    });
}

/// Several threads of each of two processes' worth of endpoints, each with a tag of its own.
#[test]
fn threads_that_share_an_endpoint_all_wake() {
    watch(|| {
        const THREADS: i32 = 4;
        let segment = Segment::create(2).expect("segment");
        let worlds = [monitor(&segment, 0, true), monitor(&segment, 1, true)];
        let mut threads = Vec::new();
        for (me, world) in worlds.into_iter().enumerate() {
            for tag in 0..THREADS {
                threads.push(std::thread::spawn(move || {
                    let mut buffer = vec![0u8; 200_000];
                    for round in 0..3000usize {
                        let length = if round % 100 == 99 { 200_000 } else { round % 60 };
                        let data = bytes(length, round + tag as usize);
                        if me == 0 {
                            send_wait(world, 1, tag, &data);
                        }
                        assert_eq!(receive_wait(world, from(1 - me as u32, tag), &mut buffer), length);
                        assert!(buffer[..length] == data);
                        if me == 1 {
                            send_wait(world, 0, tag, &data);
                        }
                    }
                }));
            }
        }
        threads.into_iter().for_each(|thread| thread.join().expect("thread"));
    });
}

/// What one thread does ends what another one of the same process sleeps for.
#[test]
fn threads_of_one_process_wake_each_other() {
    watch(|| {
        let segment = Segment::create(1).expect("segment");
        let world = monitor(&segment, 0, true);
        let threads: Vec<_> = (0..4)
            .map(|me| {
                std::thread::spawn(move || {
                    let mut buffer = [0u8; 8];
                    for round in 0..5000u32 {
                        // A ring of four: 0 starts it, each hands on what it got.
                        if me == 0 {
                            send_wait(world, 0, 1, &round.to_le_bytes());
                        }
                        receive_wait(world, from(0, if me == 0 { 4 } else { me }), &mut buffer);
                        assert_eq!(buffer[..4], round.to_le_bytes());
                        if me > 0 {
                            send_wait(world, 0, me + 1, &round.to_le_bytes());
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("thread"));
    });
}

/// Sender and receiver both sleep whenever they can while rings and bulk areas are full.
#[test]
fn a_sender_that_waits_for_room_sleeps_and_wakes() {
    watch(|| {
        let segment = Segment::create(2).expect("segment");
        let (out, into) = (monitor(&segment, 0, false), monitor(&segment, 1, false));
        let sending = std::thread::spawn(move || {
            let data = bytes(30_000, 1);
            for round in 0..10_000 {
                send_wait(out, 1, 1, &data[..if round % 2 == 0 { 30_000 } else { 40 }]);
            }
        });
        let mut buffer = vec![0; 30_000];
        for round in 0..10_000 {
            assert_eq!(receive_wait(into, from(0, 1), &mut buffer), if round % 2 == 0 { 30_000 } else { 40 });
        }
        sending.join().expect("sender");
    });
}

#[test]
fn a_killed_peer_does_not_take_the_survivor_with_it() {
    for moment in 0..20 {
        let segment = Segment::create(2).expect("segment");
        let child = fork(|| {
            let mut at = sleepy(&segment, 1);
            let data = bytes(500_000, 1);
            for i in 0.. {
                let length = [8, 5000, 30_000, 500_000][i % 4];
                let request = send(&mut at, 0, 1, &data[..length]);
                at.release(request);
                at.progress();
            }
        });
        let mut at =
            Endpoint::join_segment_with(segment.clone(), 0, Limits::default(), Bounds::default()).expect("join");
        let mut buffers: Vec<Vec<u8>> = (0..200).map(|_| vec![0; 500_000]).collect();
        for buffer in &mut buffers {
            receive(&mut at, from(1, 1), buffer);
        }
        while at.counters().receives < 1 + moment * 9 {
            at.progress();
        }
        // SAFETY: our child.
        unsafe { libc::kill(child, libc::SIGKILL) };
        assert_eq!(reap(child), libc::SIGKILL);
        for _ in 0..2000 {
            at.progress();
        }
        let data = [7u8; 40];
        for _ in 0..300 {
            let request = send_as(&mut at, 1, 1, &data, SendMode::Standard);
            at.release(request);
        }
        at.progress();
    }
}

/// Counts how often it may look before a sleep; what it waits for nobody wakes it for.
struct Looker {
    endpoint: Endpoint,
    looks: u32,
}

impl Driven for Looker {
    fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    fn advance(&mut self) -> Option<Outside> {
        None
    }

    fn idle(&mut self, sleeps: bool) -> bool {
        self.looks += u32::from(sleeps);
        // At the last look it changes something itself.
        self.looks == 4
    }

    fn longest_sleep(&self) -> Option<Duration> {
        (self.looks < 4).then_some(Duration::from_millis(1))
    }
}

#[test]
fn what_is_driven_looks_before_each_sleep_and_sleeps_no_longer_than_it_wants() {
    watch(|| {
        let segment = Segment::create(1).expect("segment");
        let world = for_good(Monitor::new());
        world.open(Looker { endpoint: sleepy(&segment, 0), looks: 0 }, false);
        assert_eq!(world.wait(WAIT, |looker: &mut Looker| (looker.looks == 4).then_some(looker.looks)), 4);
    });
}

/// Nobody of member 1 calls for anything: a thread delivers to it, and answers for it.
#[test]
fn a_thread_delivers_while_the_others_compute() {
    watch(|| {
        let segment = Segment::create(2).expect("segment");
        let (world, other) = (monitor(&segment, 0, false), monitor(&segment, 1, true));
        let told = Arc::new(AtomicU32::new(0));
        let counted = told.clone();
        world.enter().0.register_handler(2, move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        other.enter().0.register_handler(1, |call| call.reply(2, &[], b"").expect("a request"));
        // Long enough that its sender asks and waits for an answer.
        let data = bytes(3_000_000, 1);
        let mut buffer = vec![0; data.len()];
        let received = receive(&mut other.enter().0, from(0, 1), &mut buffer);
        let raw = [7u8; 100];
        let mut raw_buffer = [0u8; 100];
        // SAFETY: the buffer lives until the request is complete.
        let raw_received = unsafe { other.enter().0.post_raw_receive(Peer(0), raw_buffer.as_mut_ptr(), 100) };
        let thread = DeliveryThread::start(other).expect("a thread");
        for round in 1..=100 {
            world.wait(WAIT, |w| w.0.try_request(Peer(1), 1, &[], b"x").expect("it can be sent").then_some(()));
            world.wait(WAIT, |_| (told.load(Ordering::Relaxed) == round).then_some(()));
        }
        // SAFETY: the array is as long.
        let sent = unsafe { world.enter().0.try_raw_send(Peer(1), raw.as_ptr(), raw.len()) };
        assert_eq!(sent, raw.len());
        let sent = send_as(&mut world.enter().0, 1, 1, &data, SendMode::Synchronous);
        assert_eq!(wait(world, sent).fault, None);
        // What the sender was told last, the thread may not have heard yet. Looking moves nothing.
        while !other.enter().0.is_complete(received) {
            std::thread::yield_now();
        }
        drop(thread);
        let mut at = other.enter();
        assert_eq!(at.0.take_outcome(received).map(|outcome| outcome.fault), Some(None));
        assert_eq!(at.0.take_outcome(raw_received).map(|outcome| outcome.fault), Some(None));
        assert!(buffer == data && raw_buffer == raw);
    });
}

/// The threads of the program wait themselves at times, and compute at others.
#[test]
fn who_waits_beside_a_thread_that_delivers_is_woken() {
    watch(|| {
        let segment = Segment::create(2).expect("segment");
        let worlds = [monitor(&segment, 0, true), monitor(&segment, 1, true)];
        let deliveries = worlds.map(|world| DeliveryThread::start(world).expect("a thread"));
        let threads: Vec<_> = worlds
            .into_iter()
            .zip(0..)
            .map(|(world, me)| std::thread::spawn(move || hand_over(world, me, 5_000)))
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("member"));
        drop(deliveries);
    });
}

/// It ends whatever it does at that moment, and what it was told of before it began.
#[test]
fn a_thread_that_delivers_ends_when_it_is_told() {
    watch(|| {
        let segment = Segment::create(2).expect("segment");
        let world = monitor(&segment, 0, true);
        for round in 0..500 {
            let thread = DeliveryThread::start(world).expect("a thread");
            for _ in 0..round * 97 % 3000 {
                world.poll();
            }
            drop(thread);
        }
    });
}

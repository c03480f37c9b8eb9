//! Endpoints of different jobs on this host: they share memory two by two, and where that cannot be they go on without.

mod common;
use common::*;
use std::fs::read_to_string;
use std::sync::{Mutex, MutexGuard};
use weft_fabric::{Endpoint, Fault, Limits, Peer};
use weft_wire::segment::{Geometry, pair};

/// Where a segment of two has what its members send to each other, and how much that is.
const PAIRS_AT: usize = Geometry::of_two().pair(0, 0);
const PAIR_BYTES: usize = pair::BYTES;

/// The tests of this file count mappings and descriptors of their process.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// So many jobs of one, each of which knows all the others: peer `i` of job `j` is the `i`th of the others.
fn jobs(count: usize, limits: Limits) -> Vec<Endpoint> {
    let mut all: Vec<Endpoint> = (0..count).flat_map(|_| net_with(1, limits)).collect();
    let cards: Vec<_> = all.iter_mut().map(|at| at.card().expect("a card")).collect();
    for (me, at) in all.iter_mut().enumerate() {
        let others = cards.iter().enumerate().filter(|(other, _)| *other != me);
        for (number, (_, card)) in others.enumerate() {
            assert_eq!(at.adopt(card).expect("a peer"), Peer(number as u32 + 1));
        }
    }
    all
}

/// Sends `data` from job `from` to its peer `to`, which is job `at`, that knows it as `peer`.
fn pass(all: &mut [Endpoint], (from, to): (usize, u32), (at, peer): (usize, u32), data: &[u8], tag: i32) {
    let mut buffer = vec![0; data.len()];
    let received = receive(&mut all[at], common::from(peer, tag), &mut buffer);
    let sent = send(&mut all[from], to, tag, data);
    let outcome = finish(all, at, received);
    assert_eq!((outcome.length, outcome.fault), (data.len() as u64, None));
    assert!(finish(all, from, sent).fault.is_none());
    assert!(buffer == data, "{} bytes from {from} to {at}", data.len());
}

fn mappings() -> Vec<(usize, usize)> {
    let maps = read_to_string("/proc/self/maps").expect("readable");
    let range = |line: &str| {
        let (begin, end) = line.split(' ').next()?.split_once('-')?;
        Some((usize::from_str_radix(begin, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
    };
    maps.lines().filter(|line| line.contains("/memfd:weft-two")).filter_map(range).collect()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("readable").count()
}

#[test]
fn every_length_goes_through_shared_memory_both_ways() {
    let _alone = alone();
    for limits in [copying(), streaming(), choosing()] {
        let mut all = jobs(2, limits);
        for (tag, length) in [0, 8, 48, 49, 1000, 8192, 20_000, 70_000, 300_000, 3_000_000].into_iter().enumerate() {
            pass(&mut all, (0, 1), (1, 1), &bytes(length, tag), tag as i32);
            pass(&mut all, (1, 1), (0, 1), &bytes(length, tag + 1), tag as i32);
        }
        for at in &mut all {
            assert_eq!((at.counters().tcp_packets, at.counters().tcp_bytes), (0, 0));
            assert!(at.counters().shm_packets > 10);
        }
        assert_eq!(mappings().len(), 2, "both ends of one segment are here");
        assert!(all[0].counters().single_copy_bytes > 0 || limits.single_copy.is_none());
    }
    assert_eq!(mappings(), []);
}

/// Both have something to say before either has looked, and more of it than is kept for who has not answered.
#[test]
fn both_may_begin_at_once_and_what_they_say_keeps_its_order() {
    let _alone = alone();
    let mut all = jobs(2, Limits::default());
    let count = 3000usize;
    let said: Vec<Vec<u8>> = (0..count).map(|at| bytes(if at % 50 == 49 { 9000 } else { at % 48 }, at)).collect();
    let sends: Vec<_> =
        (0..2).map(|me| said.iter().map(|one| send(&mut all[me], 1, 7, one)).collect::<Vec<_>>()).collect();
    for me in [1, 0] {
        for one in &said {
            let mut buffer = vec![0; one.len()];
            let received = receive(&mut all[me], common::from(1, 7), &mut buffer);
            assert_eq!(finish(&mut all, me, received).length, one.len() as u64);
            assert!(buffer == *one);
        }
    }
    for (me, sends) in sends.into_iter().enumerate() {
        sends.into_iter().for_each(|sent| assert!(finish(&mut all, me, sent).fault.is_none()));
        assert_eq!(all[me].counters().tcp_packets, 0);
    }
    assert_eq!(mappings().len(), 2);
}

/// Who computes behind a send that is complete lets nobody wait for it.
#[test]
fn a_send_is_complete_when_it_has_left() {
    let _alone = alone();
    let mut all = jobs(2, Limits::default());
    let sent = send(&mut all[0], 1, 7, &[9; 8]);
    for _ in 0..1000 {
        all[0].progress();
        assert!(all[0].take_outcome(sent).is_none(), "the other side has not looked yet");
    }
    assert!(finish(&mut all, 0, sent).fault.is_none());
    let mut buffer = [0; 8];
    let received = receive(&mut all[1], common::from(1, 7), &mut buffer);
    assert_eq!(finish(&mut all[1..], 0, received).length, 8, "without the sender");
    assert_eq!(buffer, [9; 8]);
}

/// Nobody has memory for those it only knows.
#[test]
fn memory_is_for_those_who_talk() {
    let _alone = alone();
    let mut all = jobs(6, Limits::default());
    settle(&mut all);
    assert_eq!(mappings(), []);
    pass(&mut all, (2, 4), (4, 3), &bytes(100, 1), 1);
    assert_eq!(mappings().len(), 2);
    let before = descriptors();
    pass(&mut all, (0, 1), (1, 1), &bytes(100, 1), 1);
    assert_eq!((mappings().len(), descriptors()), (4, before), "a peer takes no descriptor");
}

/// What stands in the memory of two harms nobody but those two.
#[test]
fn nonsense_between_two_is_theirs_alone() {
    let _alone = alone();
    let (data, mut lost) = (bytes(3000, 1), 0);
    for seed in 1..40u64 {
        let mut all = jobs(3, Limits::default());
        pass(&mut all, (0, 1), (1, 1), &bytes(20_000, 1), 1);
        let [one, _] = mappings()[..] else { panic!("one segment, mapped twice") };
        pass(&mut all, (0, 2), (2, 1), &bytes(20_000, 1), 1);
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        for round in 0..200 {
            // Once the two have lost each other it is gone.
            let is_there = mappings().contains(&one);
            for _ in 0..if is_there { 50 } else { 0 } {
                // Mailboxes and the pages before the bulk areas more often than the rest, and values that mean
                // something.
                let pair = PAIRS_AT + (1 + random() as usize % 2) * PAIR_BYTES;
                let at = match random() % 4 {
                    0 => random() as usize % PAIRS_AT,
                    1 => random() as usize % (one.1 - one.0),
                    _ => pair + random() as usize % 8192,
                } & !7;
                let word = if random() % 2 == 0 { random() % 300 } else { random() << 33 | random() };
                // SAFETY: inside the mapping, which others change at any time as well; what stands there is atomics.
                unsafe { ((one.0 + at) as *const std::sync::atomic::AtomicU64).as_ref() }
                    .expect("no null")
                    .store(word, std::sync::atomic::Ordering::Relaxed);
            }
            if is_there {
                let [first, second] = [0, 1].map(|me| send(&mut all[me], 1, 3, &data));
                settle(&mut all);
                all[0].release(first);
                all[1].release(second);
            }
            pass(&mut all, (0, 2), (2, 1), &bytes(100 + round, 5), round as i32);
        }
        pass(&mut all, (2, 1), (0, 2), &bytes(200_000, 5), 1);
        pass(&mut all, (1, 2), (2, 2), &bytes(200_000, 5), 1);
        lost += u32::from(all[0].is_lost(Peer(1)) || all[1].is_lost(Peer(1)));
    }
    assert!(lost > 10, "{lost} have noticed it");
}

/// A job that ends is missed by all that it talked to, and what it has said before is heard.
#[test]
fn who_is_gone_is_heard_to_the_end_and_then_lost() {
    let _alone = alone();
    let mut all = jobs(2, streaming());
    pass(&mut all, (0, 1), (1, 1), &bytes(10, 1), 1);
    let said: Vec<Vec<u8>> = (0..60).map(|at| bytes(at, at)).collect();
    let sends: Vec<_> = said.iter().map(|one| send(&mut all[0], 1, 7, one)).collect();
    assert!(sends.into_iter().all(|sent| all[0].take_outcome(sent).is_some()));
    // As the end of its process, which closes all and says nothing.
    drop(all.remove(0));
    for one in &said {
        let mut buffer = vec![0; one.len()];
        let received = receive(&mut all[0], common::from(1, 7), &mut buffer);
        assert_eq!(finish(&mut all, 0, received).fault, None);
        assert!(buffer == *one);
    }
    let mut buffer = [0; 8];
    let more = receive(&mut all[0], common::from(1, 7), &mut buffer);
    assert_eq!(finish(&mut all, 0, more).fault, Some(Fault::PeerLost));
    settle(&mut all);
    assert_eq!(mappings(), []);
}

/// Without a descriptor there is no segment, and what is said goes over the connection, in its order.
#[test]
fn who_has_no_descriptor_talks_over_the_connection() {
    let _alone = alone();
    let mut all = jobs(2, Limits::default());
    // Both know each other; nothing has been sent. The connection is there when each has said that it uses it.
    let connected =
        || read_to_string("/proc/self/net/tcp").expect("readable").lines().filter(|l| l.contains(" 01 ")).count();
    while connected() < 2 {
        turn(&mut all);
    }
    for _ in 0..1000 {
        turn(&mut all);
    }
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid place; a limit of our own process, which is put back.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit), 0);
        let none = libc::rlimit { rlim_cur: 0, ..limit };
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &none), 0);
    }
    let said: Vec<Vec<u8>> = (0..100).map(|at| bytes(at * 100, at)).collect();
    let sends: Vec<_> = said.iter().map(|one| send(&mut all[0], 1, 7, one)).collect();
    settle(&mut all);
    // SAFETY: as above.
    unsafe { assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &limit), 0) };
    for one in &said {
        let mut buffer = vec![0; one.len()];
        let received = receive(&mut all[1], common::from(1, 7), &mut buffer);
        assert_eq!(finish(&mut all, 1, received).fault, None);
        assert!(buffer == *one);
    }
    sends.into_iter().for_each(|sent| assert!(finish(&mut all, 0, sent).fault.is_none()));
    pass(&mut all, (1, 1), (0, 1), &bytes(100_000, 3), 9);
    assert_eq!(mappings(), []);
    assert!(all.iter_mut().all(|at| at.counters().tcp_packets > 0 && at.counters().shm_packets == 0));
}

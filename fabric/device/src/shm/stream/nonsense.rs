//! A peer that writes anything into any word of a direction: the direction is broken, or it looks empty or full, and
//! nothing else happens.

use super::armed::{fire_all, scan};
use super::properties::{GENERATION, SIZE, StreamWorld};
use super::receiver::{ByteSource, FoundBytes, find};
use super::sender::{SendRoom, SendTarget, room};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use proptest::prelude::*;
use weft_wire::stream::arena::DirectionMode;

#[derive(Clone, Debug)]
enum NonsenseStep {
    Long(usize, u64),
    Word(usize, u32),
    Send(usize),
    Receive(usize, u64),
    Peek(u64),
    GiveBack,
    Leave,
    Want,
}

/// Numbers as a hostile peer would choose them: near the right ones, near the ends, and any.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..200u64, (0..200u64).prop_map(|n| u64::MAX - n), any::<u64>(), (0..64u32).prop_map(|n| 1 << n)]
}

fn steps() -> impl Strategy<Value = Vec<NonsenseStep>> {
    let step = prop_oneof![
        4 => (any::<usize>(), number()).prop_map(|(at, value)| NonsenseStep::Long(at, value)),
        2 => (any::<usize>(), number()).prop_map(|(at, value)| NonsenseStep::Word(at, value as u32 % 5)),
        3 => (0..200usize).prop_map(NonsenseStep::Send),
        3 => (0..200usize, 0..50u64).prop_map(|(bytes, kernel)| NonsenseStep::Receive(bytes, kernel)),
        1 => number().prop_map(NonsenseStep::Peek),
        1 => Just(NonsenseStep::GiveBack),
        1 => Just(NonsenseStep::Leave),
        1 => Just(NonsenseStep::Want),
    ];
    prop::collection::vec(step, 1..200)
}

fn longs(world: &StreamWorld) -> Vec<&AtomicU64> {
    let direction = &world.direction;
    let listener = &world.listeners[2];
    vec![
        &direction.sender.head,
        &direction.sender.kernel_before,
        &direction.sender.final_at,
        &direction.watch.wait,
        &direction.watch.set,
        &direction.receiver.tail,
        &direction.room.wait,
        &direction.room.set,
        &listener.summary,
        &listener.active[3],
        &listener.sleeping[5],
    ]
}

fn words(world: &StreamWorld) -> Vec<&AtomicU32> {
    let direction = &world.direction;
    let (sender, watch) = (&direction.sender, &direction.watch);
    vec![
        &sender.mode,
        &sender.attached,
        &sender.closing,
        &sender.gone,
        &watch.attached,
        &watch.want_kernel,
        &watch.reading_kernel,
        &watch.sending,
    ]
}

fn send(world: &StreamWorld, bytes: usize) {
    let mut sender = world.sender();
    if sender.route() == SendTarget::MaySwitch {
        sender.switch_to_ring(10);
    }
    assert!(sender.free(1) <= SIZE as u64);
    assert!(sender.push(&vec![7; bytes], |_| {}) <= bytes.min(SIZE));
    let _ = sender.publish();
    sender.end();
    if let SendRoom::Ring(free) = room(&world.direction, &world.own_sender, GENERATION, SIZE as u64) {
        assert!(free <= SIZE as u64);
    }
}

/// Who waits looks from outside only, and would wait for ever for what a call would call nonsense.
fn looks_see_what_calls_do(world: &StreamWorld, by_kernel: u64) {
    let found = find(&world.direction, &world.own_receiver, GENERATION, SIZE as u64, by_kernel);
    let mut receiver = world.receiver();
    let source = receiver.route(by_kernel);
    let there = if source == ByteSource::Ring { receiver.available(u64::MAX) } else { 0 };
    let waits = matches!(found, FoundBytes::Kernel | FoundBytes::Empty);
    assert!(!waits || !receiver.is_broken(), "{found:?}, {source:?}");
    assert!(
        found != FoundBytes::Kernel || source != ByteSource::Ring || there > 0,
        "the kernel is waited for, the ring is read"
    );
    receiver.end();
    let free = room(&world.direction, &world.own_sender, GENERATION, SIZE as u64);
    let mut sender = world.sender();
    let target = sender.route();
    assert!(target != SendTarget::Ring || free != SendRoom::Kernel, "the kernel is waited for, the ring is written");
    sender.end();
}

fn receive(world: &StreamWorld, bytes: usize, by_kernel: u64) {
    looks_see_what_calls_do(world, by_kernel);
    let mut receiver = world.receiver();
    if receiver.route(by_kernel) == ByteSource::Ring {
        assert!(receiver.available(u64::MAX) <= SIZE as u64);
        assert!(receiver.pull(&mut vec![0; bytes], |_| {}) <= bytes.min(SIZE));
    }
    let _ = receiver.publish();
    receiver.end();
    if let FoundBytes::Ring(there) = find(&world.direction, &world.own_receiver, GENERATION, SIZE as u64, by_kernel) {
        assert!(there <= SIZE);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_word_of_the_peer_leads_outside(steps in steps()) {
        let world = StreamWorld::new();
        for step in steps {
            match step {
                NonsenseStep::Long(at, value) => {
                    let longs = longs(&world);
                    longs[at % longs.len()].store(value, Ordering::Relaxed);
                }
                NonsenseStep::Word(at, value) => {
                    let words = words(&world);
                    words[at % words.len()].store(value, Ordering::Relaxed);
                }
                NonsenseStep::Send(bytes) => send(&world, bytes),
                NonsenseStep::Receive(bytes, by_kernel) => receive(&world, bytes, by_kernel),
                NonsenseStep::Peek(offset) => {
                    prop_assert!(world.receiver().peek(offset, &mut [0; 90]) <= SIZE);
                }
                NonsenseStep::GiveBack => {
                    let mut given = 0;
                    let _ = world.sender().give_back(|piece| {
                        given += piece.len();
                        Ok(piece.len())
                    });
                    prop_assert!(given <= SIZE);
                }
                NonsenseStep::Leave => {
                    let _ = world.sender().switch_to_kernel();
                }
                NonsenseStep::Want => {
                    let _ = world.receiver().want_kernel();
                }
            }
            let watch = &world.direction.watch;
            let _ = fire_all([&watch.wait, &watch.set], &world.listeners, 5, false);
            scan(&world.listeners[2], |slot| assert!(slot < weft_wire::stream::arena::SLOTS));
        }
    }
}

#[test]
fn impossible_positions_break_the_direction_and_stay_so() {
    let world = StreamWorld::new();
    send(&world, 20);
    world.receiver().route(10);
    for head in [SIZE as u64 + 1, u64::MAX] {
        world.own_receiver.broken.store(0, Ordering::Relaxed);
        world.direction.sender.head.store(head, Ordering::Relaxed);
        assert_eq!(world.receiver().available(u64::MAX), 0, "head {head}");
        assert_eq!(world.receiver().route(10), ByteSource::Broken, "head {head}");
    }
    world.direction.sender.head.store(20, Ordering::Relaxed);
    assert_eq!(world.receiver().route(10), ByteSource::Broken, "a right word comes too late");
    world.direction.receiver.tail.store(21, Ordering::Relaxed);
    assert_eq!(world.sender().push(&[0; SIZE], |_| {}), SIZE - 20 - 1, "what is known to be free, but a little");
    assert_eq!(world.sender().route(), SendTarget::Broken);
}

#[test]
fn an_end_behind_all_that_was_sent_breaks_the_direction() {
    let world = StreamWorld::new();
    send(&world, 20);
    receive(&world, 20, 10);
    world.direction.sender.final_at.store(21, Ordering::Relaxed);
    world.direction.sender.mode.store(DirectionMode::Final as u32, Ordering::Relaxed);
    let found = || find(&world.direction, &world.own_receiver, GENERATION, SIZE as u64, 10);
    assert_eq!(found(), FoundBytes::Broken, "the next byte would never come");
    assert_eq!(world.receiver().route(10), ByteSource::Broken);
    assert_eq!(found(), FoundBytes::Broken);
}

#[test]
fn a_receiver_that_is_none_any_more_breaks_the_direction() {
    let world = StreamWorld::new();
    send(&world, SIZE - 1);
    send(&world, 1);
    world.direction.watch.attached.store(GENERATION + 1, Ordering::Relaxed);
    assert_eq!(room(&world.direction, &world.own_sender, GENERATION, SIZE as u64), SendRoom::Broken);
    assert_eq!(world.sender().push(&[0], |_| {}), 0);
    assert_eq!(world.sender().route(), SendTarget::Broken);
}

//! A direction against a plain queue, and against a peer that writes anything into any word and any byte of the ring.

use super::{DatagramReceiver, DatagramSender, NextDatagram, close, open, waiting};
use crate::shm::stream::StreamRing;
use crate::shm::stream::lines::{OwnReceiver, OwnSender, SlotDirection, zero};
use crate::sync::Ordering;
use proptest::prelude::*;
use std::collections::VecDeque;
use weft_wire::stream::datagram::DatagramHeading;

const SIZE: usize = 128;
const GENERATION: u32 = 3;

struct DatagramWorld {
    direction: SlotDirection,
    own_sender: OwnSender,
    own_receiver: OwnReceiver,
    memory: Box<[u8; SIZE]>,
}

impl DatagramWorld {
    fn new() -> Self {
        let (own_sender, own_receiver) = (zero::own_sender(), zero::own_receiver());
        let world = Self { direction: zero::direction(), own_sender, own_receiver, memory: Box::new([0; SIZE]) };
        world.direction.watch.attached.store(GENERATION, Ordering::Relaxed);
        world
    }

    fn ring(&self) -> StreamRing<'_> {
        // SAFETY: the memory lives as long as the world, and only these rings of this one thread touch it.
        unsafe { StreamRing::new(self.memory.as_ptr().cast_mut(), SIZE) }
    }

    /// Sends in two pieces; false when the gate is closed or there is no room.
    fn send(&self, datagram: &[u8], after_kernel: bool) -> bool {
        let mut sender = DatagramSender::new(&self.direction, &self.own_sender, self.ring());
        if !sender.enter(GENERATION, false) {
            return false;
        }
        let fits = sender.begin(DatagramHeading { length: datagram.len() as u32, after_kernel });
        if fits {
            let (first, second) = datagram.split_at(datagram.len() / 2);
            sender.append(first);
            sender.append(second);
            sender.publish();
        }
        sender.leave();
        fits
    }

    fn receive(&self) -> Option<(Vec<u8>, bool)> {
        let mut receiver = DatagramReceiver::new(&self.direction, &self.own_receiver, self.ring());
        let NextDatagram::Datagram(heading) = receiver.look() else { return None };
        let mut datagram = vec![0; heading.length as usize];
        receiver.read(0, &mut datagram);
        receiver.take();
        Some((datagram, heading.after_kernel))
    }

    fn unread(&self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        DatagramSender::new(&self.direction, &self.own_sender, self.ring()).unread(|length, read| {
            let mut datagram = vec![0; length];
            read(&mut datagram);
            all.push(datagram);
            true
        });
        all
    }
}

#[derive(Clone, Debug)]
enum DatagramStep {
    Send(Vec<u8>, bool),
    Receive,
    Gate(bool),
    /// The peer writes.
    Word(usize, u64),
    Byte(usize, u8),
    Unread,
}

fn datagram() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..70)
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..300u64, (0..300u64).prop_map(|n| u64::MAX - n), any::<u64>(), (0..64u32).prop_map(|n| 1 << n)]
}

fn honest() -> impl Strategy<Value = DatagramStep> {
    prop_oneof![
        8 => (datagram(), any::<bool>()).prop_map(|(datagram, after)| DatagramStep::Send(datagram, after)),
        8 => Just(DatagramStep::Receive),
        1 => any::<bool>().prop_map(DatagramStep::Gate),
        1 => Just(DatagramStep::Unread),
    ]
}

fn hostile() -> impl Strategy<Value = DatagramStep> {
    prop_oneof![
        6 => honest(),
        2 => (any::<usize>(), number()).prop_map(|(at, value)| DatagramStep::Word(at, value)),
        3 => (0..SIZE, any::<u8>()).prop_map(|(at, value)| DatagramStep::Byte(at, value)),
    ]
}

impl DatagramWorld {
    fn word(&self, at: usize, value: u64) {
        let direction = &self.direction;
        match at % 6 {
            0 => direction.sender.head.store(value, Ordering::Relaxed),
            1 => direction.receiver.tail.store(value, Ordering::Relaxed),
            2 => direction.watch.want_kernel.store(value as u32, Ordering::Relaxed),
            3 => direction.watch.sending.store(value as u32, Ordering::Relaxed),
            4 => direction.watch.attached.store(value as u32, Ordering::Relaxed),
            _ => direction.sender.attached.store(value as u32, Ordering::Relaxed),
        }
    }
}

proptest! {
    #[test]
    fn datagrams_come_once_whole_and_in_order(steps in prop::collection::vec(honest(), 1..300)) {
        let world = DatagramWorld::new();
        let (mut queue, mut gate) = (VecDeque::new(), true);
        for step in steps {
            match step {
                DatagramStep::Send(datagram, after) => {
                    let room = queue.is_empty();
                    if world.send(&datagram, after) {
                        prop_assert!(gate, "the gate is closed");
                        queue.push_back((datagram, after));
                    } else {
                        prop_assert!(!gate || !room, "an empty ring takes any of these");
                    }
                }
                DatagramStep::Receive => {
                    prop_assert_eq!(waiting(&world.direction, &world.own_receiver), !queue.is_empty());
                    prop_assert_eq!(world.receive(), queue.pop_front());
                }
                DatagramStep::Gate(wide) => {
                    gate = wide;
                    if wide { open(&world.direction) } else { close(&world.direction) }
                }
                _ => {
                    let expected: Vec<Vec<u8>> = queue.iter().map(|(datagram, _)| datagram.clone()).collect();
                    prop_assert_eq!(world.unread(), expected);
                }
            }
        }
    }

    #[test]
    fn nonsense_from_the_peer_breaks_the_ring_and_nothing_else(steps in prop::collection::vec(hostile(), 1..300)) {
        let mut world = DatagramWorld::new();
        for step in steps {
            match step {
                DatagramStep::Send(datagram, after) => drop(world.send(&datagram, after)),
                DatagramStep::Receive => {
                    if let Some((datagram, _)) = world.receive() {
                        prop_assert!(datagram.len() <= SIZE);
                    }
                }
                DatagramStep::Gate(true) => open(&world.direction),
                DatagramStep::Gate(false) => close(&world.direction),
                DatagramStep::Word(at, value) => world.word(at, value),
                DatagramStep::Byte(at, value) => world.memory[at] = value,
                DatagramStep::Unread => prop_assert!(world.unread().len() <= SIZE / 8),
            }
        }
    }
}

#[test]
fn a_heading_that_leads_beyond_the_head_is_not_believed() {
    let mut world = DatagramWorld::new();
    assert!(world.send(b"abc", false));
    world.memory[0] = 60;
    assert_eq!(world.receive(), None);
    let mut receiver = DatagramReceiver::new(&world.direction, &world.own_receiver, world.ring());
    assert_eq!(receiver.look(), NextDatagram::Broken);
    assert!(!waiting(&world.direction, &world.own_receiver));
}

#[test]
fn a_tail_that_was_never_reached_is_not_believed() {
    let world = DatagramWorld::new();
    assert!(world.send(&[7; 100], false));
    world.direction.receiver.tail.store(1000, Ordering::Relaxed);
    assert!(!world.send(&[8; 100], false));
    world.direction.receiver.tail.store(112, Ordering::Relaxed);
    assert!(!world.send(&[8; 100], false), "broken for good");
}

//! A direction against a plain queue, and against a peer that writes anything into any word and any byte of the ring.

use super::{Next, Receiver, Sender, close, open, waiting};
use crate::shm::stream::Ring;
use crate::shm::stream::lines::{Direction, OwnReceiver, OwnSender, zero};
use crate::sync::Ordering;
use proptest::prelude::*;
use std::collections::VecDeque;
use weft_wire::stream::datagram::Heading;

const SIZE: usize = 128;
const GENERATION: u32 = 3;

struct World {
    direction: Direction,
    own_sender: OwnSender,
    own_receiver: OwnReceiver,
    memory: Box<[u8; SIZE]>,
}

impl World {
    fn new() -> Self {
        let (own_sender, own_receiver) = (zero::own_sender(), zero::own_receiver());
        let world = Self { direction: zero::direction(), own_sender, own_receiver, memory: Box::new([0; SIZE]) };
        world.direction.watch.attached.store(GENERATION, Ordering::Relaxed);
        world
    }

    fn ring(&self) -> Ring<'_> {
        // SAFETY: the memory lives as long as the world, and only these rings of this one thread touch it.
        unsafe { Ring::new(self.memory.as_ptr().cast_mut(), SIZE) }
    }

    /// Sends in two pieces; false when the gate is closed or there is no room.
    fn send(&self, datagram: &[u8], after_kernel: bool) -> bool {
        let mut sender = Sender::new(&self.direction, &self.own_sender, self.ring());
        if !sender.enter(GENERATION, false) {
            return false;
        }
        let fits = sender.begin(Heading { length: datagram.len() as u32, after_kernel });
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
        let mut receiver = Receiver::new(&self.direction, &self.own_receiver, self.ring());
        let Next::Datagram(heading) = receiver.look() else { return None };
        let mut datagram = vec![0; heading.length as usize];
        receiver.read(0, &mut datagram);
        receiver.take();
        Some((datagram, heading.after_kernel))
    }

    fn unread(&self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        Sender::new(&self.direction, &self.own_sender, self.ring()).unread(|length, read| {
            let mut datagram = vec![0; length];
            read(&mut datagram);
            all.push(datagram);
            true
        });
        all
    }
}

#[derive(Clone, Debug)]
enum Step {
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

fn honest() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (datagram(), any::<bool>()).prop_map(|(datagram, after)| Step::Send(datagram, after)),
        8 => Just(Step::Receive),
        1 => any::<bool>().prop_map(Step::Gate),
        1 => Just(Step::Unread),
    ]
}

fn hostile() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => honest(),
        2 => (any::<usize>(), number()).prop_map(|(at, value)| Step::Word(at, value)),
        3 => (0..SIZE, any::<u8>()).prop_map(|(at, value)| Step::Byte(at, value)),
    ]
}

impl World {
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
        let world = World::new();
        let (mut queue, mut gate) = (VecDeque::new(), true);
        for step in steps {
            match step {
                Step::Send(datagram, after) => {
                    let room = queue.is_empty();
                    if world.send(&datagram, after) {
                        prop_assert!(gate, "the gate is closed");
                        queue.push_back((datagram, after));
                    } else {
                        prop_assert!(!gate || !room, "an empty ring takes any of these");
                    }
                }
                Step::Receive => {
                    prop_assert_eq!(waiting(&world.direction, &world.own_receiver), !queue.is_empty());
                    prop_assert_eq!(world.receive(), queue.pop_front());
                }
                Step::Gate(wide) => {
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
        let mut world = World::new();
        for step in steps {
            match step {
                Step::Send(datagram, after) => drop(world.send(&datagram, after)),
                Step::Receive => {
                    if let Some((datagram, _)) = world.receive() {
                        prop_assert!(datagram.len() <= SIZE);
                    }
                }
                Step::Gate(true) => open(&world.direction),
                Step::Gate(false) => close(&world.direction),
                Step::Word(at, value) => world.word(at, value),
                Step::Byte(at, value) => world.memory[at] = value,
                Step::Unread => prop_assert!(world.unread().len() <= SIZE / 8),
            }
        }
    }
}

#[test]
fn a_heading_that_leads_beyond_the_head_is_not_believed() {
    let mut world = World::new();
    assert!(world.send(b"abc", false));
    world.memory[0] = 60;
    assert_eq!(world.receive(), None);
    let mut receiver = Receiver::new(&world.direction, &world.own_receiver, world.ring());
    assert_eq!(receiver.look(), Next::Broken);
    assert!(!waiting(&world.direction, &world.own_receiver));
}

#[test]
fn a_tail_that_was_never_reached_is_not_believed() {
    let world = World::new();
    assert!(world.send(&[7; 100], false));
    world.direction.receiver.tail.store(1000, Ordering::Relaxed);
    assert!(!world.send(&[8; 100], false));
    world.direction.receiver.tail.store(112, Ordering::Relaxed);
    assert!(!world.send(&[8; 100], false), "broken for good");
}

//! A direction against a plain queue, for any order of operations and any place of the switches.

use super::armed::BellCalls;
use super::bytes::StreamRing;
use super::lines::{OwnReceiver, OwnSender, SideListener, SlotDirection, zero};
use super::receiver::{ByteSource, StreamReceiver};
use super::sender::{SendTarget, StreamSender};
use crate::sync::Ordering;
use proptest::prelude::*;
use std::collections::VecDeque;

pub(super) const SIZE: usize = 64;
pub(super) const GENERATION: u32 = 3;

/// One direction with memory of its own.
pub(super) struct StreamWorld {
    pub direction: SlotDirection,
    pub own_sender: OwnSender,
    pub own_receiver: OwnReceiver,
    memory: Box<[u8; SIZE]>,
    pub listeners: Vec<SideListener>,
}

impl StreamWorld {
    pub fn new() -> Self {
        let world = Self {
            direction: zero::direction(),
            own_sender: zero::own_sender(),
            own_receiver: zero::own_receiver(),
            memory: Box::new([0; SIZE]),
            listeners: (0..8).map(|_| zero::listener()).collect(),
        };
        world.direction.sender.attached.store(GENERATION, Ordering::Relaxed);
        world.direction.watch.attached.store(GENERATION, Ordering::Relaxed);
        world
    }

    pub fn ring(&self) -> StreamRing<'_> {
        // SAFETY: the memory lives as long as the world, and only these rings of this one thread touch it.
        unsafe { StreamRing::new(self.memory.as_ptr().cast_mut(), SIZE) }
    }

    pub fn sender(&self) -> StreamSender<'_, StreamRing<'_>> {
        StreamSender::new(&self.direction, &self.own_sender, self.ring(), &self.listeners, (5, GENERATION, false))
    }

    pub fn receiver(&self) -> StreamReceiver<'_, StreamRing<'_>> {
        StreamReceiver::new(&self.direction, &self.own_receiver, self.ring(), &self.listeners, (5, GENERATION, false))
    }
}

#[derive(Clone, Debug)]
enum StreamStep {
    Send(usize),
    /// Pushed by a process that died before it published.
    SendAndDie(usize),
    Receive(usize),
    Peek(u64, usize),
    Skip(usize),
    SwitchToKernel,
    WantKernel,
}

fn steps() -> impl Strategy<Value = Vec<StreamStep>> {
    let step = prop_oneof![
        60 => (1..90usize).prop_map(StreamStep::Send),
        5 => (1..90usize).prop_map(StreamStep::SendAndDie),
        60 => (1..90usize).prop_map(StreamStep::Receive),
        10 => (0..80u64, 1..40usize).prop_map(|(offset, bytes)| StreamStep::Peek(offset, bytes)),
        10 => (1..40usize).prop_map(StreamStep::Skip),
        1 => Just(StreamStep::SwitchToKernel),
        1 => Just(StreamStep::WantKernel),
    ];
    prop::collection::vec(step, 1..400)
}

/// The kernel's stream, and what was counted there.
#[derive(Default)]
struct Kernel {
    bytes: VecDeque<u8>,
    sent: u64,
    received: u64,
}

impl Kernel {
    fn send(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        self.sent += bytes.len() as u64;
    }

    fn receive(&mut self, most: usize) -> Vec<u8> {
        let got: Vec<u8> = self.bytes.drain(..most.min(self.bytes.len())).collect();
        self.received += got.len() as u64;
        got
    }
}

fn send(world: &StreamWorld, kernel: &mut Kernel, bytes: &[u8]) -> usize {
    let mut sender = world.sender();
    if sender.route() == SendTarget::GiveBack {
        let given = sender.give_back(|piece| {
            kernel.send(piece);
            Ok(piece.len())
        });
        assert_eq!(given.expect("the kernel takes all"), BellCalls::NONE);
    }
    // The switch comes a while after the beginning.
    if sender.route() == SendTarget::MaySwitch && kernel.sent > 100 {
        sender.switch_to_ring(kernel.sent);
    }
    let sent = match sender.route() {
        SendTarget::Ring => sender.push(bytes, |_| {}),
        SendTarget::Kernel | SendTarget::MaySwitch => {
            kernel.send(bytes);
            bytes.len()
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(sender.publish(), BellCalls::NONE);
    sender.end();
    sent
}

fn receive(world: &StreamWorld, kernel: &mut Kernel, most: usize) -> Vec<u8> {
    let mut receiver = world.receiver();
    let got = match receiver.route(kernel.received) {
        ByteSource::Kernel(limit) => kernel.receive(limit.map_or(most, |limit| most.min(limit as usize))),
        ByteSource::Ring => {
            let mut place = vec![0; most];
            let bytes = receiver.pull(&mut place, |_| {});
            place.truncate(bytes);
            place
        }
        ByteSource::Broken => panic!("nobody broke it"),
    };
    assert_eq!(receiver.publish(), BellCalls::NONE);
    receiver.end();
    got
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_sent_is_received_in_order_over_every_switch(steps in steps()) {
        let (world, mut kernel) = (StreamWorld::new(), Kernel::default());
        let (mut queue, mut next) = (VecDeque::new(), 0u8);
        for step in steps {
            match step {
                StreamStep::Send(length) => {
                    let bytes: Vec<u8> = (0..length).map(|n| next.wrapping_add(n as u8)).collect();
                    let sent = send(&world, &mut kernel, &bytes);
                    queue.extend(&bytes[..sent]);
                    next = next.wrapping_add(sent as u8);
                }
                StreamStep::SendAndDie(length) => {
                    world.sender().push(&vec![0xee; length], |_| {});
                    world.sender().end();
                }
                StreamStep::Receive(most) => {
                    let got = receive(&world, &mut kernel, most);
                    let right: Vec<u8> = queue.drain(..got.len()).collect();
                    prop_assert_eq!(got, right);
                }
                StreamStep::Peek(offset, length) => {
                    let mut place = vec![0; length];
                    let mut receiver = world.receiver();
                    // How many bytes of the kernel come first, and how many the ring has behind them.
                    let (first, ring) = match receiver.route(kernel.received) {
                        ByteSource::Ring => (0, u64::MAX),
                        ByteSource::Kernel(Some(first)) => (first, receiver.ahead().0),
                        _ => (0, 0),
                    };
                    if offset < ring {
                        let bytes = receiver.peek(offset, &mut place);
                        let skipped = (first + offset) as usize;
                        let right: Vec<u8> = queue.iter().skip(skipped).take(bytes).copied().collect();
                        prop_assert_eq!(&place[..bytes], &right[..]);
                        prop_assert!(first == 0 || bytes as u64 == (ring - offset).min(length as u64));
                    }
                    receiver.end();
                }
                StreamStep::Skip(most) => {
                    let mut receiver = world.receiver();
                    if receiver.route(kernel.received) == ByteSource::Ring {
                        let bytes = receiver.skip(most as u64);
                        queue.drain(..bytes as usize);
                        prop_assert_eq!(receiver.publish(), BellCalls::NONE);
                    }
                    receiver.end();
                }
                // Also after the receiver's wish: then it leaves the rest in the ring.
                StreamStep::SwitchToKernel => {
                    prop_assert_eq!(world.sender().switch_to_kernel(), BellCalls::NONE);
                    prop_assert!(world.sender().settled());
                    world.sender().end();
                }
                StreamStep::WantKernel => {
                    let done = world.receiver().want_kernel();
                    let in_ring = world.direction.sender.head.load(Ordering::Relaxed)
                        - world.own_receiver.tail.load(Ordering::Relaxed);
                    // Once given back, the head does not count any more.
                    let given = world.own_sender.giving.load(Ordering::Relaxed) != 0;
                    prop_assert_eq!(done, in_ring == 0 || given);
                }
            }
        }
        send(&world, &mut kernel, &[]);
        while !queue.is_empty() {
            let got = receive(&world, &mut kernel, 1000);
            prop_assert!(!got.is_empty(), "{} bytes are lost", queue.len());
            let right: Vec<u8> = queue.drain(..got.len()).collect();
            prop_assert_eq!(got, right);
        }
    }

    #[test]
    fn what_a_dead_sender_had_not_given_back_is_read_from_the_ring(before in 0..60usize, read in 0..60usize, given in 0..60usize) {
        let (world, mut kernel) = (StreamWorld::new(), Kernel::default());
        let bytes: Vec<u8> = (0..60).collect();
        kernel.send(&[99; 101]);
        prop_assert_eq!(send(&world, &mut kernel, &bytes[..before]), before);
        let mut got = receive(&world, &mut kernel, 101);
        prop_assert_eq!(got.len(), 101);
        got = receive(&world, &mut kernel, read);
        let done = world.receiver().want_kernel();
        prop_assert_eq!(done, got.len() == before);
        // The kernel takes so many bytes, then the sender is no more.
        let mut room = given;
        let mut sender = world.sender();
        let result = sender.give_back(|piece| {
            let taken = piece.len().min(room);
            room -= taken;
            kernel.send(&piece[..taken]);
            if taken == 0 { Err(std::io::ErrorKind::WouldBlock.into()) } else { Ok(taken) }
        });
        sender.end();
        prop_assert_eq!(result.is_ok(), before - got.len() <= given);
        for _ in 0..4 {
            got.extend(receive(&world, &mut kernel, 7));
            got.extend(receive(&world, &mut kernel, 100));
            if kernel.bytes.is_empty() {
                let mut receiver = world.receiver();
                receiver.kernel_ended(kernel.received);
                prop_assert_eq!(receiver.publish(), BellCalls::NONE);
                receiver.end();
            }
        }
        prop_assert_eq!(&got[..], &bytes[..before]);
    }
}

#[test]
fn a_short_send_fits_behind_one_that_was_cut() {
    let world = StreamWorld::new();
    let mut sender = world.sender();
    sender.switch_to_ring(0);
    let cut = sender.push(&[1; 2 * SIZE], |_| ());
    assert!(cut < SIZE && cut > SIZE / 2, "{cut}");
    assert_eq!((sender.push(&[2], |_| ()), sender.push(&[3; SIZE], |_| ())), (1, 0));
}

#[test]
fn what_was_given_back_before_the_ring_was_reached_follows_without_a_limit() {
    let (world, mut kernel) = (StreamWorld::new(), Kernel::default());
    kernel.send(&[1; 101]);
    assert_eq!(send(&world, &mut kernel, &[2; 20]), 20);
    assert!(!world.receiver().want_kernel());
    assert_eq!(send(&world, &mut kernel, &[3; 5]), 5);
    assert_eq!(world.receiver().route(kernel.received), ByteSource::Kernel(None));
    assert_eq!(receive(&world, &mut kernel, 1000), [&[1; 101][..], &[2; 20], &[3; 5]].concat());
}

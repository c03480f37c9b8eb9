//! Every interleaving of a direction's two ends, within a bound on preemptions, and what each labelled ordering is for.
//!
//! The lock is not modelled: it is a word of the kernel's. Bytes stand in loom's cells, which fail on any access that
//! is not ordered before or after another one.

use super::armed::{BellCalls, arm, lie_down, scan, sleeper_barrier};
use super::bytes::RingBytes;
use super::lines::{OwnReceiver, OwnSender, SideListener, SlotDirection, zero};
use super::receiver::{ByteSource, FoundBytes, StreamReceiver, find};
use super::sender::{SendTarget, StreamSender};
use crate::sync::{AtomicU32, Ordering};
use loom::cell::UnsafeCell;
use loom::thread;
use std::sync::Arc;
use weft_wire::stream::arena::{Armed, DirectionMode};

fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

const SIZE: usize = 2;
const GENERATION: u32 = 1;

/// A ring of cells, each written and read as a whole.
struct StreamCells([UnsafeCell<u8>; SIZE]);

impl RingBytes for &StreamCells {
    fn size(&self) -> u64 {
        SIZE as u64
    }

    fn write(&self, at: u64, from: &[u8]) {
        for (n, byte) in from.iter().enumerate() {
            // SAFETY: loom checks that nobody else touches it.
            self.0[(at as usize + n) % SIZE].with_mut(|cell| unsafe { *cell = *byte });
        }
    }

    fn read(&self, at: u64, into: &mut [u8]) {
        for (n, byte) in into.iter_mut().enumerate() {
            // SAFETY: loom checks that nobody writes it.
            *byte = self.0[(at as usize + n) % SIZE].with(|cell| unsafe { *cell });
        }
    }
}

struct StreamPair {
    direction: SlotDirection,
    own_sender: OwnSender,
    own_receiver: OwnReceiver,
    cells: StreamCells,
    listeners: Vec<SideListener>,
    /// Stands for the kernel's stream: 1 when a byte was sent there behind those of the ring.
    kernel: AtomicU32,
}

// SAFETY: the cells are what the models are about; loom checks each access.
unsafe impl Send for StreamPair {}
// SAFETY: as above.
unsafe impl Sync for StreamPair {}

impl StreamPair {
    /// Both ends attached, and both in this mode.
    fn new(mode: DirectionMode, listeners: usize) -> Arc<Self> {
        let pair = Self {
            direction: zero::direction(),
            own_sender: zero::own_sender(),
            own_receiver: zero::own_receiver(),
            cells: StreamCells(std::array::from_fn(|_| UnsafeCell::new(0))),
            listeners: (0..listeners).map(|_| zero::listener()).collect(),
            kernel: AtomicU32::new(0),
        };
        pair.direction.sender.attached.store(GENERATION, Ordering::Relaxed);
        pair.direction.watch.attached.store(GENERATION, Ordering::Relaxed);
        for word in [&pair.direction.sender.mode, &pair.own_sender.phase, &pair.own_receiver.phase] {
            word.store(mode as u32, Ordering::Relaxed);
        }
        Arc::new(pair)
    }

    fn sender(&self) -> StreamSender<'_, &StreamCells> {
        StreamSender::new(&self.direction, &self.own_sender, &self.cells, &self.listeners, (0, GENERATION, false))
    }

    fn receiver(&self) -> StreamReceiver<'_, &StreamCells> {
        StreamReceiver::new(&self.direction, &self.own_receiver, &self.cells, &self.listeners, (0, GENERATION, false))
    }

    fn found(&self) -> FoundBytes {
        find(&self.direction, &self.own_receiver, GENERATION, SIZE as u64, 0)
    }

    /// Sends one byte and answers who is to be rung.
    fn send_one(&self) -> BellCalls {
        let mut sender = self.sender();
        assert_eq!(sender.push(&[1], |_| {}), 1);
        let calls = sender.publish();
        sender.end();
        calls
    }
}

#[test]
fn model_bytes_arrive_whole_and_their_room_is_used_only_after_it_was_given_back() {
    const BYTES: u8 = 3;
    explore(|| {
        let pair = StreamPair::new(DirectionMode::Ring, 0);
        let there = pair.clone();
        let sending = thread::spawn(move || {
            let mut sender = there.sender();
            for byte in 1..=BYTES {
                while sender.push(&[byte], |_| {}) == 0 {
                    thread::yield_now();
                }
                assert_eq!(sender.publish(), BellCalls::NONE);
            }
        });
        let mut receiver = pair.receiver();
        for byte in 1..=BYTES {
            let mut place = [0];
            while receiver.pull(&mut place, |_| {}) == 0 {
                thread::yield_now();
            }
            assert_eq!(place, [byte]);
            assert_eq!(receiver.publish(), BellCalls::NONE);
        }
        sending.join().expect("the sender");
    });
}

#[test]
fn model_a_byte_wakes_who_falls_asleep() {
    explore(|| {
        let pair = StreamPair::new(DirectionMode::Ring, 0);
        let there = pair.clone();
        let sending = thread::spawn(move || there.send_one());
        assert!(arm(&pair.direction.watch.wait, Armed::Bell(9)));
        sleeper_barrier(false);
        let empty = pair.found() == FoundBytes::Empty;
        let calls = sending.join().expect("the sender");
        assert!(!empty || calls == BellCalls([9, 0]), "asleep, and nobody rings");
    });
}

#[test]
fn model_room_wakes_who_falls_asleep() {
    explore(|| {
        let pair = StreamPair::new(DirectionMode::Ring, 0);
        let mut sender = pair.sender();
        assert_eq!(sender.push(&[1, 2], |_| {}), 2);
        assert_eq!(sender.publish(), BellCalls::NONE);
        let there = pair.clone();
        let receiving = thread::spawn(move || {
            let mut receiver = there.receiver();
            assert_eq!(receiver.pull(&mut [0], |_| {}), 1);
            receiver.publish()
        });
        assert!(arm(&pair.direction.room.wait, Armed::Bell(9)));
        sleeper_barrier(false);
        let full = sender.free(1) == 0;
        let calls = receiving.join().expect("the receiver");
        assert!(!full || calls == BellCalls([9, 0]), "asleep with room in the ring");
    });
}

#[test]
fn model_a_set_that_falls_asleep_is_rung_or_finds_the_mark() {
    explore(|| {
        let pair = StreamPair::new(DirectionMode::Ring, 1);
        assert!(arm(&pair.direction.watch.set, Armed::Set { listener: 0, sleeper: 3 }));
        let there = pair.clone();
        let sending = thread::spawn(move || there.send_one());
        lie_down(&pair.listeners[0], 3, 9);
        sleeper_barrier(false);
        let mut marked = false;
        scan(&pair.listeners[0], |slot| marked |= slot == 0);
        let calls = sending.join().expect("the sender");
        assert!(marked || calls == BellCalls([0, 9]), "asleep, not marked, and nobody rings");
    });
}

#[test]
fn model_the_switch_comes_with_its_position() {
    explore(|| {
        let pair = StreamPair::new(DirectionMode::Kernel, 0);
        let there = pair.clone();
        let sending = thread::spawn(move || {
            let mut sender = there.sender();
            assert_eq!(sender.route(), SendTarget::MaySwitch);
            sender.switch_to_ring(5);
        });
        let mut receiver = pair.receiver();
        let source = receiver.route(5);
        assert!(matches!(source, ByteSource::Kernel(None) | ByteSource::Ring), "{source:?}");
        sending.join().expect("the sender");
    });
}

#[test]
fn model_what_follows_the_ring_in_the_kernel_is_not_read_before_the_ring() {
    explore(|| {
        let pair = StreamPair::new(DirectionMode::Kernel, 0);
        // The byte is there from the beginning: its publication would come with a fence of the model's, which in truth
        // is none of the processor's.
        pair.own_sender.head.store(1, Ordering::Relaxed);
        pair.direction.sender.head.store(1, Ordering::Relaxed);
        let there = pair.clone();
        let sending = thread::spawn(move || {
            let mut sender = there.sender();
            sender.switch_to_ring(0);
            assert_eq!(sender.switch_to_kernel(), BellCalls::NONE);
            if sender.settled() {
                there.kernel.store(1, Ordering::SeqCst);
            }
        });
        let mut receiver = pair.receiver();
        if receiver.route(0) == ByteSource::Kernel(None) {
            assert_eq!(pair.kernel.load(Ordering::SeqCst), 0, "the byte of the ring was overtaken");
        }
        receiver.end();
        sending.join().expect("the sender");
    });
}

#[test]
fn model_who_may_read_the_kernel_has_nothing_in_the_ring() {
    explore(|| {
        let pair = StreamPair::new(DirectionMode::Ring, 0);
        let there = pair.clone();
        let sending = thread::spawn(move || {
            let mut sender = there.sender();
            if sender.route() == SendTarget::Ring {
                sender.push(&[1], |_| {});
                assert_eq!(sender.publish(), BellCalls::NONE);
            }
            sender.end();
        });
        let done = pair.receiver().want_kernel();
        sending.join().expect("the sender");
        assert!(!done || pair.direction.sender.head.load(Ordering::SeqCst) == 0, "a byte is left behind");
    });
}

#[test]
fn model_a_wish_that_crosses_a_switch_finds_the_rest_in_one_place() {
    explore(|| {
        let pair = StreamPair::new(DirectionMode::Ring, 0);
        // Two bytes, of which nothing was read; as above they are there from the beginning.
        for head in [&pair.own_sender.head, &pair.direction.sender.head] {
            head.store(2, Ordering::Relaxed);
        }
        let there = pair.clone();
        let sending = thread::spawn(move || {
            let mut sender = there.sender();
            if sender.route() == SendTarget::GiveBack {
                let given = sender.give_back(|piece| {
                    there.kernel.store(piece.len() as u32, Ordering::SeqCst);
                    Ok(piece.len())
                });
                assert!(given.is_ok());
            } else {
                assert_eq!(sender.switch_to_kernel(), BellCalls::NONE);
            }
            sender.end();
        });
        pair.receiver().want_kernel();
        sending.join().expect("the sender");
        let mut receiver = pair.receiver();
        match (receiver.route(0), pair.kernel.load(Ordering::SeqCst)) {
            (ByteSource::Kernel(None), 2) => assert_eq!(receiver.available(2), 0, "twice"),
            (ByteSource::Ring, 0) => assert_eq!(receiver.available(2), 2, "lost"),
            other => panic!("{other:?}"),
        }
    });
}

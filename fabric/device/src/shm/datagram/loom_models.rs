//! Every interleaving of a sender and a receiver of datagrams, within a bound on preemptions.

use super::{DatagramReceiver, DatagramSender, NextDatagram, close, is_inside, sleeper_barrier, waiting};
use crate::shm::stream::RingBytes;
use crate::shm::stream::lines::{OwnReceiver, OwnSender, SlotDirection, zero};
use crate::sync::Ordering;
use loom::cell::UnsafeCell;
use loom::thread;
use std::sync::Arc;
use weft_wire::stream::datagram::DatagramHeading;

fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// One record without a datagram.
const SIZE: usize = 8;
const GENERATION: u32 = 1;
const EMPTY: DatagramHeading = DatagramHeading { length: 0, after_kernel: false };

/// The ring in words of its alignment, each written and read as a whole.
struct DatagramCells(UnsafeCell<[u8; SIZE]>);

impl RingBytes for &DatagramCells {
    fn size(&self) -> u64 {
        SIZE as u64
    }

    fn write(&self, _: u64, from: &[u8]) {
        // SAFETY: loom checks that nobody else touches it.
        self.0.with_mut(|cell| unsafe { (&mut *cell)[..from.len()].copy_from_slice(from) });
    }

    fn read(&self, _: u64, into: &mut [u8]) {
        // SAFETY: loom checks that nobody writes it.
        self.0.with(|cell| unsafe { into.copy_from_slice(&(&*cell)[..into.len()]) });
    }
}

struct DatagramPair {
    direction: SlotDirection,
    own_sender: OwnSender,
    own_receiver: OwnReceiver,
    cells: DatagramCells,
}

// SAFETY: the cells are what the models are about; loom checks each access.
unsafe impl Send for DatagramPair {}
// SAFETY: as above.
unsafe impl Sync for DatagramPair {}

impl DatagramPair {
    fn new() -> Arc<Self> {
        let (own_sender, own_receiver) = (zero::own_sender(), zero::own_receiver());
        let cells = DatagramCells(UnsafeCell::new([0; SIZE]));
        let pair = Self { direction: zero::direction(), own_sender, own_receiver, cells };
        pair.direction.watch.attached.store(GENERATION, Ordering::Relaxed);
        Arc::new(pair)
    }

    fn sender(&self) -> DatagramSender<'_, &DatagramCells> {
        DatagramSender::new(&self.direction, &self.own_sender, &self.cells)
    }

    fn receiver(&self) -> DatagramReceiver<'_, &DatagramCells> {
        DatagramReceiver::new(&self.direction, &self.own_receiver, &self.cells)
    }

    /// Sends an empty datagram by the ring; false when the gate is closed or the ring full.
    fn send(&self) -> bool {
        let mut sender = self.sender();
        let open = sender.enter(GENERATION, false);
        let went = open && sender.begin(EMPTY);
        if went {
            sender.publish();
        }
        if open {
            sender.leave();
        }
        went
    }
}

#[test]
fn model_datagrams_arrive_whole_and_their_room_is_used_only_after_it_was_given_back() {
    const DATAGRAMS: usize = 2;
    explore(|| {
        let pair = DatagramPair::new();
        let there = pair.clone();
        let sending = thread::spawn(move || {
            for _ in 0..DATAGRAMS {
                // Without the gate, whose fence would order in the model what nothing orders in truth.
                let mut sender = there.sender();
                while !sender.begin(EMPTY) {
                    thread::yield_now();
                }
                sender.publish();
            }
        });
        let mut receiver = pair.receiver();
        for _ in 0..DATAGRAMS {
            while receiver.look() == NextDatagram::Nothing {
                thread::yield_now();
            }
            assert_eq!(receiver.look(), NextDatagram::Datagram(EMPTY));
            receiver.take();
        }
        sending.join().expect("the sender");
    });
}

#[test]
fn model_who_sleeps_leaves_nothing_in_the_ring() {
    explore(|| {
        let pair = DatagramPair::new();
        let there = pair.clone();
        let sending = thread::spawn(move || there.send());
        close(&pair.direction);
        sleeper_barrier(false);
        while is_inside(&pair.direction) {
            thread::yield_now();
        }
        let empty = !waiting(&pair.direction, &pair.own_receiver);
        let by_ring = sending.join().expect("the sender");
        assert!(!(empty && by_ring), "asleep, and a datagram lies in the ring");
    });
}

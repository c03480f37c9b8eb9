//! Every interleaving of the lock-free parts, within a bound on preemptions, and what each labelled ordering is for.
//!
//! Payload stands in loom's cells, which fail on any access that is not ordered before or after another one: so a
//! reused cell or bulk line that is overwritten while it is read shows, although on this machine it would not.

use super::copy::CopySlot;
use super::doorbell::Mailbox;
use super::ring::{BulkConsumer, BulkProducer, Cell, Consumer, Credits, Producer};
use crate::sync::{AtomicU32, AtomicU64, Label, Ordering};
use loom::cell::UnsafeCell;
use loom::thread;
use std::sync::Arc;
use weft_wire::cell::INLINE_WORDS;

fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

fn zeros<const N: usize>() -> [AtomicU64; N] {
    std::array::from_fn(|_| AtomicU64::new(0))
}

/// A pair of processes with payload that is plain memory.
struct PayloadPair {
    cells: Vec<Cell>,
    credits: Credits,
    payload: Vec<UnsafeCell<u64>>,
    starved: AtomicU32,
    doorbell: AtomicU32,
    orders: AtomicU32,
    bell: AtomicU64,
    active: Vec<AtomicU64>,
}

// SAFETY: the payload is what the models are about; loom checks each access.
unsafe impl Send for PayloadPair {}
// SAFETY: as above.
unsafe impl Sync for PayloadPair {}

impl PayloadPair {
    fn new(cells: usize, payload: usize, active: u64) -> Arc<Self> {
        Arc::new(Self {
            cells: (0..cells).map(|_| Cell { head: zeros(), inline: zeros::<INLINE_WORDS>() }).collect(),
            credits: Credits::default(),
            payload: (0..payload).map(|_| UnsafeCell::new(0)).collect(),
            starved: AtomicU32::new(0),
            doorbell: AtomicU32::new(0),
            orders: AtomicU32::new(1),
            bell: AtomicU64::new(0),
            active: vec![AtomicU64::new(active)],
        })
    }

    fn mailbox(&self) -> Mailbox<'_> {
        Mailbox {
            doorbell: &self.doorbell,
            active: &self.active,
            orders: &self.orders,
            bell: &self.bell,
            fences: false,
        }
    }

    fn write(&self, at: usize, value: u64) {
        // SAFETY: loom checks that nobody else touches it.
        self.payload[at].with_mut(|p| unsafe { *p = value });
    }

    fn read(&self, at: usize) -> u64 {
        // SAFETY: loom checks that nobody writes it.
        self.payload[at].with(|p| unsafe { *p })
    }

    fn is_rung(&self) -> bool {
        self.doorbell.load(Ordering::SeqCst) == 0
    }

    fn is_active(&self) -> bool {
        self.active[0].load(Ordering::SeqCst) == 1
    }
}

fn until<R>(mut answer: impl FnMut() -> Option<R>) -> R {
    loop {
        if let Some(answer) = answer() {
            return answer;
        }
        thread::yield_now();
    }
}

#[test]
fn model_a_cell_arrives_whole_and_is_reused_only_after_its_credit() {
    const MESSAGES: u64 = 3;
    explore(|| {
        let pair = PayloadPair::new(2, 2, 0);
        let there = pair.clone();
        let sender = thread::spawn(move || {
            let mut cells = Producer::new(&there.cells, &there.credits);
            for n in 0..MESSAGES {
                let cell = until(|| cells.vacant());
                cell.head[1].store(n + 1, Ordering::Relaxed);
                there.write(n as usize % 2, n + 1);
                cells.publish((n + 1) << 32);
            }
        });
        let mut cells = Consumer::new(&pair.cells, &pair.credits);
        for n in 0..MESSAGES {
            let (cell, first) = until(|| cells.arrived());
            assert_eq!(first >> 32, n + 1);
            assert_eq!(cell.head[1].load(Ordering::Relaxed), n + 1, "the words come with the stamp");
            assert_eq!(pair.read(n as usize % 2), n + 1);
            if cells.consume() {
                cells.report();
            }
        }
        sender.join().expect("the sender");
    });
}

#[test]
fn model_a_bulk_line_is_reused_only_after_its_credit() {
    const MESSAGES: u64 = 3;
    const AREA: usize = 128;
    explore(|| {
        let pair = PayloadPair::new(4, AREA / 64, 0);
        let there = pair.clone();
        let sender = thread::spawn(move || {
            let mut cells = Producer::new(&there.cells, &there.credits);
            let mut bulk = BulkProducer::new(&there.credits, AREA);
            for n in 0..MESSAGES {
                let (offset, length) = until(|| bulk.room(64));
                assert_eq!(length, 64);
                there.write(offset / 64, n + 1);
                bulk.take(length);
                cells.vacant().expect("there are more cells than messages");
                cells.publish((n + 1) << 32);
            }
        });
        let mut cells = Consumer::new(&pair.cells, &pair.credits);
        let mut bulk = BulkConsumer::new(&pair.credits, AREA);
        for n in 0..MESSAGES {
            until(|| cells.arrived());
            let offset = bulk.locate(64).expect("inside");
            assert_eq!(pair.read(offset / 64), n + 1);
            cells.consume();
            if bulk.consume(64) {
                bulk.report();
            }
        }
        sender.join().expect("the sender");
    });
}

/// Two lines: the receiver answers in the first one, keeps reading, and gives both back. The sender fills them anew
/// only when it has read the answer, too.
#[test]
fn model_borrowed_bytes_are_reused_only_after_the_answer_was_read() {
    const MESSAGES: u64 = 3;
    const AREA: usize = 128;
    explore(|| {
        let (pair, back) = (PayloadPair::new(4, AREA / 64, 0), PayloadPair::new(4, 0, 0));
        let (there, answers) = (pair.clone(), back.clone());
        let receiver = thread::spawn(move || {
            let mut cells = Consumer::new(&there.cells, &there.credits);
            let mut bulk = BulkConsumer::new(&there.credits, AREA);
            let mut answering = Producer::new(&answers.cells, &answers.credits);
            for n in 0..MESSAGES {
                until(|| cells.arrived());
                let offset = bulk.locate(64).expect("inside");
                assert_eq!(there.read(offset / 64), n + 1);
                cells.consume();
                bulk.consume(64);
                if n == 0 {
                    let offset = bulk.borrow(64).expect("it was just read");
                    there.write(offset / 64, 100);
                    answering.vacant().expect("an empty ring");
                    answering.publish((offset as u64 + 1) << 32);
                }
                if n == 1 {
                    bulk.report_all();
                }
            }
        });
        let mut cells = Producer::new(&pair.cells, &pair.credits);
        let mut bulk = BulkProducer::new(&pair.credits, AREA);
        let mut answers = Consumer::new(&back.cells, &back.credits);
        let mut answered = false;
        let mut look = |bulk: &mut BulkProducer<'_>| {
            if let (false, Some((_, first))) = (answered, answers.arrived()) {
                answered = true;
                assert_eq!(pair.read(((first >> 32) - 1) as usize / 64), 100);
                answers.consume();
                bulk.take_back();
            }
            answered.then_some(())
        };
        for n in 0..MESSAGES {
            let (offset, length) = until(|| {
                look(&mut bulk);
                bulk.room(64)
            });
            assert_eq!(length, 64);
            pair.write(offset / 64, n + 1);
            bulk.take(length);
            cells.vacant().expect("there are more cells than messages");
            cells.publish((n + 1) << 32);
        }
        until(|| look(&mut bulk));
        receiver.join().expect("the receiver");
    });
}

/// A sender posts and announces while the owner lies down: whichever way, the packet is not overlooked.
fn lie_down_against_a_packet(active: u64) {
    explore(move || {
        let pair = PayloadPair::new(2, 0, active);
        let there = pair.clone();
        let sender = thread::spawn(move || {
            let mut cells = Producer::new(&there.cells, &there.credits);
            cells.vacant().expect("an empty ring");
            cells.publish(1 << 32);
            there.mailbox().announce(0);
        });
        let cells = Consumer::new(&pair.cells, &pair.credits);
        let may_sleep = pair.mailbox().settle(|_| cells.arrived().is_some());
        sender.join().expect("the sender");
        assert!(!may_sleep || pair.is_rung(), "asleep, and nobody will ring");
        assert!(pair.is_active(), "awake, and nobody polls the ring");
    });
}

#[test]
fn model_a_known_sender_wakes_who_lies_down() {
    lie_down_against_a_packet(1);
}

#[test]
fn model_a_new_sender_wakes_who_lies_down() {
    lie_down_against_a_packet(0);
}

#[test]
fn model_a_credit_wakes_who_lies_down_for_want_of_it() {
    explore(|| {
        let pair = PayloadPair::new(1, 0, 0);
        let mut cells = Producer::new(&pair.cells, &pair.credits);
        cells.vacant().expect("an empty ring");
        cells.publish(1 << 32);
        let there = pair.clone();
        let receiver = thread::spawn(move || {
            let mut cells = Consumer::new(&there.cells, &there.credits);
            cells.arrived().expect("published before");
            cells.consume();
            cells.report();
            there.mailbox().wake_starved(&there.starved);
        });
        if cells.vacant().is_none() {
            pair.starved.store(1, Ordering::SeqCst);
            let may_sleep = pair.mailbox().settle(|_| false) && cells.vacant().is_none();
            receiver.join().expect("the receiver");
            assert!(!may_sleep || pair.is_rung(), "asleep with room in the ring");
        } else {
            receiver.join().expect("the receiver");
        }
    });
}

struct SharedModel {
    slot: CopySlot,
    chunks: Vec<UnsafeCell<u64>>,
}

// SAFETY: the chunks are what the model is about; loom checks each access.
unsafe impl Send for SharedModel {}
// SAFETY: as above.
unsafe impl Sync for SharedModel {}

impl SharedModel {
    /// Copies what can be claimed; true if this side finished the last chunk.
    fn copy_all(&self, generation: u32, value: u64) -> bool {
        let chunks = self.chunks.len() as u64;
        let mut last = false;
        while let Some(index) = self.slot.claim(generation, chunks) {
            // SAFETY: loom checks that the claim is ours alone.
            self.chunks[index as usize].with_mut(|p| unsafe { *p = value });
            last |= self.slot.finish(chunks, true).is_some();
        }
        last
    }
}

#[test]
fn model_a_chunk_has_one_copier_and_a_late_one_finds_nothing() {
    explore(|| {
        let shared = Arc::new(SharedModel {
            slot: CopySlot {
                taken: AtomicU32::new(0),
                failed: AtomicU32::new(0),
                claimed: AtomicU64::new(0),
                finished: AtomicU64::new(0),
            },
            chunks: (0..2).map(|_| UnsafeCell::new(0)).collect(),
        });
        let first = shared.slot.reset();
        let there = shared.clone();
        let sender = thread::spawn(move || there.copy_all(first, 1));
        let last_here = shared.copy_all(first, 1);
        if last_here {
            for chunk in &shared.chunks {
                // SAFETY: loom checks that the other side's write is over.
                assert_eq!(chunk.with(|p| unsafe { *p }), 1, "the last one sees all chunks");
            }
            // The slot's next message; the sender may still look for chunks of the first one.
            let second = shared.slot.reset();
            assert!(shared.copy_all(second, 2), "nobody else knows of it");
        }
        let last_there = sender.join().expect("the sender");
        assert!(last_here != last_there, "one side finishes");
    });
}

/// Runs the models of this file in a process of its own for each label, with that ordering weakened. One must fail.
#[test]
fn each_weakened_ordering_fails_a_model() {
    let program = std::env::current_exe().expect("this program");
    let mut useless = Vec::new();
    for &(_, name) in Label::ALL {
        let output = std::process::Command::new(&program)
            .args(["loom_models::model_", "--test-threads=2"])
            .env("WEFT_WEAKEN", name)
            .output()
            .expect("this program starts");
        let text = String::from_utf8_lossy(&output.stdout);
        let failed: Vec<&str> =
            text.lines().filter(|line| line.starts_with("test ") && line.ends_with("FAILED")).collect();
        println!("{name}: {}", failed.join(", "));
        if output.status.success() || failed.is_empty() {
            useless.push(name);
        }
    }
    assert_eq!(useless, Vec::<&str>::new(), "weakened without a model that fails");
}

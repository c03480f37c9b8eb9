//! Ring and bulk area against plain queues, for any order of operations.

use super::ring::{BulkConsumer, BulkProducer, Cell, Consumer, Credits, Producer, bulk_footprint};
use crate::sync::{AtomicU64, Ordering};
use proptest::prelude::*;
use std::collections::VecDeque;

fn cells(count: usize) -> Vec<Cell> {
    let zero = || AtomicU64::new(0);
    (0..count)
        .map(|_| Cell { head: std::array::from_fn(|_| zero()), inline: std::array::from_fn(|_| zero()) })
        .collect()
}

fn credits() -> Credits {
    Credits::default()
}

#[derive(Clone, Debug)]
enum RingStep {
    Send(usize),
    Receive,
    Report,
    /// The peer claims credits.
    Claim(u64),
}

fn steps(claims: bool) -> impl Strategy<Value = Vec<RingStep>> {
    let weight = u32::from(claims);
    let step = prop_oneof![
        6 => (1..700usize).prop_map(RingStep::Send),
        6 => Just(RingStep::Receive),
        2 => Just(RingStep::Report),
        weight => any::<u64>().prop_map(RingStep::Claim),
    ];
    prop::collection::vec(step, 1..600)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_ring_is_a_queue_of_bounded_length(size in 4..12usize, steps in steps(false)) {
        let (cells, credits) = (cells(size), credits());
        let (mut producer, mut consumer) = (Producer::new(&cells, &credits), Consumer::new(&cells, &credits));
        let mut queue = VecDeque::new();
        let mut unreported = 0;
        for step in steps {
            match step {
                RingStep::Send(value) => match producer.vacant() {
                    Some(cell) => {
                        prop_assert!(queue.len() + unreported < size);
                        cell.inline[3].store(value as u64, Ordering::Relaxed);
                        producer.publish((value as u64) << 32);
                        queue.push_back(value);
                    }
                    None => prop_assert_eq!(queue.len() + unreported, size, "full only when it is"),
                },
                RingStep::Receive => {
                    let got = consumer.arrived().map(|(cell, first)| (cell.inline[3].load(Ordering::Relaxed), first >> 32));
                    let expected = queue.pop_front().map(|value| (value as u64, value as u64));
                    prop_assert_eq!(got, expected);
                    if got.is_some() {
                        unreported += 1;
                        let due = consumer.consume();
                        prop_assert_eq!(due, unreported >= size / 4);
                    }
                }
                _ => {
                    consumer.report();
                    unreported = 0;
                }
            }
            prop_assert_eq!(consumer.unreported(), unreported as u64);
        }
    }

    #[test]
    fn bulk_pieces_never_overlap_what_is_in_use(order in 1..5usize, steps in steps(false)) {
        let (capacity, credits) = (64 << order, credits());
        let (mut producer, mut consumer) = (BulkProducer::new(&credits, capacity), BulkConsumer::new(&credits, capacity));
        let mut used: VecDeque<(usize, usize)> = VecDeque::new();
        let mut consumed: VecDeque<(usize, usize)> = VecDeque::new();
        for step in steps {
            match step {
                RingStep::Send(wanted) => {
                    let taken: usize = used.iter().chain(&consumed).map(|(_, n)| bulk_footprint(*n as u64) as usize).sum();
                    let Some((offset, piece)) = producer.room(wanted) else {
                        prop_assert_eq!(taken, capacity, "refused only when nothing is free");
                        continue;
                    };
                    prop_assert!(piece >= 1 && piece <= wanted && offset + piece <= capacity);
                    let end = offset + bulk_footprint(piece as u64) as usize;
                    for (at, length) in used.iter().chain(&consumed) {
                        prop_assert!(end <= *at || at + length <= offset, "overlap");
                    }
                    producer.take(piece);
                    used.push_back((offset, piece));
                }
                RingStep::Receive => if let Some((offset, length)) = used.pop_front() {
                    prop_assert_eq!(consumer.locate(length as u64), Some(offset));
                    consumer.consume(length as u64);
                    consumed.push_back((offset, length));
                },
                _ => {
                    consumer.report();
                    consumed.clear();
                }
            }
        }
    }

    #[test]
    fn no_claim_of_credits_leads_outside(order in 1..5usize, steps in steps(true)) {
        let (capacity, credits, cells) = (64 << order, credits(), cells(8));
        let mut bulk = BulkProducer::new(&credits, capacity);
        let mut producer = Producer::new(&cells, &credits);
        let mut consumer = BulkConsumer::new(&credits, capacity);
        for step in steps {
            match step {
                RingStep::Send(wanted) => {
                    if producer.vacant().is_some() {
                        producer.publish(0);
                    }
                    if let Some((offset, piece)) = bulk.room(wanted) {
                        prop_assert!(piece >= 1 && piece <= wanted && offset + piece <= capacity);
                        bulk.take(piece);
                    }
                }
                RingStep::Claim(value) => {
                    credits.cells.store(value >> (value % 64), Ordering::Relaxed);
                    credits.bulk.store((value >> (value % 64)) & !(value & 63), Ordering::Relaxed);
                    if let Some(offset) = consumer.locate(value >> (value % 64)) {
                        let length = value >> (value % 64);
                        prop_assert!(length > 0 && offset as u64 + length <= capacity as u64);
                        consumer.consume(length);
                    }
                }
                _ => {}
            }
        }
    }
}

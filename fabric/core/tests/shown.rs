//! Messages in memory that their sender can show: copied without the kernel.

mod common;
use common::*;
use weft_fabric::{Endpoint, SendMode, memory};

/// A block with known bytes.
struct Block(&'static mut [u8]);

impl Block {
    fn new(length: usize, seed: usize) -> Self {
        let at = memory::allocate(length, 64).expect("memory");
        // SAFETY: the block is ours until it is freed, and as long.
        let block = unsafe { std::slice::from_raw_parts_mut(at, length) };
        block.copy_from_slice(&bytes(length, seed));
        Self(block)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        assert!(memory::free(self.0.as_ptr() as usize));
    }
}

/// Sends a part of a block; answers how many bytes were copied straight out of it.
fn one(net: &mut [Endpoint], data: &[u8], capacity: usize, mode: SendMode, early: bool) -> u64 {
    let before = net[1].counters().single_copy_bytes;
    let mut buffer = vec![0xee; capacity];
    let posted = early.then(|| receive(&mut net[1], from(0, 3), &mut buffer));
    let sending = send_as(&mut net[0], 1, 3, data, mode);
    settle(net);
    let receiving = posted.unwrap_or_else(|| receive(&mut net[1], from(0, 3), &mut buffer));
    finish(net, 1, receiving);
    assert_eq!(finish(net, 0, sending).fault, None);
    let whole = data.len().min(capacity);
    assert!(buffer[..whole] == data[..whole], "{} bytes into {capacity}, {mode:?}, early: {early}", data.len());
    net[1].counters().single_copy_bytes - before
}

#[test]
fn what_is_shown_is_copied_at_every_length_expected_and_not() {
    for (seed, length) in [2048, 8193, 20_000, 65_536, 65_537, 262_144, 262_145, 3_000_001].into_iter().enumerate() {
        let block = Block::new(length + 100, seed);
        for (mode, early) in [(SendMode::Standard, true), (SendMode::Standard, false), (SendMode::Synchronous, false)] {
            // Where there is a choice, the other way is tried after three periods of eight messages.
            let mut net = net_with(2, choosing());
            let copied: u64 = (0..25).map(|_| one(&mut net, &block.0[100..], length, mode, early)).sum();
            assert!(copied >= length as u64, "{copied} of {length}, {mode:?}");
            one(&mut net, &block.0[1..length + 1], 2000, mode, early);
        }
    }
    let (block, mut net) = (Block::new(2047, 1), net_with(2, choosing()));
    let copied: u64 = (0..25).map(|_| one(&mut net, block.0, 2047, SendMode::Standard, true)).sum();
    assert_eq!(copied, 0, "a short message needs no asking");
}

#[test]
fn memory_that_was_given_back_and_taken_again_is_found_anew() {
    let (mut net, mut copied) = (net_with(2, choosing()), 0);
    for seed in 0..200 {
        let block = Block::new(100_000, seed);
        copied += one(&mut net, block.0, 100_000, SendMode::Standard, seed % 2 == 0);
    }
    assert_eq!(copied, 20_000_000);
}

#[test]
fn nothing_is_shown_where_copies_are_off() {
    let mut net = net_with(2, streaming());
    let block = Block::new(100_000, 1);
    assert_eq!(one(&mut net, block.0, 100_000, SendMode::Standard, true), 0);
}

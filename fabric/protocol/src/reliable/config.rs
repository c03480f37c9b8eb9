//! What a link is told when it begins.

use super::path::Sizes;
use super::received::AckPolicy;
use weft_wire::link::header::Process;

/// Everything that may be chosen. Both sides need the same `first_number` and `first_position`; nothing else has to
/// agree.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub local: Process,
    pub remote: Process,
    /// Where packet numbers and positions of both streams begin.
    pub first_number: u32,
    pub first_position: u32,
    /// Bytes that may be accepted and not yet acknowledged.
    pub send_bytes: usize,
    /// Bytes that the other side may send before they are taken: its credit. At least 128 KiB are used.
    pub window_bytes: usize,
    pub sizes: Sizes,
    /// Most bytes that may be on their way.
    pub most_in_flight: u64,
    /// What this side wants to have waiting at a bottleneck; see `congestion`. More of it bears more jitter and needs
    /// longer queues. All senders of a network should want the same.
    pub queue_bytes: u64,
    pub ack: AckPolicy,
    /// The round trip before any has been measured.
    pub first_rtt_ns: u64,
    /// A question is repeated at the earliest, and at the latest, after this.
    pub probe_ns: (u64, u64),
    /// A silent peer is asked so often.
    pub keep_alive_ns: u64,
    /// A peer that has been silent so long, though asked, is dead. A process that computes and does not poll is silent,
    /// too: either something polls for it, or this is longer than it computes.
    pub dead_after_ns: u64,
}

impl Config {
    /// Between two processes, over datagrams of at most `largest` bytes.
    pub fn new(local: Process, remote: Process, largest: usize) -> Self {
        Self {
            local,
            remote,
            first_number: 0,
            first_position: 0,
            send_bytes: 1 << 20,
            window_bytes: 1 << 20,
            sizes: Sizes { smallest: 1_232.min(largest), first: largest.min(1_472), largest },
            most_in_flight: 1 << 20,
            queue_bytes: 48 << 10,
            ack: AckPolicy { delay_ns: 25_000, every: 8 },
            first_rtt_ns: 500_000,
            probe_ns: (300_000, 200_000_000),
            keep_alive_ns: 1_000_000_000,
            dead_after_ns: 15_000_000_000,
        }
    }
}

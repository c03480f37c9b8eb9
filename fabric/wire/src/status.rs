//! Layout of the status page: who a process is, what it counts, what it is blocked in.
//!
//! The owner writes with plain stores, tools read without its help. Text is UTF-8, cut to its field, zero-padded.

/// Counters with stable names, each a 64-bit word at [`COUNTERS`] + 8 x index.
pub const COUNTER_NAMES: [&str; 14] = [
    "sends",
    "receives",
    "bytes_sent",
    "bytes_received",
    "unexpected_messages",
    "rendezvous",
    "single_copy_bytes",
    "single_copy_refused",
    "ring_full",
    "self_messages",
    "yields",
    "sleeps",
    "wakeups_sent",
    "collectives_shared",
];

/// Bytes of a page.
pub const PAGE_BYTES: usize = crate::segment::PAGE_BYTES;

/// Offsets in the page.
pub const MAGIC_AT: usize = 0;
pub const MAGIC: u64 = u64::from_le_bytes(*b"weftstat");
pub const VERSION_AT: usize = 8;
pub const VERSION: u32 = 1;
pub const RANK: usize = 16;
pub const SIZE: usize = 20;
pub const PID: usize = 24;
/// Start of the process's membership, nanoseconds of CLOCK_REALTIME.
pub const STARTED_NS: usize = 32;
pub const JOB: usize = 64;
pub const JOB_BYTES: usize = 64;
pub const PROGRAM: usize = 128;
pub const PROGRAM_BYTES: usize = 128;
/// What the process is blocked in. The sequence is odd while the fields change.
pub const BLOCKED_SEQUENCE: usize = 256;
/// Nanoseconds of CLOCK_MONOTONIC since when; 0: not blocked.
pub const BLOCKED_SINCE_NS: usize = 264;
/// Peer, or `u32::MAX` for any or none.
pub const BLOCKED_PEER: usize = 272;
/// Tag, or `i32::MIN` for any or none.
pub const BLOCKED_TAG: usize = 276;
pub const BLOCKED_CONTEXT: usize = 280;
pub const BLOCKED_CALL: usize = 288;
pub const BLOCKED_CALL_BYTES: usize = 48;
pub const COUNTERS: usize = 1024;

const _: () = assert!(COUNTERS + COUNTER_NAMES.len() * 8 <= PAGE_BYTES);

//! The page that one process shares with the rendezvous: mail is counted there, and tools read the counters.

/// `weft-mai` as little-endian bytes.
pub const MAGIC: u64 = u64::from_le_bytes(*b"weft-mai");
/// Changes with every change of what stands on the page.
pub const VERSION: u32 = 2;
pub const BYTES: usize = 4096;

pub const MAGIC_AT: usize = 0;
pub const VERSION_AT: usize = 8;
/// Mails that the rendezvous has sent (32 bits). This and the next are the rendezvous's; everything else is the process's.
pub const MAILS_AT: usize = 64;
/// 1: it has nothing by which this process could reach other hosts (32 bits). 0: it has, or is an older one, or has not
/// heard of the process yet.
pub const HOST_ONLY_AT: usize = 68;
/// The counters (64 bits each), in the order of [`COUNTER_NAMES`] and then [`REASON_NAMES`].
pub const COUNTERS_AT: usize = 128;

pub const COUNTER_NAMES: [&str; 9] = [
    "accelerated",
    "bytes_ring_in",
    "bytes_ring_out",
    "bytes_kernel_in",
    "bytes_kernel_out",
    "bells",
    "sleeps",
    "datagrams_ring_in",
    "datagrams_ring_out",
];

/// Why connections are, or went back, with the kernel; one counter each.
pub const REASON_NAMES: [&str; 12] = [
    "not local",
    "no rendezvous",
    "uncountable",
    "option",
    "stdio",
    "exec",
    "passed on",
    "kernel call",
    "peer",
    "broken peer",
    "rule",
    "resources",
];
const _: () = assert!(COUNTERS_AT + (COUNTER_NAMES.len() + REASON_NAMES.len()) * 8 <= BYTES);

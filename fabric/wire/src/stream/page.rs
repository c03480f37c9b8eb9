//! The page that one process shares with the rendezvous: mail is counted there, and tools read the counters.

/// `weft-mai` as little-endian bytes.
pub const MAGIC: u64 = u64::from_le_bytes(*b"weft-mai");
/// Changes with every change of what stands on the page.
pub const VERSION: u32 = 4;
pub const BYTES: usize = 4096;

pub const MAGIC_AT: usize = 0;
pub const VERSION_AT: usize = 8;
/// Mails that the rendezvous has sent (32 bits). This and the next are the rendezvous's; everything else is the
/// process's.
pub const MAILS_AT: usize = 64;
/// 1: it has nothing by which this process could reach other hosts (32 bits). 0: it has, or is an older one, or has not
/// heard of the process yet.
pub const HOST_ONLY_AT: usize = 68;
/// 1: the process is in another process namespace, so that nothing that it shows is answered (32 bits).
pub const APART_AT: usize = 72;
/// Sockets that the process has shown and that the rendezvous has looked at (32 bits). It has let go of them, but for
/// what a guardian keeps.
pub const LOOKED_AT: usize = 76;
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

/// Why connections are, or went back, with the kernel; one counter each. The five before the last count connections as
/// they are now, or were when their process ended; they move on to another counter, or to none when they are
/// accelerated.
pub const REASON_NAMES: [&str; 18] = [
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
    "other process namespace",
    "too short",
    "shared",
    "not preloaded",
    "not taken up",
    "rendezvous of another version",
];
const _: () = assert!(COUNTERS_AT + (COUNTER_NAMES.len() + REASON_NAMES.len()) * 8 <= BYTES);

/// The same, in words for people.
pub const REASON_MEANINGS: [&str; REASON_NAMES.len()] = [
    "no TCP connection between two addresses of this host",
    "no rendezvous answers",
    "the kernel has carried bytes that were not seen",
    "urgent data, or an option that only the kernel has",
    "standard input and output on it",
    "it stays open over exec",
    "it was passed to another process",
    "the kernel itself moves its bytes",
    "the other side asked for it",
    "the other side broke the rules",
    "the settings exclude it",
    "no memory or no descriptors left",
    "in another process namespace than the rendezvous",
    "too short: it ended, or has not gone on, before it was worth moving",
    "several processes of a fork hold it",
    "the other end has not been shown: it is not preloaded, or has moved too little",
    "the other end is there, and no call has taken it up yet",
    "the rendezvous process is of another version; a new one is started when it has ended",
];
/// The reason that [`super::tally`] says more about.
pub const OPTION: usize = 3;

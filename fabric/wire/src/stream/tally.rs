//! What all processes of one command count together: memory that outlives each of them, made by `weft sock --stats`.
//!
//! A process adds to one of several stripes, which it may share with others, so that however many processes there are,
//! and however they end, nothing is lost. Readers add the stripes up. Whoever has the memory may write anything into
//! it: it is numbers, and nothing is done with them but to show them.

use super::page::{COUNTER_NAMES, OPTION, REASON_MEANINGS, REASON_NAMES};
use std::fmt::{self, Display};

/// `weft-tal` as little-endian bytes.
pub const MAGIC: u64 = u64::from_le_bytes(*b"weft-tal");
pub const VERSION: u32 = 1;
pub const MAGIC_AT: usize = 0;
pub const VERSION_AT: usize = 8;
/// Programs and forks with the library, and so stripes that were given out (32 bits); the next process takes this one,
/// modulo [`STRIPES`].
pub const GIVEN_AT: usize = 12;
/// Processes that have counted anything (64 bits).
pub const PROCESSES_AT: usize = 16;
/// Options for which connections stay with the kernel: [`OPTIONS`] times a key (see [`KernelOnly`]) and a count, 64
/// bits each. Taken in turn; a key of 0 is free.
pub const OPTIONS_AT: usize = 64;
pub const OPTIONS: usize = 60;
const OPTION_BYTES: usize = 16;
/// Each has the counters of a page, in the same order.
pub const STRIPES_AT: usize = 4096;
pub const STRIPES: usize = 64;
pub const STRIPE_BYTES: usize = 256;
pub const BYTES: usize = STRIPES_AT + STRIPES * STRIPE_BYTES;

/// Counters of a stripe.
pub const NUMBERS: usize = COUNTER_NAMES.len() + REASON_NAMES.len();
const _: () = assert!(GIVEN_AT == VERSION_AT + 4);
const _: () = assert!(NUMBERS * 8 <= STRIPE_BYTES && OPTIONS_AT + OPTIONS * OPTION_BYTES <= STRIPES_AT);

/// Where option number `index` stands.
pub const fn option_at(index: usize) -> usize {
    OPTIONS_AT + index * OPTION_BYTES
}

/// The name that the memory has, and by which it is known again, for a random `number`.
pub fn memory_name(number: u64) -> String {
    format!("weft-tally-{number:016x}")
}

/// What a process is told by [`VARIABLE`]: whose descriptor of the memory it may open, which one, and the memory's
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    pub process: u32,
    pub descriptor: u32,
    pub number: u64,
}

/// The environment variable with an [`Address`].
pub const VARIABLE: &str = "WEFT_SOCK_TALLY";

impl Address {
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let (process, descriptor, number) = (parts.next()?, parts.next()?, parts.next()?);
        let number = u64::from_str_radix(number, 16).ok()?;
        Some(Self { process: process.parse().ok()?, descriptor: descriptor.parse().ok()?, number })
    }
}

impl Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{:016x}", self.process, self.descriptor, self.number)
    }
}

/// Something that only the kernel has, and for which a connection stays with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelOnly {
    /// Of `setsockopt` and `getsockopt`.
    Socket { level: i32, name: i32 },
    /// Of a data call.
    Flag(i32),
    /// Of a descriptor: signals on arrival.
    Async,
    /// `connect` with an address of no family, or a datagram socket connected anew.
    Disconnect,
    /// A message with control data.
    Control,
    /// `EPOLLEXCLUSIVE`.
    Exclusive,
    /// The time at which the last datagram came.
    Times,
    /// `shutdown` of a datagram socket.
    Shutdown,
}

const KIND: u32 = 60;

impl KernelOnly {
    pub const fn key(self) -> u64 {
        let (kind, high, low) = match self {
            Self::Socket { level, name } => (1, level, name),
            Self::Flag(flag) => (2, 0, flag),
            Self::Async => (3, 0, 0),
            Self::Disconnect => (4, 0, 0),
            Self::Control => (5, 0, 0),
            Self::Exclusive => (6, 0, 0),
            Self::Times => (7, 0, 0),
            Self::Shutdown => (8, 0, 0),
        };
        kind << KIND | (high as u64 & 0xfff_ffff) << 32 | low as u32 as u64
    }

    pub const fn of_key(key: u64) -> Option<Self> {
        let (high, low) = ((key >> 32 & 0xfff_ffff) as i32, key as u32 as i32);
        match key >> KIND {
            1 => Some(Self::Socket { level: high, name: low }),
            2 => Some(Self::Flag(low)),
            3 => Some(Self::Async),
            4 => Some(Self::Disconnect),
            5 => Some(Self::Control),
            6 => Some(Self::Exclusive),
            7 => Some(Self::Times),
            8 => Some(Self::Shutdown),
            _ => None,
        }
    }
}

/// Names of Linux: level, number.
const SOCKET_OPTIONS: [(i32, i32, &str); 18] = [
    (1, 60, "SO_ZEROCOPY"),
    (1, 26, "SO_ATTACH_FILTER"),
    (1, 50, "SO_ATTACH_BPF"),
    (1, 2, "SO_REUSEADDR"),
    (1, 15, "SO_REUSEPORT"),
    (1, 29, "SO_TIMESTAMP"),
    (1, 35, "SO_TIMESTAMPNS"),
    (1, 37, "SO_TIMESTAMPING"),
    (0, 8, "IP_PKTINFO"),
    (0, 10, "IP_MTU_DISCOVER"),
    (0, 13, "IP_RECVTOS"),
    (6, 19, "TCP_REPAIR"),
    (6, 31, "TCP_ULP"),
    (6, 35, "TCP_ZEROCOPY_RECEIVE"),
    (6, 36, "TCP_INQ"),
    (17, 103, "UDP_SEGMENT"),
    (17, 104, "UDP_GRO"),
    (41, 49, "IPV6_RECVPKTINFO"),
];
const FLAGS: [(i32, &str); 5] = [
    (0x1, "MSG_OOB"),
    (0x2000, "MSG_ERRQUEUE"),
    (0x8000, "MSG_MORE"),
    (0x400_0000, "MSG_ZEROCOPY"),
    (0x2000_0000, "MSG_FASTOPEN"),
];

impl Display for KernelOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Socket { level, name } => {
                match SOCKET_OPTIONS.iter().find(|known| (known.0, known.1) == (level, name)) {
                    Some((_, _, known)) => write!(f, "option {known}"),
                    None => write!(f, "option {name} of level {level}"),
                }
            }
            Self::Flag(flags) => match FLAGS.iter().find(|(flag, _)| flags & flag != 0) {
                Some((_, known)) => write!(f, "flag {known}"),
                None => write!(f, "flags {flags:#x}"),
            },
            Self::Async => write!(f, "signals on arrival (O_ASYNC)"),
            Self::Disconnect => write!(f, "its address was changed by connect"),
            Self::Control => write!(f, "a message with control data"),
            Self::Exclusive => write!(f, "EPOLLEXCLUSIVE in an epoll set"),
            Self::Times => write!(f, "the time of arrival was asked for (ioctl SIOCGSTAMP)"),
            Self::Shutdown => write!(f, "shutdown of a datagram socket"),
        }
    }
}

/// Sums, to be told to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sums {
    /// Programs that have begun with the library, and forks of theirs.
    pub begun: u64,
    /// Processes that have counted anything but waiting.
    pub processes: u64,
    pub counters: [u64; NUMBERS],
    /// Those that came.
    pub options: [Option<(KernelOnly, u64)>; OPTIONS],
}

impl Default for Sums {
    fn default() -> Self {
        Self { begun: 0, processes: 0, counters: [0; NUMBERS], options: [None; OPTIONS] }
    }
}

impl Sums {
    /// What stands in such a memory; none where it is not one.
    pub fn read(memory: &[u8]) -> Option<Self> {
        let word =
            |at: usize| memory.get(at..at + 8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap_or_default()));
        if memory.len() != BYTES || word(MAGIC_AT) != Some(MAGIC) {
            return None;
        }
        let stripe = |stripe: usize, number: usize| word(STRIPES_AT + stripe * STRIPE_BYTES + number * 8).unwrap_or(0);
        let sum = |number| (0..STRIPES).fold(0u64, |sum, at| sum.wrapping_add(stripe(at, number)));
        let option = |index| {
            let (key, count) = (word(option_at(index))?, word(option_at(index) + 8)?);
            KernelOnly::of_key(key).map(|option| (option, count))
        };
        Some(Self {
            begun: word(VERSION_AT)? >> 32,
            processes: word(PROCESSES_AT)?,
            counters: std::array::from_fn(sum),
            options: std::array::from_fn(option),
        })
    }

    /// Whether anything but waiting was counted.
    pub fn has_sockets(&self) -> bool {
        let waits = |number| matches!(COUNTER_NAMES.get(number), Some(&"bells" | &"sleeps"));
        (0..NUMBERS).any(|number| self.counters[number] != 0 && !waits(number))
    }

    /// Calls `line` with each line; there is one at least.
    pub fn lines(&self, mut line: impl FnMut(fmt::Arguments<'_>)) {
        let [accelerated, ring_in, ring_out, kernel_in, kernel_out, bells, sleeps, datagrams_in, datagrams_out, ..] =
            self.counters;
        let Self { begun, processes, .. } = *self;
        if !self.has_sockets() {
            return match begun {
                0 => line(format_args!("sockets: no process has had the library")),
                _ => line(format_args!("sockets: no process has moved anything over a TCP or UDP socket")),
            };
        }
        line(format_args!(
            "sockets: accelerated {accelerated} ends of connections; over shared memory {ring_in} bytes in, {ring_out} \
             bytes out; through the kernel {kernel_in} bytes in, {kernel_out} bytes out; {bells} wake-ups of others, \
             {sleeps} sleeps; processes with sockets: {processes}"
        ));
        if datagrams_in.wrapping_add(datagrams_out) > 0 {
            line(format_args!("sockets: datagrams by ring in {datagrams_in} out {datagrams_out}"));
        }
        // Those that cannot be named are what is left.
        let named = self.options.iter().flatten().fold(0u64, |sum, (_, times)| sum.wrapping_add(*times));
        for (option, times) in self.options.iter().flatten().filter(|(_, times)| *times > 0) {
            line(format_args!("sockets: stayed with the kernel {times}: {option}"));
        }
        for (reason, meaning) in REASON_MEANINGS.iter().enumerate() {
            let named = if reason == OPTION { named } else { 0 };
            // Who is killed between two steps leaves one undone.
            let times = self.counters[COUNTER_NAMES.len() + reason].wrapping_sub(named).cast_signed();
            if times > 0 {
                line(format_args!("sockets: stayed with the kernel {times}: {meaning}"));
            }
        }
    }
}

/// What the user wants to be told at the end, by the value of `WEFT_SOCK_STATS`: words as of other settings, or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedTally<'a> {
    Nothing,
    /// On the standard error output.
    Said,
    File(&'a std::ffi::OsStr),
}

/// The environment variable with it.
pub const WANTED_VARIABLE: &str = "WEFT_SOCK_STATS";

impl<'a> WantedTally<'a> {
    pub fn of(value: &'a std::ffi::OsStr) -> Self {
        match value.to_string_lossy().to_ascii_lowercase().as_str() {
            "" | "off" | "no" | "false" | "0" => Self::Nothing,
            "on" | "yes" | "true" | "1" => Self::Said,
            _ => Self::File(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_known_again_by_their_keys() {
        for option in [
            KernelOnly::Socket { level: 6, name: 36 },
            KernelOnly::Socket { level: 263, name: -1 },
            KernelOnly::Flag(1),
            KernelOnly::Async,
            KernelOnly::Disconnect,
            KernelOnly::Shutdown,
        ] {
            assert_eq!(KernelOnly::of_key(option.key()), Some(option));
            assert_ne!(option.key(), 0);
        }
        assert_eq!(KernelOnly::of_key(0), None);
        assert_eq!(KernelOnly::Socket { level: 6, name: 36 }.to_string(), "option TCP_INQ");
        assert_eq!(KernelOnly::Socket { level: 6, name: 99 }.to_string(), "option 99 of level 6");
        assert_eq!(KernelOnly::Flag(0x4001).to_string(), "flag MSG_OOB");
    }

    #[test]
    fn addresses_are_read_as_they_are_written() {
        let address = Address { process: 7, descriptor: 900, number: 0xabc };
        assert_eq!(Address::parse(&address.to_string()), Some(address));
        assert_eq!(Address::parse("7/900"), None);
    }

    fn put(memory: &mut [u8], at: usize, word: u64) {
        memory[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }

    #[test]
    fn stripes_are_added_up_and_options_named() {
        let mut memory = vec![0; BYTES];
        assert_eq!(Sums::read(&memory), None);
        put(&mut memory, MAGIC_AT, MAGIC);
        put(&mut memory, VERSION_AT, u64::from(VERSION) | 5 << 32);
        put(&mut memory, PROCESSES_AT, 2);
        let reason = |reason: usize| (COUNTER_NAMES.len() + reason) * 8;
        // A connection was counted by one process and taken off by another one.
        put(&mut memory, STRIPES_AT + reason(15), 3);
        put(&mut memory, STRIPES_AT + STRIPE_BYTES + reason(15), u64::MAX);
        put(&mut memory, STRIPES_AT + STRIPE_BYTES + reason(OPTION), 5);
        put(&mut memory, option_at(0), KernelOnly::Socket { level: 6, name: 36 }.key());
        put(&mut memory, option_at(0) + 8, 4);
        let mut lines = Vec::new();
        Sums::read(&memory).expect("such a memory").lines(|line| lines.push(line.to_string()));
        let expected = [
            "sockets: stayed with the kernel 4: option TCP_INQ",
            "sockets: stayed with the kernel 1: urgent data, or an option that only the kernel has",
        ];
        assert_eq!(lines[1..3], expected);
        assert_eq!(lines[3], format!("sockets: stayed with the kernel 2: {}", REASON_MEANINGS[15]));
        assert!(lines[0].ends_with("processes with sockets: 2") && lines.len() == 4, "{lines:?}");
        assert_eq!(Sums::read(&memory[1..]), None);
        let only = |sums: Sums| {
            let mut said = String::new();
            sums.lines(|line| said += &line.to_string());
            said
        };
        assert_eq!(only(Sums::default()), "sockets: no process has had the library");
        let idle = Sums { begun: 3, ..Sums::default() };
        assert_eq!(only(idle), "sockets: no process has moved anything over a TCP or UDP socket");
    }

    #[test]
    fn words_of_a_switch_are_no_files() {
        let of = |text: &'static str| WantedTally::of(std::ffi::OsStr::new(text));
        assert_eq!([of("on"), of("1"), of("Yes")], [WantedTally::Said; 3]);
        assert_eq!([of("off"), of("0"), of("")], [WantedTally::Nothing; 3]);
        assert_eq!(of("./on"), WantedTally::File(std::ffi::OsStr::new("./on")));
    }
}

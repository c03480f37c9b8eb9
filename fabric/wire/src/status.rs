//! Layout of the status page: who a process is, what it counts, what it is blocked in.
//!
//! The owner writes with plain stores, tools read without its help. Text is UTF-8, cut to its field, zero-padded.

/// A number that a process counts.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// It stays.
    pub name: &'static str,
    /// What is counted; with the meaning behind it, it makes one phrase.
    pub unit: &'static str,
    /// Which of them.
    pub meaning: &'static str,
}

const fn counter(name: &'static str, unit: &'static str, meaning: &'static str) -> Counter {
    Counter { name, unit, meaning }
}

/// The counters, each a 64-bit word at [`COUNTERS_AT`] + 8 x index.
pub const COUNTERS: [Counter; 24] = [
    counter("sends", "messages", "sent"),
    counter("receives", "messages", "received"),
    counter("bytes_sent", "bytes", "sent in messages"),
    counter("bytes_received", "bytes", "received in messages"),
    counter("unexpected_messages", "messages", "that came before their receive"),
    counter("rendezvous", "messages", "that were long and announced first"),
    counter("single_copy_bytes", "bytes", "copied straight out of a sender's memory"),
    counter("single_copy_refused", "copies", "straight out of a sender's memory that the kernel refused"),
    counter("ring_full", "times", "that a ring had no room"),
    counter("self_messages", "messages", "of the process to itself"),
    counter("yields", "times", "that the core was handed over while waiting"),
    counter("sleeps", "times", "that the process slept while waiting"),
    counter("wakeups_sent", "times", "that a sleeping process was woken"),
    counter("collectives_shared", "operations", "that were collective and went by shared memory"),
    counter("shm_packets", "packets", "by shared memory"),
    counter("shm_bytes", "bytes", "in packets by shared memory"),
    counter("tcp_packets", "packets", "by TCP"),
    counter("tcp_bytes", "bytes", "in packets by TCP"),
    counter("udp_packets", "packets", "by UDP"),
    counter("udp_bytes", "bytes", "in packets by UDP"),
    counter("udp_datagrams", "datagrams", "with packets in them that were sent, repeated ones as well"),
    counter("udp_lost", "datagrams", "that counted as lost, so that their packets were sent again"),
    counter("xdp_datagrams", "datagrams", "that went by an XDP lane"),
    counter("strangers", "arrivals", "(connections and datagrams) of those who are no ranks of the job"),
];

impl std::fmt::Display for Counter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.unit, self.meaning)
    }
}

/// Their names, in this order.
pub const COUNTER_NAMES: [&str; COUNTERS.len()] = {
    let mut names = [""; COUNTERS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = COUNTERS[at].name;
        at += 1;
    }
    names
};

/// Bytes of a page.
pub const PAGE_BYTES: usize = crate::segment::PAGE_BYTES;

/// Offsets in the page.
pub const MAGIC_AT: usize = 0;
pub const MAGIC: u64 = u64::from_le_bytes(*b"weftstat");
pub const VERSION_AT: usize = 8;
pub const VERSION: u32 = 5;
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
/// Which devices lead to whom, for people.
pub const WAYS: usize = 384;
pub const WAYS_BYTES: usize = 128;
/// What the process is called in its interface's own words, for people.
pub const KNOWN_AS: usize = 512;
pub const KNOWN_AS_BYTES: usize = 256;
pub const COUNTERS_AT: usize = 1024;

const _: () = assert!(COUNTERS_AT + COUNTER_NAMES.len() * 8 <= PAGE_BYTES);

/// What a process is blocked in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The interface's name of the call.
    pub call: String,
    /// Nanoseconds of CLOCK_MONOTONIC.
    pub since_ns: u64,
    /// `None`: any or none.
    pub peer: Option<u32>,
    /// `None`: any or none.
    pub tag: Option<i32>,
    pub context: u32,
}

/// A status page as read by a tool. What its owner says of itself: a claim, whose text holds no control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusPage {
    pub rank: u32,
    pub size: u32,
    pub pid: u32,
    /// Nanoseconds of CLOCK_REALTIME.
    pub started_ns: u64,
    pub job: String,
    pub program: String,
    pub ways: String,
    pub known_as: String,
    pub blocked: Option<Blocked>,
    /// In the order of [`COUNTER_NAMES`].
    pub counters: [u64; COUNTER_NAMES.len()],
    /// The blocked fields were not being changed when they were read.
    pub is_settled: bool,
}

impl StatusPage {
    /// Reads a copy of a page; `None` where there is none (yet), or one of another version.
    pub fn parse(bytes: &[u8; PAGE_BYTES]) -> Option<Self> {
        if long(bytes, MAGIC_AT) != MAGIC || word(bytes, VERSION_AT) != VERSION {
            return None;
        }
        let mut counters = [0; COUNTER_NAMES.len()];
        counters.iter_mut().enumerate().for_each(|(index, value)| *value = long(bytes, COUNTERS_AT + 8 * index));
        Some(Self {
            rank: word(bytes, RANK),
            size: word(bytes, SIZE),
            pid: word(bytes, PID),
            started_ns: long(bytes, STARTED_NS),
            job: text(&bytes[JOB..JOB + JOB_BYTES]),
            program: text(&bytes[PROGRAM..PROGRAM + PROGRAM_BYTES]),
            ways: text(&bytes[WAYS..WAYS + WAYS_BYTES]),
            known_as: text(&bytes[KNOWN_AS..KNOWN_AS + KNOWN_AS_BYTES]),
            blocked: blocked(bytes),
            counters,
            is_settled: word(bytes, BLOCKED_SEQUENCE).is_multiple_of(2),
        })
    }

    /// The counter of this name; `None` if there is none such.
    pub fn counter(&self, name: &str) -> Option<u64> {
        COUNTER_NAMES.iter().position(|known| *known == name).map(|index| self.counters[index])
    }
}

fn blocked(bytes: &[u8; PAGE_BYTES]) -> Option<Blocked> {
    let since_ns = long(bytes, BLOCKED_SINCE_NS);
    let (peer, tag) = (word(bytes, BLOCKED_PEER), word(bytes, BLOCKED_TAG) as i32);
    (since_ns != 0).then(|| Blocked {
        call: text(&bytes[BLOCKED_CALL..BLOCKED_CALL + BLOCKED_CALL_BYTES]),
        since_ns,
        peer: (peer != u32::MAX).then_some(peer),
        tag: (tag != i32::MIN).then_some(tag),
        context: word(bytes, BLOCKED_CONTEXT),
    })
}

fn word(bytes: &[u8; PAGE_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn long(bytes: &[u8; PAGE_BYTES], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

/// Up to the first zero byte; what could trouble a terminal becomes `?`.
fn text(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    let text = String::from_utf8_lossy(&field[..end]);
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> [u8; PAGE_BYTES] {
        let mut bytes = [0; PAGE_BYTES];
        bytes[MAGIC_AT..][..8].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[VERSION_AT..][..4].copy_from_slice(&VERSION.to_le_bytes());
        bytes
    }

    #[test]
    fn no_page_without_magic_and_version() {
        assert_eq!(StatusPage::parse(&[0; PAGE_BYTES]), None);
        let mut other = page();
        other[VERSION_AT] ^= 1;
        assert_eq!(StatusPage::parse(&other), None);
    }

    #[test]
    fn fields_stand_where_the_owner_writes_them() {
        let mut bytes = page();
        bytes[RANK..][..4].copy_from_slice(&3u32.to_le_bytes());
        bytes[PROGRAM..][..3].copy_from_slice(b"a\x1bb");
        bytes[KNOWN_AS..][..2].copy_from_slice(b"t1");
        bytes[COUNTERS_AT + 8..][..8].copy_from_slice(&u64::MAX.to_le_bytes());
        let parsed = StatusPage::parse(&bytes).expect("a page");
        assert_eq!((parsed.rank, parsed.program.as_str(), parsed.counter("receives")), (3, "a?b", Some(u64::MAX)));
        assert_eq!((parsed.blocked, parsed.is_settled, parsed.known_as.as_str()), (None, true, "t1"));

        bytes[BLOCKED_SEQUENCE] = 1;
        bytes[BLOCKED_SINCE_NS] = 9;
        bytes[BLOCKED_PEER..][..4].copy_from_slice(&u32::MAX.to_le_bytes());
        bytes[BLOCKED_TAG..][..4].copy_from_slice(&7i32.to_le_bytes());
        bytes[BLOCKED_CALL..][..48].copy_from_slice(&[b'x'; 48]);
        let parsed = StatusPage::parse(&bytes).expect("a page");
        let blocked = parsed.blocked.expect("blocked");
        assert_eq!((blocked.since_ns, blocked.peer, blocked.tag, blocked.call.len()), (9, None, Some(7), 48));
        assert!(!parsed.is_settled);
    }
}

//! Layout of an arena: the memory that two processes share for the connections between them.
//!
//! ```text
//! header | listeners of side 0, of side 1 | controls of slot 0 .. | rings of slot 0 ..
//! ```
//! A slot is one connection. Its two directions are numbered by the side that sends. The arena is sparse: an idle
//! connection costs its share of a page of controls and the first page of each ring.

/// `weft-str` as little-endian bytes.
pub const MAGIC: u64 = u64::from_le_bytes(*b"weft-str");
/// Changes with every change of what stands in an arena.
pub const VERSION: u32 = 2;

pub const PAGE_BYTES: usize = 4096;
/// Connections of one arena. Two processes with more get another arena.
pub const SLOTS: u32 = 1024;
/// Bytes of one direction's ring.
pub const RING_BYTES: usize = 256 * 1024;
/// Processes of one side that can be told apart: the first one and its children by fork.
pub const LISTENERS: usize = 8;
/// Sets of one process that can sleep at the same time and still be rung only when they do.
pub const SLEEPERS: usize = 64;
/// Of so many of its last events a direction has the times.
pub const STAMPS: usize = 16;
/// Of so many of its last events in the kernel a side has the times.
pub const KERNEL_EVENTS: usize = 32;
/// In the word that says that a sender is closing: it sends no more, and its side goes on reading.
pub const HALF_CLOSED: u32 = 2;

/// Offsets in the header.
pub mod header {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 8;
    pub const SLOTS: usize = 12;
    /// Name of the arena (64 bits), known to its processes and the rendezvous only.
    pub const NAME: usize = 16;
    /// 1 when a process cannot order for others (no `membarrier`), so that senders must fence.
    pub const FENCES: usize = 24;
    /// Who uses listener n of side s: process id, 0 if nobody. `[side][listener]`, 32 bits each.
    const CLAIMS: usize = 128;

    /// What the processes of a side have done by the kernel on connections without a slot: how often (64 bits), and in
    /// the next lines the last [`super::KERNEL_EVENTS`], 64 bits each for when it began, when it was done, and on which
    /// connection. `[side]`
    const KERNEL: usize = 1024;
    pub const KERNEL_BYTES: usize = 64 + super::KERNEL_EVENTS * 24;

    pub const fn kernel(side: usize) -> usize {
        KERNEL + side * KERNEL_BYTES
    }

    pub const fn claim(side: usize, listener: usize) -> usize {
        CLAIMS + (side * super::LISTENERS + listener) * 4
    }
}

/// Offsets in a listener: what one process of one side is told.
pub mod listener {
    use super::{SLEEPERS, SLOTS};
    /// Bits of the words of [`ACTIVE`] that are not empty (64 bits).
    pub const SUMMARY: usize = 0;
    /// Slots that came alive, one bit each, 64-bit words.
    pub const ACTIVE: usize = 64;
    pub const ACTIVE_WORDS: usize = SLOTS as usize / 64;
    /// Bell of each set that sleeps, 0 while it is awake (64 bits each).
    pub const SLEEPING: usize = 256;
    pub const BYTES: usize = 1024;
    const _: () = assert!(ACTIVE + ACTIVE_WORDS * 8 <= SLEEPING && SLEEPING + SLEEPERS * 8 <= BYTES);
    const _: () = assert!(ACTIVE_WORDS <= 64);
}

/// Offsets in a direction: six lines.
pub mod direction {
    /// Line of the sender.
    pub mod sender {
        /// Bytes ever put into the ring (64 bits).
        pub const HEAD: usize = 0;
        /// [`super::super::DirectionMode`] (32 bits).
        pub const MODE: usize = 8;
        /// The slot's generation, once this line is the sender's of that generation (32 bits).
        pub const ATTACHED: usize = 12;
        /// Bytes that went through the kernel before the ring (64 bits).
        pub const KERNEL_BEFORE: usize = 16;
        /// Position in the ring where the kernel goes on (64 bits).
        pub const FINAL_AT: usize = 24;
        /// 1: the sender is closing; 2: it has shut its sending direction only; a hint (32 bits).
        pub const CLOSING: usize = 32;
        /// The slot's generation, once the sender's side is gone (32 bits).
        pub const GONE: usize = 36;
        /// 1: the sender would rather send by the kernel, and goes on by the ring until the receiver wants that (32
        /// bits).
        pub const LEAVING: usize = 40;
        /// Events so far: publications, and what was done by the kernel (32 bits).
        pub const EVENTS: usize = 44;
        /// Time of an event that is older than those with a stamp (64 bits), and which one it is (32 bits).
        pub const KEPT: usize = 48;
        pub const KEPT_EVENT: usize = 56;
    }
    /// Line of the receiver that the sender looks at with every publication.
    pub mod watch {
        /// Who sleeps for data: see [`super::super::Armed`] (64 bits each).
        pub const WAIT: usize = 64;
        pub const SET: usize = 72;
        /// The slot's generation, once the receiver follows (32 bits).
        pub const ATTACHED: usize = 80;
        /// 1: the receiver wants the kernel (32 bits).
        pub const WANT_KERNEL: usize = 84;
        /// 1 while the receiver, believing in mode 0, reads from the kernel (32 bits).
        pub const READING_KERNEL: usize = 88;
        /// 1 while a thread of the sender is between its look at this line and the end of its call (32 bits). The
        /// sender's.
        pub const SENDING: usize = 92;
        /// 1: the receiver's program has it in an epoll set, which tells of events in their order (32 bits).
        pub const ORDERED: usize = 96;
    }
    /// Line of the receiver.
    pub mod receiver {
        /// Bytes ever taken out of the ring (64 bits).
        pub const TAIL: usize = 128;
        /// The last event that a set has told its program of (32 bits).
        pub const TOLD: usize = 136;
    }
    /// Line of the sender that the receiver looks at with every publication: who sleeps for room (64 bits each).
    pub mod room {
        pub const WAIT: usize = 192;
        pub const SET: usize = 200;
    }
    /// Lines of the sender: the time of event *n* at *n* modulo [`super::STAMPS`] (64 bits each).
    pub const STAMPS: usize = 256;
    pub const BYTES: usize = STAMPS + super::STAMPS * 8;
}

/// The beginning of a new arena.
pub fn heading(name: u64) -> [u8; 24] {
    let mut heading = [0; 24];
    heading[header::MAGIC..][..8].copy_from_slice(&MAGIC.to_le_bytes());
    heading[header::VERSION..][..4].copy_from_slice(&VERSION.to_le_bytes());
    heading[header::SLOTS..][..4].copy_from_slice(&SLOTS.to_le_bytes());
    heading[header::NAME..].copy_from_slice(&name.to_le_bytes());
    heading
}

const LISTENERS_AT: usize = PAGE_BYTES;
const CONTROLS_AT: usize = LISTENERS_AT + 2 * LISTENERS * listener::BYTES;
const RINGS_AT: usize = CONTROLS_AT + SLOTS as usize * 2 * direction::BYTES;
/// Bytes of an arena.
pub const BYTES: usize = RINGS_AT + SLOTS as usize * 2 * RING_BYTES;
const _: () = assert!(RINGS_AT.is_multiple_of(PAGE_BYTES));

pub const fn listener_at(side: usize, listener: usize) -> usize {
    LISTENERS_AT + (side * LISTENERS + listener) * listener::BYTES
}

/// The control lines of the direction in which `side` sends.
pub const fn direction_at(slot: u32, side: usize) -> usize {
    CONTROLS_AT + (slot as usize * 2 + side) * direction::BYTES
}

/// The ring of the direction in which `side` sends.
pub const fn ring_at(slot: u32, side: usize) -> usize {
    RINGS_AT + (slot as usize * 2 + side) * RING_BYTES
}

/// Where a direction's bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum DirectionMode {
    Kernel = 0,
    Ring = 1,
    /// The rest of the ring, then the kernel, for good.
    Final = 2,
}

impl DirectionMode {
    pub const fn from_word(word: u32) -> Option<Self> {
        Some(match word {
            0 => Self::Kernel,
            1 => Self::Ring,
            2 => Self::Final,
            _ => return None,
        })
    }
}

/// What stands in an armed word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Armed {
    Nobody,
    /// Ring this bell.
    Bell(u64),
    /// Mark the slot active for this listener, and ring the bell in its sleeping word `sleeper`, if there is one.
    Set {
        listener: usize,
        sleeper: usize,
    },
}

/// Set in the armed word of a set.
const SET: u64 = 1 << 63;
/// Bells are numbers of so many bits, never 0. The upper half is in the name, which everybody sees; the lower half is
/// the word that rings, which only those know who share memory.
pub const BELL_BITS: u32 = 56;
const NAMED_BITS: u32 = BELL_BITS / 2;

impl Armed {
    pub const fn word(self) -> u64 {
        match self {
            Self::Nobody => 0,
            Self::Bell(bell) => bell & ((1 << BELL_BITS) - 1),
            Self::Set { listener, sleeper } => SET | (listener as u64) << 8 | sleeper as u64,
        }
    }

    /// A claim of the peer: what makes no sense is nobody.
    pub const fn from_word(word: u64) -> Self {
        if word & SET == 0 {
            return if word == 0 || word >> BELL_BITS != 0 { Self::Nobody } else { Self::Bell(word) };
        }
        let (listener, sleeper) = ((word >> 8 & 0xff) as usize, (word & 0xff) as usize);
        if (word & !SET) >> 16 != 0 || listener >= LISTENERS || sleeper >= SLEEPERS {
            return Self::Nobody;
        }
        Self::Set { listener, sleeper }
    }
}

/// The abstract name of a bell, without the leading zero byte.
pub fn bell_name(bell: u64) -> [u8; 17] {
    let mut name = *b"weft-bell-0000000";
    for (at, byte) in name[10..].iter_mut().enumerate() {
        *byte = b"0123456789abcdef"[(bell >> (BELL_BITS as usize - 4 - 4 * at) & 15) as usize];
    }
    name
}

/// What a datagram says that rings this bell: four bytes, big-endian. Others ring nothing.
pub const fn bell_word(bell: u64) -> u32 {
    (bell & ((1 << NAMED_BITS) - 1)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other() {
        assert_eq!(listener_at(0, 0), 4096);
        assert_eq!(listener_at(1, LISTENERS - 1) + listener::BYTES, direction_at(0, 0));
        assert_eq!(direction_at(SLOTS - 1, 1) + direction::BYTES, ring_at(0, 0));
        assert_eq!(ring_at(SLOTS - 1, 1) + RING_BYTES, BYTES);
        assert_eq!(direction_at(3, 1), 4096 + 16384 + 7 * 384);
        assert!(header::claim(1, LISTENERS - 1) + 4 <= header::kernel(0));
        assert!(header::kernel(1) + header::KERNEL_BYTES <= PAGE_BYTES);
    }

    #[test]
    fn heading_of_an_arena() {
        let mut golden = *b"weft-str\x02\0\0\0\0\x04\0\0\0\0\0\0\0\0\0\0";
        golden[16..].copy_from_slice(&[8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(heading(0x0102_0304_0506_0708), golden);
    }

    #[test]
    fn armed_words_are_what_they_were() {
        assert_eq!(Armed::Bell(0x12_3456).word(), 0x12_3456);
        assert_eq!(Armed::Set { listener: 2, sleeper: 9 }.word(), 0x8000_0000_0000_0209);
        for armed in [Armed::Nobody, Armed::Bell(1), Armed::Set { listener: 7, sleeper: 63 }] {
            assert_eq!(Armed::from_word(armed.word()), armed);
        }
    }

    #[test]
    fn armed_words_that_make_no_sense_are_nobody() {
        for word in [1 << 56, 1 << 62, SET | 8 << 8, SET | 64, SET | 1 << 16, u64::MAX] {
            assert_eq!(Armed::from_word(word), Armed::Nobody, "{word:#x}");
        }
    }

    #[test]
    fn bell_s_name_is_half_of_its_number_and_its_word_the_other() {
        assert_eq!(&bell_name(0x00ab_cdef_0123_4567), b"weft-bell-abcdef0");
        assert_eq!(bell_word(0x00ab_cdef_0123_4567), 0x0123_4567);
    }
}

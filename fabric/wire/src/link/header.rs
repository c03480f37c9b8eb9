//! The header of a datagram: 52 bytes, little-endian.
//!
//! | at | type | what |
//! |---|---|---|
//! | 0 | u16 | `WL` |
//! | 2 | u8 | version, now 2 |
//! | 3 | u8 | flags: 1 wants to be acknowledged, 2 at once, 4 has everything and needs no more, 8 sealed (AEGISMAC) |
//! | 4 | u32 | rank it goes to |
//! | 8 | u32 | incarnation of that rank |
//! | 12 | u32 | rank it comes from |
//! | 16 | u32 | incarnation of that rank |
//! | 20 | u32 | packet number |
//! | 24 | u32 | position in the stream of the first byte of payload |
//! | 28 | u32 | received: the position up to which the other stream has arrived without a gap |
//! | 32 | u32 | credit: the position up to which the other side may send |
//! | 36 | u32 | acknowledged: the largest packet number that has arrived |
//! | 40 | u16 | run: that many numbers without a gap, ending with the largest; 0: none has arrived yet |
//! | 42 | u16 | units of 256 ns since the largest number arrived |
//! | 44 | u16 | floor: the packet number less the oldest one whose acknowledgement still counts |
//! | 46 | u16 | bytes of payload |
//! | 48 | u8 | words of acknowledgements behind the header, at most 16 |
//! | 49 | 3 x u8 | 0 |
//!
//! Numbers and positions are the lower halves of 64-bit counts; each side knows the upper half.

use super::{OVERHEAD_BYTES, SEAL_BYTES};

/// Bytes of the header.
pub const BYTES: usize = 52;
/// Changes with every change of a datagram.
pub const VERSION: u8 = 2;
/// Most words of acknowledgements that follow a header.
pub const MOST_WORDS: usize = 16;
/// Nanoseconds of a unit of the acknowledgement's delay.
pub const DELAY_UNIT_NS: u64 = 256;

const MAGIC: [u8; 2] = *b"WL";

/// The receiver is to acknowledge this datagram.
pub const WANTS_ACK: u8 = 1;
/// ... without waiting for anything to send it with.
pub const AT_ONCE: u8 = 2;
/// The sender has everything, knows that the receiver has everything, and will go.
pub const DONE: u8 = 4;
/// The code that it is sealed with is AEGISMAC. Whoever seals it says so.
const AEGIS: u8 = 8;
const FLAGS_AT: usize = 3;

/// One process of a job: a rank, and which start of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Process {
    pub rank: u32,
    /// No two processes that ever had this rank have the same one.
    pub incarnation: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    pub flags: u8,
    pub to: Process,
    pub from: Process,
    pub number: u32,
    pub position: u32,
    pub received: u32,
    pub credit: u32,
    pub acked: u32,
    pub run: u16,
    pub ack_delay: u16,
    pub floor: u16,
    pub payload_bytes: u16,
    pub words: u8,
}

impl Header {
    /// Where the payload begins.
    #[inline]
    pub const fn payload_at(&self) -> usize {
        BYTES + 8 * self.words as usize
    }

    #[inline]
    pub fn pack(&self) -> [u8; BYTES] {
        let mut packed = [0; BYTES];
        packed[..2].copy_from_slice(&MAGIC);
        packed[2] = VERSION;
        packed[FLAGS_AT] = self.flags;
        let words = [
            self.to.rank,
            self.to.incarnation,
            self.from.rank,
            self.from.incarnation,
            self.number,
            self.position,
            self.received,
            self.credit,
            self.acked,
        ];
        for (at, word) in words.iter().enumerate() {
            packed[4 + 4 * at..8 + 4 * at].copy_from_slice(&word.to_le_bytes());
        }
        let halves = [self.run, self.ack_delay, self.floor, self.payload_bytes];
        for (at, half) in halves.iter().enumerate() {
            packed[40 + 2 * at..42 + 2 * at].copy_from_slice(&half.to_le_bytes());
        }
        packed[48] = self.words;
        packed
    }

    /// A claim of whoever sent the datagram; `None` for what no sender of this version writes. What it promises about
    /// lengths holds: words, payload and seal lie inside `datagram`.
    #[inline]
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let head: &[u8; BYTES] = datagram.first_chunk()?;
        let u32_at = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let u16_at = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        let header = Self {
            flags: head[FLAGS_AT] & !AEGIS,
            to: Process { rank: u32_at(4), incarnation: u32_at(8) },
            from: Process { rank: u32_at(12), incarnation: u32_at(16) },
            number: u32_at(20),
            position: u32_at(24),
            received: u32_at(28),
            credit: u32_at(32),
            acked: u32_at(36),
            run: u16_at(40),
            ack_delay: u16_at(42),
            floor: u16_at(44),
            payload_bytes: u16_at(46),
            words: head[48],
        };
        let known = head[..2] == MAGIC && head[2] == VERSION && header.flags & !(WANTS_ACK | AT_ONCE | DONE) == 0;
        let sound = header.words as usize <= MOST_WORDS && head[49..] == [0; 3];
        let needs = OVERHEAD_BYTES + 8 * header.words as usize + header.payload_bytes as usize;
        (known && sound && needs <= datagram.len()).then_some(header)
    }
}

/// Whether a datagram says that it is sealed with AEGISMAC.
#[inline]
pub fn has_aegis(datagram: &[u8]) -> bool {
    datagram.get(FLAGS_AT).is_some_and(|flags| flags & AEGIS != 0)
}

/// Says it.
#[inline]
pub fn set_aegis(datagram: &mut [u8]) {
    if let Some(flags) = datagram.get_mut(FLAGS_AT) {
        *flags |= AEGIS;
    }
}

/// The word of acknowledgements at `index`; zero where there is none.
#[inline]
pub fn word(datagram: &[u8], index: usize) -> u64 {
    let at = BYTES + 8 * index;
    datagram.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// Parts a datagram into what is sealed and its seal.
#[inline]
pub fn split_seal(datagram: &[u8]) -> Option<(&[u8], u64)> {
    let (sealed, seal) = datagram.split_last_chunk::<SEAL_BYTES>()?;
    Some((sealed, u64::from_le_bytes(*seal)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            flags: WANTS_ACK | DONE,
            to: Process { rank: 0x0102_0304, incarnation: 0x0506_0708 },
            from: Process { rank: 0x1112_1314, incarnation: 0x1516_1718 },
            number: 0x2122_2324,
            position: 0x3132_3334,
            received: 0x4142_4344,
            credit: 0x5152_5354,
            acked: 0x6162_6364,
            run: 0x7172,
            ack_delay: 0x7374,
            floor: 0x7576,
            payload_bytes: 3,
            words: 1,
        }
    }

    fn datagram() -> Vec<u8> {
        let mut bytes = header().pack().to_vec();
        bytes.extend(0x0807_0605_0403_0201u64.to_le_bytes());
        bytes.extend([9, 9, 9]);
        bytes.extend(0xf8f7_f6f5_f4f3_f2f1u64.to_le_bytes());
        bytes
    }

    #[test]
    fn golden_bytes() {
        #[rustfmt::skip]
        let golden = [
            0x57, 0x4c, 2, 5,
            4, 3, 2, 1,  8, 7, 6, 5,  0x14, 0x13, 0x12, 0x11,  0x18, 0x17, 0x16, 0x15,
            0x24, 0x23, 0x22, 0x21,  0x34, 0x33, 0x32, 0x31,  0x44, 0x43, 0x42, 0x41,  0x54, 0x53, 0x52, 0x51,
            0x64, 0x63, 0x62, 0x61,  0x72, 0x71, 0x74, 0x73,  0x76, 0x75, 3, 0,  1, 0, 0, 0,
        ];
        assert_eq!(header().pack(), golden);
    }

    #[test]
    fn a_header_comes_back_with_its_words_and_its_seal() {
        let datagram = datagram();
        assert_eq!(Header::parse(&datagram), Some(header()));
        assert_eq!(word(&datagram, 0), 0x0807_0605_0403_0201);
        let (sealed, seal) = split_seal(&datagram).expect("long enough");
        assert_eq!((sealed.len(), seal), (BYTES + 8 + 3, 0xf8f7_f6f5_f4f3_f2f1));
        assert_eq!(&sealed[header().payload_at()..], [9, 9, 9]);
    }

    #[test]
    fn what_no_sender_writes_is_refused() {
        let with = |at: usize, value: u8| {
            let mut bytes = datagram();
            bytes[at] = value;
            Header::parse(&bytes)
        };
        for (at, value, what) in [
            (0, 0, "magic"),
            (2, 1, "version"),
            (3, 16, "an unknown flag"),
            (46, 4, "more payload than there is"),
            (48, 2, "more words than there are"),
            (48, 17, "too many words"),
            (49, 1, "a byte that is to be zero"),
        ] {
            assert_eq!(with(at, value), None, "{what}");
        }
        assert!((0..datagram().len()).all(|length| Header::parse(&datagram()[..length]).is_none()), "cut short");
    }
}

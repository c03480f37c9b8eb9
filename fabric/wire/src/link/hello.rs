//! What two processes say before datagrams of a link go: whether they reach each other, and where.
//!
//! | at | type | what |
//! |---|---|---|
//! | 0 | 2 x u8 | `WH` |
//! | 2 | u8 | version, now 3 |
//! | 3 | u8 | 1: a call; 2: the answer to one |
//! | 4 | u32 | rank that it goes to |
//! | 8 | u32 | incarnation of that rank; 0 in a call: whichever it is |
//! | 12 | u32 | rank that it comes from |
//! | 16 | u32 | incarnation of that rank |
//! | 20 | u64 | nonce of the call: chosen by the caller, repeated by the answer |
//! | 28 | u32 | count of the calls from this rank to that one, of which each is one more; the answer repeats it |
//! | 32 | u8 | 1: datagrams of the link are encrypted; 0: they are not |
//! | 33 | zeros | up to [`BYTES`] in all, so that who is heard is known to pass datagrams of that size |
//! | then | u64 | message authentication code of all before it, with the nonce as the packet number |

use super::header::Process;
use super::{SEAL_BYTES, header, mac};

/// Bytes of a hello: the smallest size that a link falls back to.
pub const BYTES: usize = 1232;
const VERSION: u8 = 3;
const MAGIC: [u8; 2] = *b"WH";
const CALL: u8 = 1;
const ANSWER: u8 = 2;
const HEAD_BYTES: usize = 33;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    pub is_answer: bool,
    pub to: Process,
    pub from: Process,
    pub nonce: u64,
    pub count: u32,
    /// Whether whoever says this encrypts. Both sides must.
    pub encrypts: bool,
}

impl Hello {
    /// The answer of a process to a call.
    pub fn answer(&self, from: Process, encrypts: bool) -> Self {
        Self { is_answer: true, to: self.from, from, encrypts, ..*self }
    }

    /// Whether these bytes say to be a hello.
    #[inline]
    pub fn is_one(datagram: &[u8]) -> bool {
        datagram.starts_with(&MAGIC)
    }

    pub fn pack(&self, key: &mac::Key) -> [u8; BYTES] {
        let mut packed = [0; BYTES];
        packed[..2].copy_from_slice(&MAGIC);
        packed[2] = VERSION;
        packed[3] = if self.is_answer { ANSWER } else { CALL };
        let words = [self.to.rank, self.to.incarnation, self.from.rank, self.from.incarnation];
        for (at, word) in words.iter().enumerate() {
            packed[4 + 4 * at..8 + 4 * at].copy_from_slice(&word.to_le_bytes());
        }
        packed[20..28].copy_from_slice(&self.nonce.to_le_bytes());
        packed[28..32].copy_from_slice(&self.count.to_le_bytes());
        packed[32] = u8::from(self.encrypts);
        let (sealed, seal) = packed.split_at_mut(BYTES - SEAL_BYTES);
        seal.copy_from_slice(&mac::code(key, self.nonce, sealed).to_le_bytes());
        packed
    }

    /// `None` for what nobody who has the key writes.
    pub fn parse(datagram: &[u8], key: &mac::Key) -> Option<Self> {
        let head: &[u8; HEAD_BYTES] = datagram.first_chunk()?;
        let u32_at = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let is_answer = match head[3] {
            CALL => false,
            ANSWER => true,
            _ => return None,
        };
        let encrypts = match head[32] {
            0 => false,
            1 => true,
            _ => return None,
        };
        let nonce = u64::from(u32_at(20)) | u64::from(u32_at(24)) << 32;
        let known = Self::is_one(datagram) && head[2] == VERSION && datagram.len() == BYTES;
        let (sealed, seal) = header::split_seal(datagram)?;
        if !known || mac::code(key, nonce, sealed) != seal {
            return None;
        }
        Some(Self {
            is_answer,
            to: Process { rank: u32_at(4), incarnation: u32_at(8) },
            from: Process { rank: u32_at(12), incarnation: u32_at(16) },
            nonce,
            count: u32_at(28),
            encrypts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: mac::Key = mac::Key([7; 16]);
    const HELLO: Hello = Hello {
        is_answer: false,
        to: Process { rank: 0x0102_0304, incarnation: 0x0506_0708 },
        from: Process { rank: 0x1112_1314, incarnation: 0x1516_1718 },
        nonce: 0x2122_2324_2526_2728,
        count: 0x3132_3334,
        encrypts: false,
    };

    #[test]
    fn golden_bytes() {
        let packed = HELLO.pack(&KEY);
        #[rustfmt::skip]
        let golden = [
            0x57, 0x48, 3, 1,
            4, 3, 2, 1,  8, 7, 6, 5,  0x14, 0x13, 0x12, 0x11,  0x18, 0x17, 0x16, 0x15,
            0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21,
            0x34, 0x33, 0x32, 0x31,
        ];
        assert_eq!(packed[..32], golden);
        assert!(packed[32..BYTES - 8].iter().all(|byte| *byte == 0));
        assert_eq!(packed[BYTES - 8..], mac::code(&KEY, HELLO.nonce, &packed[..BYTES - 8]).to_le_bytes());
    }

    #[test]
    fn a_hello_and_its_answer_come_back() {
        assert_eq!(Hello::parse(&HELLO.pack(&KEY), &KEY), Some(HELLO));
        let own = Process { rank: HELLO.to.rank, incarnation: 7 };
        let answer = HELLO.answer(own, true);
        assert_eq!((answer.to, answer.from), (HELLO.from, own));
        assert_eq!((answer.is_answer, answer.nonce, answer.count), (true, HELLO.nonce, HELLO.count));
        assert!(answer.encrypts && answer.pack(&KEY)[32] == 1);
        assert_eq!(Hello::parse(&answer.pack(&KEY), &KEY), Some(answer));
    }

    #[test]
    fn what_was_changed_or_cut_or_made_without_the_key_is_none() {
        let packed = HELLO.pack(&KEY);
        assert_eq!(Hello::parse(&packed, &mac::Key([8; 16])), None);
        for at in 0..BYTES {
            let mut other = packed;
            other[at] ^= 1;
            assert_eq!(Hello::parse(&other, &KEY), None, "byte {at}");
        }
        assert!((0..BYTES).all(|length| Hello::parse(&packed[..length], &KEY).is_none()));
        assert_eq!(Hello::parse(&[&packed[..], &[0]].concat(), &KEY), None);
    }
}

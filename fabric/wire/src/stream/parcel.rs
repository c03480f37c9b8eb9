//! What two hosts say to each other about a connection between them: a datagram with bytes of it, and how the sender's
//! end stands. `docs/wire/parcel.md` shows it byte by byte.
//!
//! Every value only grows: counts, and flags that are never taken back. So a parcel that is lost, late, doubled or
//! replayed does no harm, and what matters is said again until the other host has repeated it.

use crate::link::aegis::{Mac, is_fast};
use crate::link::mac::{self, Key};

/// Bytes of a parcel before those of the connection.
pub const HEADER_BYTES: usize = 64;
/// What the tag is over begins here; what stands before the tag is counted as its number.
const TAGGED_FROM: usize = 16;

/// How an end stands. All but [`flag::ASK`] stay.
pub mod flag {
    /// Its program follows the switches.
    pub const ATTACHED: u16 = 1 << 0;
    /// It has switched to the ring; and back to the kernel, for good.
    pub const RING: u16 = 1 << 1;
    pub const FINAL: u16 = 1 << 2;
    /// It wants what comes to come by the kernel.
    pub const WANTS: u16 = 1 << 3;
    /// It reads the kernel no more in the belief that the other end has not switched.
    pub const SETTLED: u16 = 1 << 4;
    /// It has seen that the other end wants the kernel, and puts nothing into the ring any more; all that it had put
    /// there was read.
    pub const QUIET: u16 = 1 << 5;
    /// It has shut its sending direction; it is closing.
    pub const HALF_CLOSED: u16 = 1 << 6;
    pub const CLOSING: u16 = 1 << 7;
    /// Nobody has it any more.
    pub const GONE: u16 = 1 << 8;
    /// Parcels have come to it by its lane.
    pub const ROUTE: u16 = 1 << 9;
    /// Its program has left it, whether or not all of its bytes were received.
    pub const LEFT: u16 = 1 << 10;
    /// It would rather send by the kernel, and goes on by the ring until the other end wants that.
    pub const LEAVING: u16 = 1 << 11;
    /// The other end has switched back to the kernel, and what was in its ring was read.
    pub const DRAINED: u16 = 1 << 12;
    /// The tag is AEGISMAC. Whoever seals the parcel says so, and nobody else sees it.
    pub(super) const AEGIS: u16 = 1 << 14;
    /// An answer is wanted at once.
    pub const ASK: u16 = 1 << 15;
}

/// A parcel without the bytes of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parcel {
    /// The receiver's slot and its use.
    pub slot: u32,
    pub generation: u32,
    /// Position in the ring of the first byte that follows.
    pub at: u64,
    /// How far the sender has the receiver's bytes, and how far its program has taken them.
    pub received: u64,
    pub tail: u64,
    /// Bytes that went by the kernel before the ring; position where the kernel goes on.
    pub before: u64,
    pub final_at: u64,
    /// Bytes that follow.
    pub length: u16,
    pub flags: u16,
    /// Flags of the receiver that the sender has acted upon.
    pub echo: u16,
}

impl Parcel {
    /// Writes header and tag of a parcel whose bytes stand behind the header already.
    pub fn seal(&self, place: &mut [u8], key: &Key) {
        self.seal_by(place, key, if is_fast() { flag::AEGIS } else { 0 });
    }

    #[inline]
    fn seal_by(&self, place: &mut [u8], key: &Key, flag: u16) {
        let number = u64::from(self.slot) | u64::from(self.generation) << 32;
        let words = [number, 0, self.at, self.received, self.tail, self.before, self.final_at, self.last_word(flag)];
        for (eight, word) in place.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *eight = word.to_le_bytes();
        }
        let end = HEADER_BYTES + usize::from(self.length);
        let tag = code(key, flag, number, &place[TAGGED_FROM..end]);
        place[8..16].copy_from_slice(&tag.to_le_bytes());
    }

    fn last_word(&self, flag: u16) -> u64 {
        u64::from(self.length) | u64::from(self.flags | flag) << 16 | u64::from(self.echo) << 32
    }

    /// Slot and use that a datagram names, before anything is believed: what says which key it must have.
    #[inline]
    pub fn address(datagram: &[u8]) -> Option<(u32, u32)> {
        let number = u64::from_le_bytes(*datagram.first_chunk()?);
        (datagram.len() >= HEADER_BYTES).then_some((number as u32, (number >> 32) as u32))
    }

    /// A datagram whose tag is right, and its bytes.
    #[inline]
    pub fn open<'a>(datagram: &'a [u8], key: &Key) -> Option<(Self, &'a [u8])> {
        let (head, bytes) = datagram.split_first_chunk::<HEADER_BYTES>()?;
        let word = |at: usize| u64::from_le_bytes(head.as_chunks::<8>().0[at]);
        let last = word(7);
        let parcel = Self {
            slot: word(0) as u32,
            generation: (word(0) >> 32) as u32,
            at: word(2),
            received: word(3),
            tail: word(4),
            before: word(5),
            final_at: word(6),
            length: last as u16,
            flags: (last >> 16) as u16 & !flag::AEGIS,
            echo: (last >> 32) as u16,
        };
        let is_whole = bytes.len() == usize::from(parcel.length);
        let flag = (last >> 16) as u16 & flag::AEGIS;
        (is_whole && code(key, flag, word(0), &datagram[TAGGED_FROM..]) == word(1)).then_some((parcel, bytes))
    }
}

#[inline]
fn code(key: &Key, flag: u16, number: u64, bytes: &[u8]) -> u64 {
    if flag == 0 { mac::code(key, number, bytes) } else { Mac::new(key).code(number, bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key(*b"the key of tests");

    fn parcel() -> Parcel {
        Parcel {
            slot: 0x0102_0304,
            generation: 0x0506_0708,
            at: 0x11,
            received: 0x22,
            tail: 0x33,
            before: 0x44,
            final_at: 0x55,
            length: 3,
            flags: flag::RING | flag::ASK,
            echo: flag::ATTACHED,
        }
    }

    fn place() -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES + 3];
        bytes[HEADER_BYTES..].copy_from_slice(b"abc");
        bytes
    }

    fn sealed() -> Vec<u8> {
        let mut bytes = place();
        parcel().seal(&mut bytes, &KEY);
        bytes
    }

    #[test]
    fn bytes_of_a_parcel() {
        check_bytes(0, GOLDEN_TAG);
        check_bytes(flag::AEGIS, GOLDEN_AEGIS);
    }

    fn check_bytes(flag: u16, tag: [u8; 8]) {
        let mut golden = vec![4, 3, 2, 1, 8, 7, 6, 5];
        golden.extend(tag);
        for word in [0x11, 0x22, 0x33, 0x44, 0x55] {
            golden.extend([word, 0, 0, 0, 0, 0, 0, 0]);
        }
        golden.extend([3, 0, 2, 0x80 | (flag >> 8) as u8, 1, 0, 0, 0]);
        golden.extend(b"abc");
        let mut sealed = place();
        parcel().seal_by(&mut sealed, &KEY, flag);
        assert_eq!(sealed, golden);
        assert_eq!(Parcel::open(&golden, &KEY), Some((parcel(), &b"abc"[..])));
        assert_eq!(Parcel::address(&golden), Some((0x0102_0304, 0x0506_0708)));
    }

    /// SipHash-2-4 of the rest under the key of these tests, and AEGISMAC.
    const GOLDEN_TAG: [u8; 8] = [202, 108, 194, 163, 74, 237, 190, 14];
    const GOLDEN_AEGIS: [u8; 8] = [53, 129, 202, 60, 120, 195, 191, 165];

    #[test]
    fn every_bit_and_the_length_count() {
        let sealed = sealed();
        for bit in 0..sealed.len() * 8 {
            let mut other = sealed.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Parcel::open(&other, &KEY), None, "bit {bit}");
        }
        assert_eq!(Parcel::open(&sealed, &Key([0; 16])), None);
        for length in 0..sealed.len() {
            assert_eq!(Parcel::open(&sealed[..length], &KEY), None);
        }
        let longer = [&sealed[..], &[0]].concat();
        assert_eq!(Parcel::open(&longer, &KEY), None);
    }
}

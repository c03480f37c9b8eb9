//! What two rendezvous of different hosts say to each other so that the two ends of a connection find each other: one
//! kind of datagram, the *call*, tagged with the key that both hosts have.
//!
//! A call that names a nonce of ours was made after we had said it: whoever sends calls again that others have made
//! gets answers, and meets nobody.

use super::datagram::DatagramPeer;
use crate::link::mac::Key;
use crate::siphash::{self, TAG_BYTES};

/// `weft-cal` as it stands there.
const MAGIC: [u8; 8] = *b"weft-cal";
/// Changes with every change of a call, and of what goes over lanes: hosts of two versions do not meet.
pub const VERSION: u32 = 2;
/// The UDP port of meetings, unless told otherwise.
pub const PORT: u16 = 7319;
pub const BYTES: usize = 112;

pub const NONCE_BYTES: usize = 16;
/// What one side made up for one showing of one end. Never all zeros, which stand for one that is not known.
pub type Nonce = [u8; NONCE_BYTES];
const UNKNOWN: Nonce = [0; NONCE_BYTES];

/// Where parcels for an end go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landing {
    /// UDP port of the lane; not 0.
    pub port: u16,
    pub slot: u32,
    pub generation: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownCall {
    /// The end of the connection at the caller, and the other one.
    pub ends: [DatagramPeer; 2],
    /// The caller's.
    pub nonce: Nonce,
    /// That of the called, as far as the caller knows it.
    pub named: Option<Nonce>,
    /// Once the caller has a lane for the connection.
    pub landing: Option<Landing>,
    /// The caller has seen its own nonce named, and needs no answer.
    pub has_met: bool,
}

const VERSION_AT: usize = 8;
const LANE_AT: usize = 12;
const MET_AT: usize = 14;
const SLOT_AT: usize = 16;
const GENERATION_AT: usize = 20;
const ADDRESSES_AT: usize = 24;
const PORTS_AT: usize = 56;
const NONCE_AT: usize = 64;
const NAMED_AT: usize = 80;
const TAG_AT: usize = BYTES - TAG_BYTES;
const _: () = assert!(NAMED_AT + NONCE_BYTES == TAG_AT);

fn put(packet: &mut [u8; BYTES], at: usize, bytes: &[u8]) {
    packet[at..at + bytes.len()].copy_from_slice(bytes);
}

fn part<const N: usize>(packet: &[u8; BYTES], at: usize) -> [u8; N] {
    std::array::from_fn(|index| packet[at + index])
}

impl ShownCall {
    pub fn pack(&self, key: &Key) -> [u8; BYTES] {
        let mut packet = [0; BYTES];
        put(&mut packet, 0, &MAGIC);
        put(&mut packet, VERSION_AT, &VERSION.to_le_bytes());
        put(&mut packet, MET_AT, &u16::from(self.has_met).to_le_bytes());
        if let Some(landing) = self.landing {
            put(&mut packet, LANE_AT, &landing.port.to_le_bytes());
            put(&mut packet, SLOT_AT, &landing.slot.to_le_bytes());
            put(&mut packet, GENERATION_AT, &landing.generation.to_le_bytes());
        }
        for (index, end) in self.ends.iter().enumerate() {
            put(&mut packet, ADDRESSES_AT + 16 * index, &end.address);
            put(&mut packet, PORTS_AT + 2 * index, &end.port.to_le_bytes());
        }
        put(&mut packet, NONCE_AT, &self.nonce);
        put(&mut packet, NAMED_AT, &self.named.unwrap_or(UNKNOWN));
        let tag = siphash::tag(&key.0, &packet[..TAG_AT]);
        put(&mut packet, TAG_AT, &tag);
        packet
    }

    /// `None` for what nobody has made who has the key, and for other versions.
    pub fn parse(key: &Key, datagram: &[u8]) -> Option<Self> {
        let packet: &[u8; BYTES] = datagram.try_into().ok()?;
        let begins = packet.starts_with(&MAGIC) && part(packet, VERSION_AT) == VERSION.to_le_bytes();
        if !begins || !siphash::same(&siphash::tag(&key.0, &packet[..TAG_AT]), &part(packet, TAG_AT)) {
            return None;
        }
        let short = |at| u16::from_le_bytes(part(packet, at));
        let word = |at| u32::from_le_bytes(part(packet, at));
        let end =
            |index: usize| DatagramPeer::new(part(packet, ADDRESSES_AT + 16 * index), short(PORTS_AT + 2 * index));
        let landing = Landing { port: short(LANE_AT), slot: word(SLOT_AT), generation: word(GENERATION_AT) };
        let (nonce, named): (Nonce, Nonce) = (part(packet, NONCE_AT), part(packet, NAMED_AT));
        (nonce != UNKNOWN).then_some(Self {
            ends: [end(0), end(1)],
            nonce,
            named: (named != UNKNOWN).then_some(named),
            landing: (landing.port != 0).then_some(landing),
            has_met: short(MET_AT) != 0,
        })
    }
}

/// The two keys of a connection: of what we send, and of what comes. Neither is made of the same text as a tag of a
/// call.
pub fn keys(key: &Key, ours: &Nonce, theirs: &Nonce) -> [Key; 2] {
    let of = |sender: &Nonce, receiver: &Nonce| {
        let mut text = [0; 8 + 2 * NONCE_BYTES];
        text[..8].copy_from_slice(b"weft-key");
        text[8..8 + NONCE_BYTES].copy_from_slice(sender);
        text[8 + NONCE_BYTES..].copy_from_slice(receiver);
        Key(siphash::tag(&key.0, &text))
    };
    [of(ours, theirs), of(theirs, ours)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key([7; 16]);

    fn call() -> ShownCall {
        ShownCall {
            ends: [DatagramPeer::of_v4([10, 0, 0, 1], 0x1234), DatagramPeer::of_v4([10, 0, 0, 2], 80)],
            nonce: [0xa1; 16],
            named: Some([0xb2; 16]),
            landing: Some(Landing { port: 0x5678, slot: 3, generation: 9 }),
            has_met: true,
        }
    }

    #[test]
    fn bytes_of_a_call() {
        let mut golden = [0; BYTES];
        golden[..8].copy_from_slice(b"weft-cal");
        golden[8] = 2;
        golden[12..14].copy_from_slice(&[0x78, 0x56]);
        golden[14] = 1;
        golden[16] = 3;
        golden[20] = 9;
        golden[34..40].copy_from_slice(&[0xff, 0xff, 10, 0, 0, 1]);
        golden[50..56].copy_from_slice(&[0xff, 0xff, 10, 0, 0, 2]);
        golden[56..60].copy_from_slice(&[0x34, 0x12, 80, 0]);
        golden[64..80].copy_from_slice(&[0xa1; 16]);
        golden[80..96].copy_from_slice(&[0xb2; 16]);
        let tag = siphash::tag(&KEY.0, &golden[..96]);
        golden[96..].copy_from_slice(&tag);
        assert_eq!(call().pack(&KEY), golden);
        assert_eq!(golden[96..], GOLDEN_TAG);
    }

    /// Written down from this version: the tag is part of what hosts agree on.
    const GOLDEN_TAG: [u8; 16] = [225, 213, 28, 68, 229, 12, 217, 223, 129, 240, 252, 188, 133, 9, 24, 63];

    #[test]
    fn calls_come_back() {
        let first = ShownCall { named: None, landing: None, has_met: false, ..call() };
        for call in [call(), first] {
            assert_eq!(ShownCall::parse(&KEY, &call.pack(&KEY)), Some(call));
        }
    }

    #[test]
    fn what_nobody_with_the_key_has_made_is_no_call() {
        let packed = call().pack(&KEY);
        assert_eq!(ShownCall::parse(&Key([8; 16]), &packed), None);
        for at in 0..BYTES {
            let mut other = packed;
            other[at] ^= 1;
            assert_eq!(ShownCall::parse(&KEY, &other), None, "byte {at}");
        }
        for length in 0..BYTES {
            assert_eq!(ShownCall::parse(&KEY, &packed[..length]), None, "{length} bytes");
        }
        let mut longer = packed.to_vec();
        longer.push(0);
        assert_eq!(ShownCall::parse(&KEY, &longer), None);
    }

    #[test]
    fn a_tagged_call_of_another_version_or_without_a_nonce_is_no_call() {
        let mut other = call().pack(&KEY);
        other[VERSION_AT] = 1;
        let tag = siphash::tag(&KEY.0, &other[..TAG_AT]);
        put(&mut other, TAG_AT, &tag);
        assert_eq!(ShownCall::parse(&KEY, &other), None);
        assert_eq!(ShownCall::parse(&KEY, &ShownCall { nonce: UNKNOWN, ..call() }.pack(&KEY)), None);
    }

    #[test]
    fn each_side_sends_with_the_key_that_the_other_one_expects() {
        let (ours, theirs) = ([1; 16], [2; 16]);
        let (here, there) = (keys(&KEY, &ours, &theirs), keys(&KEY, &theirs, &ours));
        assert!(here[0] == there[1] && here[1] == there[0] && here[0] != here[1]);
        assert!(keys(&KEY, &[3; 16], &theirs)[0] != here[0] && keys(&Key([8; 16]), &ours, &theirs)[0] != here[0]);
    }
}

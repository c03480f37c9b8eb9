//! The 64-byte cell: header and short payload together in one cache line.
//!
//! | word | bits | meaning |
//! |---|---|---|
//! | 0 | 0-7 | stamp: lap of the ring with the top bit set, so that fresh (zero) memory is never valid |
//! |   | 8-15 | [`Kind`] |
//! |   | 16-23 | bytes of inline payload, at most [`INLINE_BYTES`] |
//! |   | 24-31 | 1: a bulk payload goes with the cell, its length is in the last word |
//! |   | 32-63 | context |
//! | 1 | 0-31 | tag |
//! |   | 32-63 | source |
//! | 2-7 | | inline payload, or control words |

/// Bytes of a cell: one cache line.
pub const CELL_BYTES: usize = 64;
/// 64-bit words of a cell.
pub const CELL_WORDS: usize = CELL_BYTES / 8;
/// Words of the header.
pub const HEAD_WORDS: usize = 2;
/// Words of a cell that carry payload or control values.
pub const INLINE_WORDS: usize = CELL_WORDS - HEAD_WORDS;
/// Largest payload that travels inside the cell.
pub const INLINE_BYTES: usize = INLINE_WORDS * 8;
/// Control words that are free when a bulk payload goes with the cell.
pub const CONTROL_WORDS: usize = INLINE_WORDS - 1;

/// What a packet is for. The protocol switch of the endpoint routes by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Port protocol: a whole short message, inline.
    Short = 1,
    /// Port protocol: opens a longer message sent without asking. Control: total length, and where two devices lead to
    /// the receiver and this is the one for long messages, how many messages went by the other before it, and of one
    /// that could have been asked for, whether a [`Kind::Waited`] is owed for it in any case: 1, or only if nobody
    /// waited for it: 0. Bulk: its first bytes.
    Eager = 2,
    /// Port protocol: asks to send. Control: total length, address in the sender, sender's request, 1 if it may be
    /// taken at once, also where nobody receives it yet.
    Ask = 3,
    /// Port protocol: answers [`Kind::Ask`]: stream the bytes. Control: sender's request, receiver's request, bytes
    /// wanted.
    GrantStream = 4,
    /// Port protocol: answers [`Kind::Ask`]: copy together. Control: sender's request, receiver's request, slot with
    /// its generation in the upper half, address in the receiver, bytes to copy.
    GrantCopy = 5,
    /// Port protocol: opens a granted stream. Control: receiver's request. Bulk: its first bytes.
    Open = 6,
    /// Further bytes of the stream that is open from this peer. Bulk only.
    More = 7,
    /// Port protocol: the receiver has everything. Control: sender's request, what a byte of a stream takes there in
    /// picoseconds or 0 (an offer's answer).
    DoneSend = 8,
    /// Port protocol: the sender has copied the last chunk. Control: receiver's request, 0 good or 1 failed.
    DoneReceive = 9,
    /// Raw protocol: bytes for the raw channel. Bulk or inline.
    Raw = 10,
    /// Port protocol, where two devices lead to the receiver: the next message by this one comes behind so many that
    /// went by the other. Control: that number.
    Order = 11,
    /// Port protocol: the sender takes an ask back. It has a place among messages. Control: sender's request.
    Retract = 12,
    /// Port protocol: an ask that was taken back is forgotten; there is no other answer to it. Control: sender's
    /// request.
    Retracted = 13,
    /// Port protocol: long messages that came without asking were waited for, or one was not and is received now.
    /// Control: 1 or 0, their bytes.
    Waited = 14,
    /// Over a connection to a process of another job: shared memory is offered, or an offer answered
    /// ([`crate::share`]).
    Share = 15,
    /// Of a protocol that the context names, a number of its own.
    Other = 16,
}

impl Kind {
    /// Whether the bulk payload is a part of a stream, which may come in more parts than it was sent in.
    pub const fn is_streamed(self) -> bool {
        matches!(self, Self::Eager | Self::Open | Self::More)
    }

    /// Whether the packet belongs to the port protocol, or to the devices; others are told by [`Head::protocol`].
    pub const fn is_of_port(self) -> bool {
        !matches!(self, Self::Raw | Self::Other)
    }

    /// Whether the packet has a place among messages: it begins one, or takes one back.
    pub const fn has_place(self) -> bool {
        matches!(self, Self::Short | Self::Eager | Self::Ask | Self::Retract)
    }

    pub const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Short,
            2 => Self::Eager,
            3 => Self::Ask,
            4 => Self::GrantStream,
            5 => Self::GrantCopy,
            6 => Self::Open,
            7 => Self::More,
            8 => Self::DoneSend,
            9 => Self::DoneReceive,
            10 => Self::Raw,
            11 => Self::Order,
            12 => Self::Retract,
            13 => Self::Retracted,
            14 => Self::Waited,
            15 => Self::Share,
            16 => Self::Other,
            _ => return None,
        })
    }
}

/// The decoded header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub kind: Kind,
    pub context: u32,
    pub tag: i32,
    pub source: u32,
}

impl Head {
    /// A header that carries no envelope.
    pub const fn control(kind: Kind) -> Self {
        Self { kind, context: 0, tag: 0, source: 0 }
    }

    /// The number of the raw protocol, whose packets have a kind of their own.
    pub const RAW: u32 = 0;

    /// A header of a protocol beside port, which has `tag` and `source` for itself.
    pub const fn of_protocol(number: u32, tag: i32, source: u32) -> Self {
        Self { kind: Kind::Other, context: number, tag, source }
    }

    /// Which protocol beside port a packet names.
    #[inline]
    pub const fn protocol(&self) -> u32 {
        match self.kind {
            Kind::Other => self.context,
            _ => Self::RAW,
        }
    }

    /// The first word, with its stamp left open (zero).
    #[inline]
    pub const fn first_word(&self, inline_bytes: u8, bulk: bool) -> u64 {
        (self.kind as u64) << 8 | (inline_bytes as u64) << 16 | (bulk as u64) << 24 | (self.context as u64) << 32
    }

    #[inline]
    pub const fn second_word(&self) -> u64 {
        self.tag as u32 as u64 | (self.source as u64) << 32
    }
}

/// What the first two words claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    pub head: Head,
    pub inline_bytes: u8,
    pub bulk: bool,
}

/// Decodes the header words; `None` if they break the rules.
#[inline]
pub const fn decode(first: u64, second: u64) -> Option<Claim> {
    let inline_bytes = (first >> 16) as u8;
    if inline_bytes as usize > INLINE_BYTES {
        return None;
    }
    let Some(kind) = Kind::from_byte((first >> 8) as u8) else { return None };
    let bulk = match (first >> 24) as u8 {
        0 => false,
        1 => true,
        _ => return None,
    };
    let head = Head { kind, context: (first >> 32) as u32, tag: second as u32 as i32, source: (second >> 32) as u32 };
    Some(Claim { head, inline_bytes, bulk })
}

/// The stamp that marks a cell as written in `lap` (laps count from 0).
#[inline]
pub const fn stamp(lap: u64) -> u8 {
    0x80 | (lap & 0x7f) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_the_wire() {
        let head = Head { kind: Kind::Short, context: 0xdead_beef, tag: -7, source: u32::MAX };
        let claim = decode(head.first_word(48, true) | 0x81, head.second_word()).expect("valid");
        assert_eq!(claim, Claim { head, inline_bytes: 48, bulk: true });
    }

    #[test]
    fn golden_words() {
        let head = Head { kind: Kind::Short, context: 0x1122_3344, tag: 5, source: 6 };
        assert_eq!(head.first_word(8, false), 0x1122_3344_0008_0100);
        assert_eq!(head.second_word(), 0x0000_0006_0000_0005);
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(decode(0, 0), None, "no kind");
        assert_eq!(decode(0x00_31_01_80, 0), None, "49 inline bytes");
        assert_eq!(decode(0x02_08_01_80, 0), None, "bulk flag 2");
        assert_eq!(decode(0x00_08_ff_80, 0), None, "unknown kind");
        assert_eq!(decode(0x00_08_11_80, 0), None, "the first unknown kind");
    }

    #[test]
    fn consecutive_laps_have_different_stamps_and_none_is_zero() {
        for lap in 0..1000 {
            assert_ne!(stamp(lap), stamp(lap + 1));
            assert_ne!(stamp(lap), 0);
        }
    }
}

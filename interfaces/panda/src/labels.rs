//! What messages and their tags say.

use crate::message::Content;
use weft_fabric::{Peer, RequestId, Waiting};
use weft_ports::ready::bytes_of;

pub const MESSAGES: u32 = 0;
/// Bytes of messages that were announced, by number.
pub const BYTES: u32 = 1;
/// Words of groups; the next context is theirs, too.
pub const GROUPS: u32 = 2;
/// Longer messages are announced.
pub const WHOLE_BYTES: usize = 64 * 1024 - 64;
/// Longest message, so that no peer can ask for all memory there is.
pub const LONGEST_BYTES: u64 = 1 << 31;
/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessagePurpose {
    /// A call to the handler of remote procedure calls, numbered by its caller.
    Request,
    Reply,
    /// For a map, or for one receive.
    Entry(u32),
    /// For a service point.
    Point(u32),
    /// Asks what the time is.
    Clock,
}

/// Most maps, receives and service points; their numbers stand in tags.
pub const NUMBERS: u32 = 1 << 20;

impl MessagePurpose {
    const KINDS: i32 = 24;
    /// The bytes follow in a message of their own.
    pub const APART: i32 = 1 << 28;

    pub fn tag(self) -> i32 {
        let (kind, number) = match self {
            Self::Request => (0, 0),
            Self::Reply => (1, 0),
            Self::Entry(number) => (2, number),
            Self::Point(number) => (3, number),
            Self::Clock => (4, 0),
        };
        kind << Self::KINDS | number as i32
    }

    /// With whether the bytes follow.
    pub fn from_tag(tag: i32) -> Option<(Self, bool)> {
        let (rest, apart) = (tag & !Self::APART, tag & Self::APART != 0);
        let number = (rest & ((1 << Self::KINDS) - 1)) as u32;
        let what = match (rest >> Self::KINDS, number) {
            (0, 0) => Self::Request,
            (1, 0) => Self::Reply,
            (2, 0..NUMBERS) => Self::Entry(number),
            (3, 0..NUMBERS) => Self::Point(number),
            (4, 0) => Self::Clock,
            _ => return None,
        };
        Some((what, apart))
    }
}

/// What a message is for, and a number that goes beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageLabel {
    pub what: MessagePurpose,
    pub beside: u32,
}

/// A message that has come.
pub struct PandaArrival {
    pub from: Peer,
    pub label: MessageLabel,
    pub content: Content,
}

/// What was sent and has not left yet.
pub struct KeptSend {
    pub request: RequestId,
    pub to: Peer,
    pub number: u64,
    pub bytes: Vec<u64>,
}

pub fn waiting(call: &'static str, peer: Option<Peer>) -> Waiting {
    Waiting { call, peer, tag: None, context: MESSAGES }
}

/// What a message that announces another says: how many bytes, and the number they come with.
pub fn announced(words: &[u64], length: usize) -> Option<(usize, i32)> {
    let bytes = bytes_of(words, length);
    let word = |at: usize| bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map(u64::from_le_bytes);
    let (length, number) = word(0).zip(word(8)).filter(|(length, _)| *length <= LONGEST_BYTES)?;
    Some((length as usize, i32::try_from(number).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_as_they_were_written() {
        let all = [
            MessagePurpose::Request,
            MessagePurpose::Reply,
            MessagePurpose::Entry(0),
            MessagePurpose::Entry(NUMBERS - 1),
            MessagePurpose::Point(7),
            MessagePurpose::Clock,
        ];
        for what in all {
            assert_eq!(MessagePurpose::from_tag(what.tag()), Some((what, false)));
            assert_eq!(MessagePurpose::from_tag(what.tag() | MessagePurpose::APART), Some((what, true)));
        }
        for wrong in [-1, 1, 5 << 24, MessagePurpose::Entry(0).tag() | NUMBERS as i32, 1 << 29] {
            assert_eq!(MessagePurpose::from_tag(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_announced_is_a_claim() {
        assert_eq!(announced(&[100_000, 7], 16), Some((100_000, 7)));
        for wrong in [&[u64::MAX, 7][..], &[100_000, 1 << 40], &[100_000]] {
            assert_eq!(announced(wrong, 8 * wrong.len()), None);
        }
    }
}

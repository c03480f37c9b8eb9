//! How active messages travel: a word in the place of the tag, and in front of the bytes what handlers are told.
//!
//! | bits of the word | what |
//! |---|---|
//! | 0-7 | handler |
//! | 8-12 | number of arguments |
//! | 13-14 | category |
//! | 15-17 | purpose |
//! | 18 | the bytes follow in a message of their own |
//!
//! In the bytes: tag (8), receiving endpoint (4), sending endpoint (4); of a long message the offset in the segment
//! (8), and where its bytes follow their number and that of the message (8, 8); of one that comes back why (8); then
//! the arguments, 4 each, and the bytes at a multiple of 8. What is read is a claim.

use weft_ports::ready::integers_of;

/// Most arguments of a message, 32 bits each.
pub const MOST_ARGUMENTS: usize = 16;
/// Most bytes of a medium message.
pub const MEDIUM_BYTES: usize = 65_000;
/// Most bytes of a long one.
pub const LONG_BYTES: usize = 1 << 20;
/// Longer ones follow in a message of their own, straight to their place.
pub const TOGETHER_BYTES: usize = MEDIUM_BYTES;
/// Most bytes in front of those of the user.
pub const FRONT_BYTES: usize = 16 + 24 + 4 * MOST_ARGUMENTS;
/// Room for any message that comes whole.
pub const ROOM_BYTES: usize = (FRONT_BYTES + MEDIUM_BYTES).next_multiple_of(4096);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Request = 0,
    Reply = 1,
    /// A request or reply that was not handled comes back.
    Returned = 2,
    Barrier = 3,
    Exit = 4,
}

/// How a message carries bytes; numbers of `amudp_category_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmCategory {
    Short = 0,
    Medium = 1,
    Long = 2,
}

/// An endpoint of a process: its place in the process's table, and how often that was used before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointId {
    pub slot: u16,
    pub generation: u16,
}

/// What a message says besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHead<'a> {
    pub purpose: Purpose,
    pub category: AmCategory,
    pub handler: u8,
    pub tag: u64,
    pub to: EndpointId,
    pub from: EndpointId,
    /// In the order in which the handler gets them.
    pub arguments: &'a [i32],
    /// Of a long message: where its bytes go.
    pub offset: u64,
    /// They follow, so many, in the message of this number.
    pub apart: Option<(u64, i32)>,
    /// Of what comes back: why, and whether it was a request.
    pub returned: (u32, bool),
}

impl<'a> MessageHead<'a> {
    pub const fn new(purpose: Purpose, category: AmCategory, handler: u8, arguments: &'a [i32]) -> Self {
        let nowhere = EndpointId { slot: 0, generation: 0 };
        let (to, from) = (nowhere, nowhere);
        Self { purpose, category, handler, tag: 0, to, from, arguments, offset: 0, apart: None, returned: (0, false) }
    }

    pub fn is_for_handler(&self) -> bool {
        matches!(self.purpose, Purpose::Request | Purpose::Reply | Purpose::Returned)
    }

    #[inline]
    pub fn word(&self) -> i32 {
        let apart = if self.apart.is_some() { APART } else { 0 };
        let kinds = (self.category as i32) << 13 | (self.purpose as i32) << 15 | apart;
        i32::from(self.handler) | (self.arguments.len() as i32) << 8 | kinds
    }

    /// Writes what stands in front of `bytes` of the user, which is at most [`FRONT_BYTES`]; how much that is.
    #[inline]
    pub fn write(&self, bytes: usize, into: &mut [u8]) -> usize {
        let id = |id: EndpointId| u64::from(id.slot) | u64::from(id.generation) << 16;
        into[..8].copy_from_slice(&self.tag.to_ne_bytes());
        into[8..16].copy_from_slice(&(id(self.to) | id(self.from) << 32).to_ne_bytes());
        let mut at = 16;
        let mut put = |word: u64| {
            into[at..at + 8].copy_from_slice(&word.to_ne_bytes());
            at += 8;
        };
        if self.purpose == Purpose::Returned {
            put(u64::from(self.returned.0) | u64::from(self.returned.1) << 32);
        } else if self.category == AmCategory::Long {
            put(self.offset);
        }
        if let Some((length, number)) = self.apart {
            put(length);
            put(u64::from(number as u32));
        }
        let end = at + 4 * self.arguments.len();
        for (place, value) in into[at..end].chunks_exact_mut(4).zip(self.arguments) {
            place.copy_from_slice(&value.to_ne_bytes());
        }
        if bytes == 0 { end } else { end.next_multiple_of(8) }
    }

    /// Reads a message of so many bytes; with where the user's begin. `None` if it is none.
    #[inline]
    pub fn read(word: i32, room: &'a [u64], length: usize) -> Option<(Self, usize)> {
        let purpose = match word >> 15 & 7 {
            0 => Purpose::Request,
            1 => Purpose::Reply,
            2 => Purpose::Returned,
            3 => Purpose::Barrier,
            4 => Purpose::Exit,
            _ => return None,
        };
        let category = match word >> 13 & 3 {
            0 => AmCategory::Short,
            1 => AmCategory::Medium,
            2 => AmCategory::Long,
            _ => return None,
        };
        let count = (word >> 8 & 31) as usize;
        if count > MOST_ARGUMENTS || word >> 19 != 0 {
            return None;
        }
        let mut words = room.iter().copied();
        let mut head = Self::new(purpose, category, word as u8, &[]);
        head.tag = words.next()?;
        let ids = words.next()?;
        (head.to, head.from) = (endpoint_id(ids as u32), endpoint_id((ids >> 32) as u32));
        if purpose == Purpose::Returned {
            let why = words.next()?;
            head.returned = (why as u32, why >> 32 & 1 == 1);
        } else if category == AmCategory::Long {
            head.offset = words.next()?;
        }
        if word & APART != 0 {
            head.apart = Some((words.next()?, words.next()? as i32));
        }
        let at = room.len() - words.len();
        head.arguments = integers_of(room, 2 * at, count)?;
        let front = 8 * at + 4 * count;
        match length {
            _ if length < front => None,
            _ if length == front => Some((head, front)),
            _ => Some((head, front.next_multiple_of(8).min(length))),
        }
    }
}

/// Set in the word of a message whose bytes follow.
const APART: i32 = 1 << 18;

/// Whose handler a message is for that came whole, as far as can be seen without reading it.
#[inline]
pub fn receiver_of(word: i32, room: &[u64]) -> Option<EndpointId> {
    let is_for_handler = word >> 15 & 7 <= Purpose::Returned as i32 && word & APART == 0;
    room.get(1).filter(|_| is_for_handler).map(|ids| endpoint_id(*ids as u32))
}

fn endpoint_id(word: u32) -> EndpointId {
    EndpointId { slot: word as u16, generation: (word >> 16) as u16 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_ports::ready::tight;

    fn heads() -> Vec<MessageHead<'static>> {
        let arguments = &[1, -2, i32::MAX];
        let (to, from) = (EndpointId { slot: 1, generation: 2 }, EndpointId { slot: 3, generation: u16::MAX });
        let tagged = MessageHead {
            tag: u64::MAX - 4,
            to,
            from,
            ..MessageHead::new(Purpose::Request, AmCategory::Short, 255, arguments)
        };
        vec![
            MessageHead::new(Purpose::Barrier, AmCategory::Short, 0, &[]),
            tagged,
            MessageHead { category: AmCategory::Medium, purpose: Purpose::Reply, ..tagged },
            MessageHead { category: AmCategory::Long, offset: 1 << 40, ..tagged },
            MessageHead { category: AmCategory::Long, offset: 8, apart: Some((1 << 20, i32::MAX)), ..tagged },
            MessageHead { purpose: Purpose::Returned, returned: (7, true), ..tagged },
            MessageHead { arguments: &[9; 16], ..tagged },
        ]
    }

    #[test]
    fn what_is_said_is_read_as_it_was_written() {
        for head in heads() {
            for bytes in [&[][..], &[7; 1], &[8; 100]] {
                let mut front = [0; FRONT_BYTES];
                let length = head.write(bytes.len(), &mut front);
                let message = [&front[..length], bytes].concat();
                let room = tight(&message);
                let (read, begin) = MessageHead::read(head.word(), &room, message.len()).expect("a message");
                assert_eq!((read, &message[begin..]), (head, bytes));
            }
        }
    }

    #[test]
    fn eight_arguments_fit_into_a_cell() {
        let head = MessageHead::new(Purpose::Request, AmCategory::Short, 1, &[1; 8]);
        assert_eq!(head.write(0, &mut [0; FRONT_BYTES]), 48);
    }

    #[test]
    fn what_is_cut_or_no_message_is_refused() {
        for head in heads() {
            let mut front = [0; FRONT_BYTES];
            let length = head.write(0, &mut front);
            for cut in 0..length {
                let room = tight(&front[..cut]);
                assert_eq!(MessageHead::read(head.word(), &room, cut), None, "{head:?} {cut}");
                assert_eq!(MessageHead::read(head.word(), &tight(&front), cut), None, "{head:?} {cut}, and more room");
            }
        }
        for word in [5 << 15, 3 << 13, 17 << 8, 1 << 19, -1] {
            assert_eq!(MessageHead::read(word, &[0; 25], 200), None, "{word:x}");
        }
    }
}

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
//! In the bytes: tag (8), receiving endpoint (4), sending endpoint (4); of a long message the offset in the segment (8),
//! and where its bytes follow their number and that of the message (8, 8); of one that comes back why (8); then the
//! arguments, 4 each, and the bytes at a multiple of 8. What is read is a claim.

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

/// Arguments, in the order in which the handler gets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AmArguments {
    values: [i32; MOST_ARGUMENTS],
    count: u8,
}

impl AmArguments {
    pub const NONE: Self = Self { values: [0; MOST_ARGUMENTS], count: 0 };

    /// `None` if there are more than [`MOST_ARGUMENTS`].
    #[inline]
    pub fn new(given: &[i32]) -> Option<Self> {
        let mut values = [0; MOST_ARGUMENTS];
        values.get_mut(..given.len())?.copy_from_slice(given);
        Some(Self { values, count: given.len() as u8 })
    }

    #[inline]
    pub fn values(&self) -> &[i32] {
        &self.values[..usize::from(self.count)]
    }
}

/// What a message says besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHead {
    pub purpose: Purpose,
    pub category: AmCategory,
    pub handler: u8,
    pub tag: u64,
    pub to: EndpointId,
    pub from: EndpointId,
    pub arguments: AmArguments,
    /// Of a long message: where its bytes go.
    pub offset: u64,
    /// They follow, so many, in the message of this number.
    pub apart: Option<(u64, i32)>,
    /// Of what comes back: why, and whether it was a request.
    pub returned: (u32, bool),
}

impl MessageHead {
    pub const fn new(purpose: Purpose, category: AmCategory, handler: u8, arguments: AmArguments) -> Self {
        let nowhere = EndpointId { slot: 0, generation: 0 };
        let (to, from) = (nowhere, nowhere);
        Self { purpose, category, handler, tag: 0, to, from, arguments, offset: 0, apart: None, returned: (0, false) }
    }

    #[inline]
    pub fn word(&self) -> i32 {
        let apart = i32::from(self.apart.is_some());
        let kinds = (self.category as i32) << 13 | (self.purpose as i32) << 15 | apart << 18;
        i32::from(self.handler) | i32::from(self.arguments.count) << 8 | kinds
    }

    /// Writes what stands in front of `bytes` of the user; how much that is.
    #[inline]
    pub fn write(&self, bytes: usize, into: &mut [u8; FRONT_BYTES]) -> usize {
        let mut at = 0;
        let mut put = |part: &[u8]| {
            into[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        };
        put(&self.tag.to_le_bytes());
        for id in [self.to, self.from] {
            put(&(u32::from(id.slot) | u32::from(id.generation) << 16).to_le_bytes());
        }
        if self.purpose == Purpose::Returned {
            put(&(u64::from(self.returned.0) | u64::from(self.returned.1) << 32).to_le_bytes());
        } else if self.category == AmCategory::Long {
            put(&self.offset.to_le_bytes());
        }
        if let Some((length, number)) = self.apart {
            put(&length.to_le_bytes());
            put(&u64::from(number as u32).to_le_bytes());
        }
        for value in self.arguments.values() {
            put(&value.to_le_bytes());
        }
        if bytes == 0 { at } else { at.next_multiple_of(8) }
    }

    /// Reads a message; with where the user's bytes begin. `None` if it is none.
    #[inline]
    pub fn read(word: i32, bytes: &[u8]) -> Option<(Self, usize)> {
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
        let mut head = Self::new(purpose, category, word as u8, AmArguments::NONE);
        let mut rest = HeadWords(bytes);
        head.tag = rest.long()?;
        let ids = rest.long()?;
        (head.to, head.from) = (endpoint_id(ids as u32), endpoint_id((ids >> 32) as u32));
        if purpose == Purpose::Returned {
            let why = rest.long()?;
            head.returned = (why as u32, why >> 32 & 1 == 1);
        } else if category == AmCategory::Long {
            head.offset = rest.long()?;
        }
        if word >> 18 & 1 == 1 {
            head.apart = Some((rest.long()?, rest.long()? as i32));
        }
        for value in &mut head.arguments.values[..count] {
            *value = rest.short()?;
        }
        head.arguments.count = count as u8;
        let front = bytes.len() - rest.0.len();
        Some((head, if rest.0.is_empty() { front } else { front.next_multiple_of(8).min(bytes.len()) }))
    }
}

fn endpoint_id(word: u32) -> EndpointId {
    EndpointId { slot: word as u16, generation: (word >> 16) as u16 }
}

struct HeadWords<'a>(&'a [u8]);

impl HeadWords<'_> {
    fn long(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*first))
    }

    fn short(&mut self) -> Option<i32> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(i32::from_le_bytes(*first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heads() -> Vec<MessageHead> {
        let arguments = AmArguments::new(&[1, -2, i32::MAX]).expect("few");
        let (to, from) = (EndpointId { slot: 1, generation: 2 }, EndpointId { slot: 3, generation: u16::MAX });
        let tagged = MessageHead {
            tag: u64::MAX - 4,
            to,
            from,
            ..MessageHead::new(Purpose::Request, AmCategory::Short, 255, arguments)
        };
        vec![
            MessageHead::new(Purpose::Barrier, AmCategory::Short, 0, AmArguments::NONE),
            tagged,
            MessageHead { category: AmCategory::Medium, purpose: Purpose::Reply, ..tagged },
            MessageHead { category: AmCategory::Long, offset: 1 << 40, ..tagged },
            MessageHead { category: AmCategory::Long, offset: 8, apart: Some((1 << 20, i32::MAX)), ..tagged },
            MessageHead { purpose: Purpose::Returned, returned: (7, true), ..tagged },
            MessageHead { arguments: AmArguments::new(&[9; 16]).expect("as many as may be"), ..tagged },
        ]
    }

    #[test]
    fn what_is_said_is_read_as_it_was_written() {
        for head in heads() {
            for bytes in [&[][..], &[7; 1], &[8; 100]] {
                let mut front = [0; FRONT_BYTES];
                let length = head.write(bytes.len(), &mut front);
                let message = [&front[..length], bytes].concat();
                let (read, begin) = MessageHead::read(head.word(), &message).expect("a message");
                assert_eq!((read, &message[begin..]), (head, bytes));
            }
        }
    }

    #[test]
    fn eight_arguments_fit_into_a_cell() {
        let head = MessageHead::new(Purpose::Request, AmCategory::Short, 1, AmArguments::new(&[1; 8]).expect("few"));
        assert_eq!(head.write(0, &mut [0; FRONT_BYTES]), 48);
    }

    #[test]
    fn what_is_cut_or_no_message_is_refused() {
        for head in heads() {
            let mut front = [0; FRONT_BYTES];
            let length = head.write(0, &mut front);
            (0..length)
                .for_each(|cut| assert_eq!(MessageHead::read(head.word(), &front[..cut]), None, "{head:?} {cut}"));
        }
        for word in [5 << 15, 3 << 13, 17 << 8, 1 << 19, -1] {
            assert_eq!(MessageHead::read(word, &[0; 200]), None, "{word:x}");
        }
    }
}

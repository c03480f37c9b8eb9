//! Packets of active messages: a handler of the receiver is called with arguments and bytes.
//!
//! They have the kind [`Kind::Other`](crate::cell::Kind::Other), and this protocol's number as context. The tag is the
//! number of the handler. The source has what it is (bits 0-3), how many arguments there are (4-7), and in bits 8-31
//! the landing of a long request, or in any other packet how many requests of the receiver are answered with it.
//!
//! | what | number | control words | bytes |
//! |---|---|---|---|
//! | request | 1 | arguments | behind those; or in a bulk payload, then a word with their number goes first |
//! | reply | 2 | as in a request | as in a request |
//! | long | 3 | number of bytes, offset in the landing, arguments | bulk payload |
//! | refused | 4 | why: 1 no such handler, 2 no such place | |
//! | credit | 5 | | |

use crate::cell::{Head, INLINE_WORDS};

/// The number of this protocol.
pub const NUMBER: u32 = 1;
/// Most arguments of a message, 64 bits each.
pub const MOST_ARGUMENTS: usize = 3;
/// Most bytes of a request that is not long, and of a reply.
pub const MEDIUM_BYTES: usize = 32 * 1024;
/// So many requests of one process to another may wait for their answers.
pub const WINDOW: u32 = 64;
/// Landings have numbers below.
pub const LANDINGS: u32 = 1 << 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActiveKind {
    Request = 1,
    Reply = 2,
    Long = 3,
    Refused = 4,
    Credit = 5,
}

/// NotHandled a message was not handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotHandled {
    NoHandler = 1,
    NoPlace = 2,
}

/// Arguments, in the order in which the handler gets them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActiveArguments {
    values: [u64; MOST_ARGUMENTS],
    count: usize,
}

impl ActiveArguments {
    /// `None` if there are more than [`MOST_ARGUMENTS`].
    pub fn new(given: &[u64]) -> Option<Self> {
        let mut values = [0; MOST_ARGUMENTS];
        values.get_mut(..given.len())?.copy_from_slice(given);
        Some(Self { values, count: given.len() })
    }

    pub fn values(&self) -> &[u64] {
        &self.values[..self.count]
    }
}

/// What a packet that begins a message says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveHead {
    pub what: ActiveKind,
    pub handler: u32,
    pub arguments: ActiveArguments,
    /// So many requests of the receiver are answered. A long request answers none.
    pub answered: u32,
    /// Of a long request.
    pub landing: u32,
    pub offset: u64,
    /// Bytes of the message; unknown where they travel in the cell.
    pub total: Option<u64>,
}

impl ActiveHead {
    pub const fn new(what: ActiveKind, handler: u32, arguments: ActiveArguments) -> Self {
        Self { what, handler, arguments, answered: 0, landing: 0, offset: 0, total: None }
    }

    pub fn head(&self) -> Head {
        let upper = if let ActiveKind::Long = self.what { self.landing } else { self.answered };
        let source = self.what as u32 | (self.arguments.count as u32) << 4 | upper << 8;
        Head::of_protocol(NUMBER, self.handler as i32, source)
    }

    /// The control words, and how many there are.
    pub fn words(&self) -> ([u64; INLINE_WORDS], usize) {
        let (mut words, mut count) = ([0; INLINE_WORDS], 0);
        let place = matches!(self.what, ActiveKind::Long).then_some(self.offset);
        for word in self.total.into_iter().chain(place).chain(self.arguments.values().iter().copied()) {
            words[count] = word;
            count += 1;
        }
        (words, count)
    }

    /// Reads a packet, which has `words` with so many bytes, and a bulk payload if it is `bulk`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(
        head: &Head,
        words: &[u64; INLINE_WORDS],
        inline_bytes: usize,
        bulk: bool,
    ) -> Result<Self, &'static str> {
        let what = match head.source & 15 {
            1 => ActiveKind::Request,
            2 => ActiveKind::Reply,
            3 => ActiveKind::Long,
            4 => ActiveKind::Refused,
            5 => ActiveKind::Credit,
            _ => return Err("an active message of no kind"),
        };
        let (count, upper) = ((head.source >> 4 & 15) as usize, head.source >> 8);
        let is_long = what == ActiveKind::Long;
        let before = usize::from(bulk || is_long) + usize::from(is_long);
        if count > MOST_ARGUMENTS || inline_bytes < 8 * (before + count) || before + count > INLINE_WORDS {
            return Err("an active message without its arguments");
        }
        let arguments = ActiveArguments::new(&words[before..before + count]).unwrap_or_default();
        let mut opening = Self::new(what, head.tag as u32, arguments);
        (opening.answered, opening.landing) = if is_long { (0, upper) } else { (upper, 0) };
        opening.total = (before > 0).then_some(words[0]);
        opening.offset = if is_long { words[1] } else { 0 };
        if !is_long && opening.total.is_some_and(|total| total > MEDIUM_BYTES as u64) {
            return Err("an active message that is too long");
        }
        Ok(opening)
    }

    /// Bytes of control words in front of the payload that travels in the cell.
    pub fn front_bytes(&self) -> usize {
        8 * self.words().1
    }
}

impl NotHandled {
    pub const fn from_word(word: u64) -> Option<Self> {
        match word {
            1 => Some(Self::NoHandler),
            2 => Some(Self::NoPlace),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(opening: &ActiveHead, bulk: bool) -> Result<ActiveHead, &'static str> {
        let (words, count) = opening.words();
        ActiveHead::read(&opening.head(), &words, 8 * count, bulk)
    }

    #[test]
    fn what_is_said_is_read_as_it_was_written() {
        for given in [&[][..], &[1], &[1, u64::MAX, 3]] {
            let arguments = ActiveArguments::new(given).expect("few enough");
            for what in [ActiveKind::Request, ActiveKind::Reply, ActiveKind::Refused, ActiveKind::Credit] {
                let short = ActiveHead { answered: WINDOW, ..ActiveHead::new(what, u32::MAX, arguments) };
                assert_eq!(read(&short, false), Ok(short));
                let medium = ActiveHead { total: Some(MEDIUM_BYTES as u64), ..short };
                assert_eq!(read(&medium, true), Ok(medium));
            }
            let (landing, offset, total) = (LANDINGS - 1, u64::MAX, Some(u64::MAX));
            let long = ActiveHead { landing, offset, total, ..ActiveHead::new(ActiveKind::Long, 7, arguments) };
            assert_eq!((read(&long, true), read(&long, false)), (Ok(long), Ok(long)));
        }
        assert_eq!(ActiveArguments::new(&[0; MOST_ARGUMENTS + 1]), None);
    }

    #[test]
    fn golden_words() {
        let arguments = ActiveArguments::new(&[9]).expect("few enough");
        let long =
            ActiveHead { landing: 2, offset: 64, total: Some(100), ..ActiveHead::new(ActiveKind::Long, 5, arguments) };
        assert_eq!(long.head(), Head::of_protocol(1, 5, 0x0000_0213));
        assert_eq!(long.words(), ([100, 64, 9, 0, 0, 0], 3));
    }

    #[test]
    fn nonsense_is_refused() {
        let head = |source| Head::of_protocol(NUMBER, 1, source);
        let words = [u64::MAX; INLINE_WORDS];
        for source in [0, 6, 15, 0x41, 0xf1] {
            assert!(ActiveHead::read(&head(source), &words, 48, false).is_err(), "{source:x}");
        }
        assert!(ActiveHead::read(&head(0x21), &words, 15, false).is_err(), "half an argument");
        assert!(ActiveHead::read(&head(0x31), &words, 24, true).is_err(), "no room for the length");
        assert!(ActiveHead::read(&head(0x01), &words, 8, true).is_err(), "too long");
        assert!(ActiveHead::read(&head(0x33), &words, 32, true).is_err(), "no room for the place");
        assert_eq!((NotHandled::from_word(0), NotHandled::from_word(3)), (None, None));
    }
}

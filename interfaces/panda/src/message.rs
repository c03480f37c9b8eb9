//! Messages: a stack of pieces. A piece that is pushed stays where it is, since programs keep pointers to it, also
//! beyond its pop; each has a length that is a multiple of 8, so that all are aligned to that, here and where they
//! arrive.

use crate::fragments::{Cut, FIRST, Fragment, LAST};
use std::borrow::Cow;
use std::ffi::c_void;
use weft_ports::ready::bytes_of;

/// Strictest alignment of a piece.
pub const ALIGNMENT: usize = 8;
/// Words of a block that has pieces of less.
const BLOCK_WORDS: usize = 60;

/// Called by `pan_msg_clear` in its place.
pub type ReleaseFunction = unsafe extern "C" fn(*mut PandaMessage, *mut c_void);

/// Bytes that have come.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Content {
    pub words: Vec<u64>,
    pub length: usize,
}

impl Content {
    pub fn bytes(&self) -> &[u8] {
        bytes_of(&self.words, self.length)
    }
}

struct PieceBlock {
    words: Vec<u64>,
    /// Bytes of pieces, a multiple of 8.
    used: usize,
}

impl PieceBlock {
    fn with_room(size: usize) -> Self {
        Self { words: vec![0; (size / 8).max(BLOCK_WORDS)], used: 0 }
    }

    fn room(&self) -> usize {
        8 * self.words.len() - self.used
    }

    fn place(&mut self, offset: usize) -> *mut u8 {
        self.words.as_mut_ptr().cast::<u8>().wrapping_add(offset)
    }

    fn bytes(&self) -> &[u8] {
        bytes_of(&self.words, self.used)
    }
}

#[derive(Default)]
pub struct PandaMessage {
    blocks: Vec<PieceBlock>,
    /// The block with the head of the message. Those behind it have what was popped.
    at: usize,
    pub releases: Vec<(ReleaseFunction, *mut c_void)>,
    /// What is left to be sent in fragments.
    pub cut: Option<Box<Cut>>,
}

// SAFETY: the pointers of release functions are only handed back to the program.
unsafe impl Send for PandaMessage {}

impl PandaMessage {
    pub fn of(content: Content) -> Self {
        let mut message = Self::default();
        message.fill(content);
        message
    }

    /// Puts this in the place of all pieces.
    pub fn fill(&mut self, Content { mut words, length }: Content) {
        words.resize(words.len().max(length.div_ceil(8)), 0);
        self.at = 0;
        self.blocks.clear();
        if length > 0 {
            self.blocks.push(PieceBlock { words, used: length.next_multiple_of(8) });
        }
    }

    /// A new piece at the head.
    #[inline]
    pub fn push(&mut self, length: usize) -> *mut u8 {
        let size = length.next_multiple_of(8);
        if self.blocks.get(self.at).is_none_or(|block| block.room() < size) {
            let next = self.at + usize::from(!self.blocks.is_empty());
            match self.blocks.get_mut(next) {
                Some(popped) if 8 * popped.words.len() >= size => popped.used = 0,
                _ => self.blocks.insert(next, PieceBlock::with_room(size)),
            }
            self.at = next;
        }
        let block = &mut self.blocks[self.at];
        let begin = block.used;
        block.used += size;
        block.place(begin)
    }

    /// The block that a piece at the head lies in; `None` if it has no such piece.
    #[inline]
    fn head(&mut self, size: usize) -> Option<&mut PieceBlock> {
        while self.at > 0 && size > 0 && self.blocks[self.at].used == 0 {
            self.at -= 1;
        }
        self.blocks.get_mut(self.at).filter(|block| block.used >= size)
    }

    /// Takes the piece at the head, which stays where it is; `None` if there are not so many bytes.
    #[inline]
    pub fn pop(&mut self, length: usize) -> Option<*mut u8> {
        let size = length.next_multiple_of(8);
        if size == 0 && self.blocks.is_empty() {
            return Some(std::ptr::without_provenance_mut(ALIGNMENT));
        }
        let block = self.head(size)?;
        block.used -= size;
        Some(block.place(block.used))
    }

    /// As [`Self::pop`]; the piece stays at the head.
    pub fn look(&mut self, length: usize) -> Option<*mut u8> {
        let place = self.pop(length)?;
        if let Some(block) = self.blocks.get_mut(self.at) {
            block.used += length.next_multiple_of(8);
        }
        Some(place)
    }

    pub fn empty(&mut self) {
        self.blocks.truncate(1);
        self.blocks.iter_mut().for_each(|block| block.used = 0);
        self.at = 0;
    }

    fn pieces(&self) -> &[PieceBlock] {
        let blocks = self.blocks.len().min(self.at + 1);
        &self.blocks[..blocks]
    }

    /// Bytes of all pieces.
    pub fn length(&self) -> usize {
        self.pieces().iter().map(|block| block.used).sum()
    }

    /// All pieces in a row, the head last.
    #[inline]
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        match self.pieces() {
            [] => Cow::Borrowed(&[]),
            [block] => Cow::Borrowed(block.bytes()),
            blocks => Cow::Owned(blocks.iter().flat_map(|block| block.bytes()).copied().collect()),
        }
    }

    /// The bytes of all pieces, without a copy where they lie in a row.
    pub fn into_content(mut self) -> Content {
        let length = self.length();
        match self.pieces().len() {
            0 => Content::default(),
            1 => Content { words: self.blocks.swap_remove(0).words, length },
            _ => Content { words: words_of(&self.bytes()), length },
        }
    }

    /// Puts bytes at the head, in a row with those that are there. Pieces may move.
    pub fn append(&mut self, bytes: &[u8]) {
        let mut all = self.bytes().into_owned();
        all.extend_from_slice(bytes);
        let length = all.len();
        self.fill(Content { words: words_of(&all), length });
    }

    /// Cuts the first fragment off a message, which stays as it is.
    pub fn cut(&mut self, point: u32) -> &mut Fragment {
        let bytes = self.bytes().into_owned();
        let cut = self.cut.get_or_insert_default();
        cut.rest = bytes;
        cut.fragment.point = point;
        cut.next(FIRST)
    }

    /// The next one; `None` if the last one was the last.
    pub fn cut_next(&mut self) -> Option<&mut Fragment> {
        let cut = self.cut.as_mut().filter(|cut| cut.fragment.flags & LAST == 0)?;
        Some(cut.next(0))
    }

    /// Puts a copy of another one's pieces in the place of all that are here.
    pub fn copy_from(&mut self, other: &Self) {
        let bytes = other.bytes();
        self.fill(Content { words: words_of(&bytes), length: bytes.len() });
    }
}

/// A copy of bytes at a multiple of 8.
#[inline]
pub fn words_of(bytes: &[u8]) -> Vec<u64> {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut copy: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        copy.push(u64::from_ne_bytes(last));
    }
    copy
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes pieces of these lengths, each filled with its number; where they lie.
    fn pushed(message: &mut PandaMessage, lengths: &[usize]) -> Vec<*mut u8> {
        let places = lengths.iter().map(|length| message.push(*length)).collect::<Vec<_>>();
        for (number, (place, length)) in places.iter().zip(lengths).enumerate() {
            // SAFETY: the piece is as long.
            unsafe { place.write_bytes(number as u8, *length) };
        }
        places
    }

    fn piece(place: *mut u8, length: usize) -> Vec<u8> {
        // SAFETY: the message lives, and the piece is as long.
        unsafe { std::slice::from_raw_parts(place, length) }.to_vec()
    }

    const LENGTHS: [usize; 8] = [20_000, 1, 5, 0, 20_000, 8, 480, 3];

    #[test]
    fn pieces_come_back_in_reverse_at_the_same_places() {
        let mut message = PandaMessage::default();
        let places = pushed(&mut message, &LENGTHS);
        for (number, length) in LENGTHS.into_iter().enumerate().rev() {
            // Where nothing lies is not said.
            let place = |found: Option<*mut u8>| found.map(|found| if length == 0 { places[number] } else { found });
            let looked = place(message.look(length));
            assert_eq!((looked, place(message.pop(length))), (Some(places[number]), Some(places[number])));
            assert_eq!(piece(places[number], length), vec![number as u8; length]);
            assert!(places[number].addr().is_multiple_of(ALIGNMENT));
        }
        assert_eq!((message.pop(1), message.length()), (None, 0));
        assert!(message.pop(0).is_some());
    }

    #[test]
    fn a_message_that_has_arrived_has_the_same_pieces() {
        let mut message = PandaMessage::default();
        pushed(&mut message, &LENGTHS);
        let bytes = message.bytes();
        let mut arrived = PandaMessage::of(Content { words: words_of(&bytes), length: bytes.len() });
        let mut copy = PandaMessage::default();
        copy.copy_from(&message);
        let mut assembled = PandaMessage::default();
        bytes.chunks(4096).for_each(|chunk| assembled.append(chunk));
        for message in [&mut arrived, &mut copy, &mut assembled] {
            for (number, length) in LENGTHS.into_iter().enumerate().rev() {
                let place = message.pop(length).expect("a piece");
                assert_eq!(piece(place, length), vec![number as u8; length]);
            }
        }
    }

    #[test]
    fn what_was_popped_stays_until_more_is_pushed_in_its_place() {
        let mut message = PandaMessage::default();
        let places = pushed(&mut message, &[8, 600, 8]);
        message.pop(8);
        message.pop(600);
        assert_eq!(piece(places[1], 600), [1; 600]);
        let larger = message.push(50_000);
        assert_eq!(piece(places[1], 600), [1; 600]);
        assert_eq!(message.pop(50_000), Some(larger));
        assert_eq!(message.pop(8), Some(places[0]));
        assert_eq!(message.pop(8), None);
    }
}

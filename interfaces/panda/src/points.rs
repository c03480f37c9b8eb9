//! Service points, which fragments of messages and small data are sent to, and the fragments.

use crate::message::{Content, PandaMessage, words_of};
use crate::world::Arrived;
use std::ffi::{c_int, c_void};

pub const FIRST: c_int = 1;
pub const LAST: c_int = 2;

/// Most bytes of a message in a fragment.
const FRAGMENT_BYTES: usize = 16 * 1024;
/// Longest header.
pub const HEADER_BYTES: usize = 32;
/// Longest small data.
pub const SMALL_BYTES: usize = 16;

pub type FragmentFunction = unsafe extern "C" fn(*mut Fragment);
pub type SmallFunction = unsafe extern "C" fn(*mut c_void);

/// What a service point does with what comes.
#[derive(Clone, Copy)]
pub enum Point {
    Fragments { handler: FragmentFunction, header: usize },
    Small { handler: SmallFunction, length: usize },
}

#[derive(Default)]
pub struct Points(Vec<Option<Point>>);

impl Points {
    /// A number, in the order of calls, which is the same on all platforms.
    pub fn add(&mut self) -> u32 {
        self.0.push(None);
        self.0.len() as u32 - 1
    }

    /// False if there is no such point.
    pub fn set(&mut self, number: u32, point: Option<Point>) -> bool {
        let place = self.0.get_mut(number as usize);
        place.map(|place| *place = point).is_some()
    }

    pub fn at(&self, number: u32) -> Option<Point> {
        self.0.get(number as usize).copied().flatten()
    }
}

/// A part of a message, and the header of the module that sends it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fragment {
    pub flags: c_int,
    /// The service point that it goes to.
    pub point: u32,
    pub header: [u64; HEADER_BYTES / 8],
    pub data: Vec<u8>,
}

impl Fragment {
    /// As it travels: the header, then the data.
    pub fn content(&self, header: usize) -> Content {
        let words = header.div_ceil(8).min(self.header.len());
        let mut all = self.header[..words].to_vec();
        all.extend(words_of(&self.data));
        Content { words: all, length: 8 * words + self.data.len() }
    }

    fn arrived(point: u32, flags: u32, header: usize, content: &Content) -> Option<Self> {
        let words = header.div_ceil(8);
        let mut fragment = Self { flags: flags as c_int & (FIRST | LAST), point, ..Self::default() };
        fragment.header[..words].copy_from_slice(content.words.get(..words)?);
        fragment.data = content.bytes().get(8 * words..)?.to_vec();
        Some(fragment)
    }
}

/// How far a message was cut into fragments: the one that the program has, and the bytes behind it.
#[derive(Default)]
pub struct Cut {
    fragment: Fragment,
    rest: Vec<u8>,
}

impl Cut {
    fn next(&mut self, flags: c_int) -> &mut Fragment {
        let behind = self.rest.split_off(self.rest.len().min(FRAGMENT_BYTES));
        self.fragment.data = std::mem::replace(&mut self.rest, behind);
        self.fragment.flags = flags | if self.rest.is_empty() { LAST } else { 0 };
        &mut self.fragment
    }
}

impl PandaMessage {
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
}

/// Calls the handler of a service point.
pub fn call_point(point: &Point, number: u32, Arrived { label, content, .. }: Arrived) {
    match point {
        Point::Fragments { handler, header } => {
            let Some(mut fragment) = Fragment::arrived(number, label.beside, *header, &content) else { return };
            // SAFETY: the program has registered a function of this type; the fragment lives across the call.
            unsafe { handler(&raw mut fragment) };
        }
        Point::Small { handler, length } => {
            let mut data = [0u64; SMALL_BYTES / 8];
            let words = content.words.len().min(length.div_ceil(8)).min(data.len());
            data[..words].copy_from_slice(&content.words[..words]);
            // SAFETY: as above, and so does the data.
            unsafe { handler(data.as_mut_ptr().cast()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_put_together_are_the_message() {
        for length in [0, 8, 16_384, 16_392, 100_000] {
            let mut message = PandaMessage::default();
            let place = message.push(length);
            // SAFETY: the piece is as long.
            unsafe { place.write_bytes(7, length) };
            let mut all = vec![message.cut(3).clone()];
            while let Some(next) = message.cut_next() {
                all.push(next.clone());
            }
            assert_eq!((all[0].flags & FIRST, all.last().expect("one").flags & LAST), (FIRST, LAST));
            assert!(all.iter().skip(1).all(|fragment| fragment.flags & FIRST == 0));
            let mut whole = PandaMessage::default();
            for fragment in &mut all {
                fragment.header[0] = 5;
                let content = fragment.content(4);
                let arrived = Fragment::arrived(3, fragment.flags as u32, 4, &content).expect("a fragment");
                assert_eq!(arrived, *fragment);
                whole.append(&arrived.data);
            }
            assert_eq!(whole.bytes(), message.bytes());
        }
    }

    #[test]
    fn what_has_no_header_is_no_fragment() {
        assert_eq!(Fragment::arrived(0, 3, 32, &Content { words: vec![1, 2], length: 16 }), None);
    }
}

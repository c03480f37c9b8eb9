//! Service points, which fragments of messages and small data are sent to.

use crate::fragments::Fragment;
use crate::labels::PandaArrival;
use std::ffi::c_void;

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

/// Calls the handler of a service point.
pub fn call_point(point: &Point, number: u32, PandaArrival { label, content, .. }: PandaArrival) {
    match point {
        Point::Fragments { handler, header } => {
            let Some(mut fragment) = Fragment::arrived(number, label.beside, *header, content.bytes()) else { return };
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
    use crate::fragments::{FIRST, LAST};
    use crate::message::PandaMessage;

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
                let bytes = fragment.bytes(4);
                let arrived = Fragment::arrived(3, fragment.flags as u32, 4, &bytes).expect("a fragment");
                assert_eq!(arrived, *fragment);
                whole.append(&arrived.data);
            }
            assert_eq!(whole.bytes(), message.bytes());
        }
    }

    #[test]
    fn what_has_no_header_is_no_fragment() {
        assert_eq!(Fragment::arrived(0, 3, 32, &[1; 31]), None);
    }
}

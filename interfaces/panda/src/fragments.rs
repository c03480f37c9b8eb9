//! Fragments: parts of messages, as modules send them.

use std::ffi::c_int;
use weft_ports::ready::bytes_of;

pub const FIRST: c_int = 1;
pub const LAST: c_int = 2;

/// Most bytes of a message in a fragment.
const FRAGMENT_BYTES: usize = 16 * 1024;
/// Longest header.
pub const HEADER_BYTES: usize = 32;

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
    pub fn bytes(&self, header: usize) -> Vec<u8> {
        let words = header.div_ceil(8).min(self.header.len());
        [bytes_of(&self.header, 8 * words), &self.data].concat()
    }

    pub fn arrived(point: u32, flags: u32, header: usize, bytes: &[u8]) -> Option<Self> {
        let words = header.div_ceil(8);
        let mut fragment = Self { flags: flags as c_int & (FIRST | LAST), point, ..Self::default() };
        for (word, bytes) in fragment.header.iter_mut().zip(bytes.get(..8 * words)?.as_chunks().0) {
            *word = u64::from_ne_bytes(*bytes);
        }
        fragment.data = bytes[8 * words..].to_vec();
        Some(fragment)
    }
}

/// How far a message was cut into fragments: the one that the program has, and the bytes behind it.
#[derive(Default)]
pub struct Cut {
    pub fragment: Fragment,
    pub rest: Vec<u8>,
}

impl Cut {
    pub fn next(&mut self, flags: c_int) -> &mut Fragment {
        let behind = self.rest.split_off(self.rest.len().min(FRAGMENT_BYTES));
        self.fragment.data = std::mem::replace(&mut self.rest, behind);
        self.fragment.flags = flags | if self.rest.is_empty() { LAST } else { 0 };
        &mut self.fragment
    }
}

//! The source word of a message: who has sent it, and how it is written.

use crate::buffer::Encoding;
use std::ffi::c_int;

/// The bits of the source word that are the sender's identifier; the encoding stands above.
const TID_BITS: u32 = 30;

/// What the source word of a message says.
pub fn source_word(tid: c_int, encoding: Encoding) -> u32 {
    (tid as u32 & ((1 << TID_BITS) - 1)) | (encoding as u32) << TID_BITS
}

/// The sender of a message, and its encoding.
pub fn read_source(word: u32) -> (c_int, Encoding) {
    ((word & ((1 << TID_BITS) - 1)) as c_int, Encoding::from_bits(word >> TID_BITS))
}

/// Whether a message was sent from where it stood in the program's memory. Who unpacks it does not see that.
pub fn came_in_place(word: u32) -> bool {
    word >> TID_BITS == Encoding::InPlace as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_word_says_who_has_sent_and_how() {
        for encoding in [Encoding::Default, Encoding::Raw, Encoding::InPlace] {
            let word = source_word(0x40001, encoding);
            assert_eq!(read_source(word).0, 0x40001);
            assert_eq!(came_in_place(word), encoding == Encoding::InPlace);
        }
        assert_eq!(read_source(source_word(1, Encoding::InPlace)).1, Encoding::Raw);
    }
}

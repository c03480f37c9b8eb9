//! A message authentication code of 64 bits that is fast on any processor: SipHash-2-4 (Aumasson, Bernstein: "SipHash:
//! a fast short-input PRF", 2012) over the packet number, eight bytes little-endian, followed by what is sealed.

use siphasher::sip::SipHasher24;
use std::hash::Hasher;

/// The secret of a job, from its launcher.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key(pub [u8; 16]);

/// A key is not printed.
impl std::fmt::Debug for Key {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Key")
    }
}

/// The code of the sealed bytes of packet `number`.
pub fn code(key: &Key, number: u64, bytes: &[u8]) -> u64 {
    let mut state = SipHasher24::new_with_key(&key.0);
    state.write(&number.to_le_bytes());
    state.write(bytes);
    state.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's example: key 00 01 ... 0f, message 00 01 ... 0e.
    #[test]
    fn the_answer_of_the_paper() {
        let key = Key(std::array::from_fn(|at| at as u8));
        let message: [u8; 15] = std::array::from_fn(|at| at as u8);
        let (number, rest) = message.split_first_chunk().expect("longer than eight");
        assert_eq!(code(&key, u64::from_le_bytes(*number), rest), 0xa129_ca61_49be_45e5);
    }

    #[test]
    fn key_number_and_every_byte_count() {
        let code_of = |key: u8, number, bytes: &[u8]| code(&Key([key; 16]), number, bytes);
        let bytes = [7; 21];
        let whole = code_of(1, 2, &bytes);
        assert_ne!(code_of(2, 2, &bytes), whole);
        assert_ne!(code_of(1, 3, &bytes), whole);
        assert_ne!(code_of(1, 2, &bytes[..20]), whole);
        for at in 0..bytes.len() {
            let mut other = bytes;
            other[at] ^= 1;
            assert_ne!(code_of(1, 2, &other), whole, "byte {at}");
        }
    }
}

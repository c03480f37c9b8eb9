//! SipHash-2-4 with 128 bits of output: a keyed tag over a short text.
//!
//! Who does not know the key can neither make the tag of a text nor learn the key from tags. Defined in Aumasson and
//! Bernstein, "SipHash: a fast short-input PRF" (2012), and its authors' reference for the longer output.

/// Bytes of a key.
pub const KEY_BYTES: usize = 16;
/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;

struct State([u64; 4]);

impl State {
    fn new(key: &[u8; KEY_BYTES]) -> Self {
        let (low, high) = (word(&key[..8]), word(&key[8..]));
        let [a, b, c, d] = *b"somepseudorandomlygeneratedbytes".as_chunks::<8>().0.first_chunk().expect("four words");
        let constant = |bytes: [u8; 8]| u64::from_be_bytes(bytes);
        // The longer output is kept apart from the shorter one by this constant.
        let longer = 0xee;
        Self([constant(a) ^ low, constant(b) ^ high ^ longer, constant(c) ^ low, constant(d) ^ high])
    }

    fn rounds(&mut self, count: usize) {
        let [mut a, mut b, mut c, mut d] = self.0;
        for _ in 0..count {
            a = a.wrapping_add(b);
            b = b.rotate_left(13) ^ a;
            a = a.rotate_left(32);
            c = c.wrapping_add(d);
            d = d.rotate_left(16) ^ c;
            a = a.wrapping_add(d);
            d = d.rotate_left(21) ^ a;
            c = c.wrapping_add(b);
            b = b.rotate_left(17) ^ c;
            c = c.rotate_left(32);
        }
        self.0 = [a, b, c, d];
    }

    fn absorb(&mut self, word: u64) {
        self.0[3] ^= word;
        self.rounds(2);
        self.0[0] ^= word;
    }

    fn squeeze(&mut self, place: usize, mark: u64) -> u64 {
        self.0[place] ^= mark;
        self.rounds(4);
        self.0.iter().fold(0, |all, word| all ^ word)
    }
}

/// Up to eight bytes as a number.
fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// The tag of `text` under `key`.
pub fn tag(key: &[u8; KEY_BYTES], text: &[u8]) -> [u8; TAG_BYTES] {
    let mut state = State::new(key);
    let (words, rest) = text.as_chunks::<8>();
    words.iter().for_each(|bytes| state.absorb(word(bytes)));
    state.absorb((text.len() as u64) << 56 | word(rest));
    let halves = [state.squeeze(2, 0xee), state.squeeze(1, 0xdd)];
    let mut tag = [0; TAG_BYTES];
    tag[..8].copy_from_slice(&halves[0].to_le_bytes());
    tag[8..].copy_from_slice(&halves[1].to_le_bytes());
    tag
}

/// Whether two tags are the same. How long it takes says nothing of where they differ.
pub fn same(one: &[u8; TAG_BYTES], other: &[u8; TAG_BYTES]) -> bool {
    one.iter().zip(other).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test vectors of the authors: key 00 01 .. 0f, text 00 01 .. of growing length.
    #[test]
    fn the_authors_vectors() {
        let key = std::array::from_fn(|i| i as u8);
        let text: Vec<u8> = (0..64).collect();
        let of = |length: usize| tag(&key, &text[..length]);
        assert_eq!(of(0), 0xa381_7f04_ba25_a8e6_6df6_7214_c755_0293_u128.to_be_bytes());
        assert_eq!(of(1), 0xda87_c1d8_6b99_af44_3476_5911_9b22_fc45_u128.to_be_bytes());
        assert_eq!(of(7), 0xa1f1_ebbe_d8db_c153_c0b8_4aa6_1ff0_8239_u128.to_be_bytes());
        assert_eq!(of(8), 0x3b62_a9ba_6258_f561_0f83_e264_f314_97b4_u128.to_be_bytes());
    }

    #[test]
    fn tags_differ_where_one_bit_does() {
        let (key, other) = ([7; KEY_BYTES], {
            let mut k = [7; KEY_BYTES];
            k[15] ^= 1;
            k
        });
        assert!(same(&tag(&key, b"text"), &tag(&key, b"text")));
        assert!(!same(&tag(&key, b"text"), &tag(&other, b"text")));
        assert!(!same(&tag(&key, b"text"), &tag(&key, b"texu")));
    }
}

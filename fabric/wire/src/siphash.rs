//! SipHash-2-4 with 128 bits of output: a keyed tag over a short text.
//!
//! Who does not know the key can neither make the tag of a text nor learn the key from tags. Defined in Aumasson and
//! Bernstein, "SipHash: a fast short-input PRF" (2012), and its authors' reference for the longer output.

use siphasher::sip128::SipHasher24;

/// Bytes of a key.
pub const KEY_BYTES: usize = 16;
/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;

/// The tag of `text` under `key`.
pub fn tag(key: &[u8; KEY_BYTES], text: &[u8]) -> [u8; TAG_BYTES] {
    SipHasher24::new_with_key(key).hash(text).as_bytes()
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

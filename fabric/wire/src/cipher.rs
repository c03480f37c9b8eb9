//! Encryption of what goes between hosts: AES-128 in Galois/Counter Mode (NIST SP 800-38D), with tags of 16 bytes.
//!
//! Who does not know the key learns nothing of the bytes but how many they are, and cannot change a bit of them unseen.
//! That holds as long as no two texts are sealed with the same key and nonce, which is for the caller to see to.

use aes_gcm::aead::AeadInPlace;
use aes_gcm::{Aes128Gcm, KeyInit};

pub const KEY_BYTES: usize = 16;
pub const NONCE_BYTES: usize = 12;
pub const TAG_BYTES: usize = 16;

/// Used once with a key.
pub type Nonce = [u8; NONCE_BYTES];
pub type Tag = [u8; TAG_BYTES];

/// Seals and opens with one key.
#[derive(Clone)]
pub struct Cipher(Aes128Gcm);

impl Cipher {
    pub fn new(key: &[u8; KEY_BYTES]) -> Self {
        Self(Aes128Gcm::new(key.into()))
    }

    /// Encrypts `bytes`; the tag is over them and `clear`, which is not encrypted.
    ///
    /// # Panics
    /// For texts of 64 GiB and more.
    pub fn seal(&self, nonce: &Nonce, clear: &[u8], bytes: &mut [u8]) -> Tag {
        let tag = self.0.encrypt_in_place_detached(nonce.into(), clear, bytes);
        tag.expect("no text of ours is that long").into()
    }

    /// Decrypts `bytes`; false, and nothing is decrypted, if they or `clear` are not what was sealed.
    #[must_use]
    pub fn open(&self, nonce: &Nonce, clear: &[u8], bytes: &mut [u8], tag: &Tag) -> bool {
        self.0.decrypt_in_place_detached(nonce.into(), clear, bytes, tag.into()).is_ok()
    }
}

/// A key is not printed.
impl std::fmt::Debug for Cipher {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Cipher")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<const N: usize>(text: &str) -> [u8; N] {
        std::array::from_fn(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("hexadecimal digits"))
    }

    /// Test case 4 of McGrew and Viega, "The Galois/Counter Mode of Operation", appendix B.
    #[test]
    fn the_authors_test_case() {
        let cipher = Cipher::new(&bytes("feffe9928665731c6d6a8f9467308308"));
        let mut text: [u8; 60] = bytes(
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
        );
        let (clear, nonce) =
            (bytes::<20>("feedfacedeadbeeffeedfacedeadbeefabaddad2"), bytes("cafebabefacedbaddecaf888"));
        let plain = text;
        let tag = cipher.seal(&nonce, &clear, &mut text);
        assert_eq!(
            text,
            bytes::<60>(
                "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091"
            )
        );
        assert_eq!(tag, bytes("5bc94fbc3221a5db94fae95ae7121a47"));
        assert!(cipher.open(&nonce, &clear, &mut text, &tag) && text == plain);
    }

    #[test]
    fn what_was_changed_anywhere_is_not_opened() {
        let cipher = Cipher::new(&[7; KEY_BYTES]);
        let (nonce, clear) = ([1; NONCE_BYTES], [2; 9]);
        let mut text = [3; 33];
        let tag = cipher.seal(&nonce, &clear, &mut text);
        let opens = |cipher: &Cipher, nonce: &Nonce, clear: &[u8], mut text: [u8; 33], tag: &Tag| {
            cipher.open(nonce, clear, &mut text, tag)
        };
        assert!(opens(&cipher, &nonce, &clear, text, &tag));
        for at in 0..33 {
            let mut other = text;
            other[at] ^= 0x10;
            assert!(!opens(&cipher, &nonce, &clear, other, &tag), "byte {at}");
        }
        for at in 0..TAG_BYTES {
            let mut other = tag;
            other[at] ^= 1;
            assert!(!opens(&cipher, &nonce, &clear, text, &other), "byte {at} of the tag");
        }
        assert!(!opens(&cipher, &[0; NONCE_BYTES], &clear, text, &tag));
        assert!(!opens(&cipher, &nonce, &clear[1..], text, &tag));
        assert!(!opens(&Cipher::new(&[8; KEY_BYTES]), &nonce, &clear, text, &tag));
    }
}

//! A message authentication code of 64 bits that is fast on any processor: SipHash-2-4 (Aumasson, Bernstein: "SipHash: a fast short-input PRF", 2012)
//! over the packet number, eight bytes little-endian, followed by what is sealed.

/// The secret of a job, from its launcher.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key(pub [u8; 16]);

/// A key is not printed.
impl std::fmt::Debug for Key {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Key")
    }
}

#[derive(Clone, Copy)]
struct State([u64; 4]);

impl State {
    fn new(key: &Key) -> Self {
        let word = |at: usize| key.0[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let (k0, k1) = (word(0), word(8));
        Self([
            k0 ^ 0x736f_6d65_7073_6575,
            k1 ^ 0x646f_7261_6e64_6f6d,
            k0 ^ 0x6c79_6765_6e65_7261,
            k1 ^ 0x7465_6462_7974_6573,
        ])
    }

    #[inline]
    fn round(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.0;
        a = a.wrapping_add(b);
        c = c.wrapping_add(d);
        b = b.rotate_left(13) ^ a;
        d = d.rotate_left(16) ^ c;
        a = a.rotate_left(32);
        c = c.wrapping_add(b);
        a = a.wrapping_add(d);
        b = b.rotate_left(17) ^ c;
        d = d.rotate_left(21) ^ a;
        c = c.rotate_left(32);
        self.0 = [a, b, c, d];
    }

    #[inline]
    fn absorb(&mut self, word: u64) {
        self.0[3] ^= word;
        self.round();
        self.round();
        self.0[0] ^= word;
    }

    fn finish(mut self, tail: &[u8], length: usize) -> u64 {
        let mut last = [0; 8];
        last[..tail.len()].copy_from_slice(tail);
        last[7] = length as u8;
        self.absorb(u64::from_le_bytes(last));
        self.0[2] ^= 0xff;
        for _ in 0..4 {
            self.round();
        }
        self.0.iter().fold(0, |code, word| code ^ word)
    }
}

/// The code of the sealed bytes of packet `number`.
pub fn code(key: &Key, number: u64, bytes: &[u8]) -> u64 {
    let mut state = State::new(key);
    state.absorb(number);
    let (eights, rest) = bytes.as_chunks::<8>();
    for eight in eights {
        state.absorb(u64::from_le_bytes(*eight));
    }
    state.finish(rest, 8 + bytes.len())
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

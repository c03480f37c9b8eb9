//! A ring of bytes that are named by their position in a stream.

pub struct ByteRing {
    bytes: Box<[u8]>,
}

impl ByteRing {
    /// Room for `capacity` bytes, rounded up to a power of two. The memory is not touched before it is used.
    pub fn new(capacity: usize) -> Self {
        Self { bytes: vec![0; capacity.next_power_of_two()].into_boxed_slice() }
    }

    #[inline]
    pub fn capacity(&self) -> u64 {
        self.bytes.len() as u64
    }

    #[inline]
    fn place(&self, position: u64) -> usize {
        position as usize & (self.bytes.len() - 1)
    }

    /// Stores `data` at `position` and behind it. Not more than the ring holds.
    #[inline]
    pub fn write(&mut self, position: u64, data: &[u8]) {
        let at = self.place(position);
        if at + data.len() <= self.bytes.len() {
            self.bytes[at..at + data.len()].copy_from_slice(data);
        } else {
            let (head, tail) = data.split_at(self.bytes.len() - at);
            self.bytes[at..].copy_from_slice(head);
            self.bytes[..tail.len()].copy_from_slice(tail);
        }
    }

    /// The `length` bytes from `position` on; the second piece is empty unless they pass the end of the ring.
    #[inline]
    pub fn pieces(&self, position: u64, length: usize) -> [&[u8]; 2] {
        let at = self.place(position);
        if at + length <= self.bytes.len() {
            return [&self.bytes[at..at + length], &[]];
        }
        let first = self.bytes.len() - at;
        [&self.bytes[at..], &self.bytes[..length - first]]
    }
}

/// Copies bytes `at..at + to.len()` of two pieces; false if they are not all there.
#[inline]
pub fn copy_from(pieces: [&[u8]; 2], at: usize, to: &mut [u8]) -> bool {
    let [a, b] = pieces;
    let end = at + to.len();
    if end <= a.len() {
        to.copy_from_slice(&a[at..end]);
    } else if end > a.len() + b.len() {
        return false;
    } else {
        let [head, tail] = cut(pieces, at, to.len());
        to[..head.len()].copy_from_slice(head);
        to[head.len()..].copy_from_slice(tail);
    }
    true
}

/// Bytes `at..at + length` of two pieces, which have them.
#[inline]
pub fn cut(pieces: [&[u8]; 2], at: usize, length: usize) -> [&[u8]; 2] {
    let [a, b] = pieces;
    let end = at + length;
    if end <= a.len() {
        [&a[at..end], &[]]
    } else if at >= a.len() {
        [&b[at - a.len()..end - a.len()], &[]]
    } else {
        [&a[at..], &b[..end - a.len()]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_stored_is_there_across_the_end(position in any::<u64>(), data in prop::collection::vec(any::<u8>(), 0..64)) {
            let position = position >> 1;
            let mut ring = ByteRing::new(50);
            prop_assert_eq!(ring.capacity(), 64);
            ring.write(position, &data);
            prop_assert_eq!(ring.pieces(position, data.len()).concat(), data);
        }

        #[test]
        fn two_pieces_read_as_one(a in prop::collection::vec(any::<u8>(), 0..20), b in prop::collection::vec(any::<u8>(), 0..20),
                                  at in 0..45usize, length in 0..45usize) {
            let whole = [&a[..], &b[..]].concat();
            let mut copied = vec![0; length];
            let fits = at + length <= whole.len();
            prop_assert_eq!(copy_from([&a, &b], at, &mut copied), fits);
            if fits {
                prop_assert_eq!(&copied, &whole[at..at + length]);
                prop_assert_eq!(&cut([&a, &b], at, length).concat(), &whole[at..at + length]);
            }
        }
    }
}

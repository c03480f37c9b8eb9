//! Memory that the kernel copies into.

use std::ops::{Deref, DerefMut};

/// Where a buffer begins: at a multiple of this.
const ALIGNMENT: usize = 64;

/// Bytes that begin with a cache line. Memory that is never written to costs nothing.
///
/// Processors copy slowly (Zen 3: less than half as fast) to a place that lies 1 to 31 bytes further on in its page than the
/// source does in its own. The kernel keeps what arrives from the beginning of a page on, and allocators put what is long
/// 16 bytes behind one.
pub struct Buffer {
    bytes: Box<[u8]>,
    start: usize,
    length: usize,
}

impl Buffer {
    pub fn new(length: usize) -> Self {
        let bytes = vec![0; length + ALIGNMENT].into_boxed_slice();
        let start = bytes.as_ptr().align_offset(ALIGNMENT);
        Self { bytes, start, length }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.length]
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_begins_with_a_cache_line_and_has_all_its_bytes() {
        for length in [0, 1, 100, 1 << 20] {
            let mut buffer = Buffer::new(length);
            assert_eq!((buffer.len(), buffer.as_ptr() as usize % ALIGNMENT), (length, 0));
            buffer.fill(7);
            assert!(buffer.iter().all(|byte| *byte == 7));
        }
    }
}

//! The program's buffers of one call, walked from front to back.

use libc::iovec;

/// What one call moves at most; the kernel's own bound.
const LONGEST: usize = 0x7fff_f000;

/// A list of buffers and how far it has been used.
#[derive(Clone, Copy, Debug)]
pub struct Pieces<'a> {
    pieces: &'a [iovec],
    /// Bytes of the first piece that are done.
    offset: usize,
    /// Bytes that are left in all.
    left: usize,
}

impl<'a> Pieces<'a> {
    #[inline]
    pub fn new(pieces: &'a [iovec]) -> Self {
        let left = match pieces {
            [one] => one.iov_len,
            _ => pieces.iter().fold(0usize, |sum, piece| sum.saturating_add(piece.iov_len)),
        };
        Self { pieces, offset: 0, left: left.min(LONGEST) }
    }

    #[inline]
    pub fn left(&self) -> usize {
        self.left
    }

    /// The rest of the first piece that has one: where it is and how long.
    #[inline]
    pub fn first(&mut self) -> Option<(*mut u8, usize)> {
        while self.left > 0 {
            let piece = self.pieces.first()?;
            if self.offset < piece.iov_len {
                let at = piece.iov_base.cast::<u8>().wrapping_add(self.offset);
                return Some((at, (piece.iov_len - self.offset).min(self.left)));
            }
            self.pieces = &self.pieces[1..];
            self.offset = 0;
        }
        None
    }

    /// `bytes` more are done.
    #[inline]
    pub fn advance(&mut self, mut bytes: usize) {
        self.left -= bytes.min(self.left);
        while bytes > 0 {
            let Some(piece) = self.pieces.first() else { return };
            let step = bytes.min(piece.iov_len - self.offset);
            self.offset += step;
            bytes -= step;
            if self.offset == piece.iov_len {
                self.pieces = &self.pieces[1..];
                self.offset = 0;
            }
        }
    }

    /// The rest as a list for the kernel, of at most `limit` bytes and 16 pieces.
    pub fn list(self, limit: usize, into: &mut [iovec; 16]) -> &[iovec] {
        let used = self.fill(limit, into);
        &into[..used]
    }

    /// The same without `gap` bytes behind the first `limit`; without anything behind the gap where the first ones need
    /// all places.
    pub fn list_around(mut self, limit: usize, gap: usize, into: &mut [iovec; 16]) -> &[iovec] {
        let mut used = self.fill(limit, into);
        let listed: usize = into[..used].iter().map(|piece| piece.iov_len).sum();
        if listed == limit.min(self.left) {
            self.advance(listed);
            self.advance(gap.min(self.left));
            used += self.fill(usize::MAX, &mut into[used..]);
        }
        &into[..used]
    }

    /// Writes the first `limit` bytes into a list; answers how many places were used.
    fn fill(mut self, limit: usize, into: &mut [iovec]) -> usize {
        let mut used = 0;
        self.left = self.left.min(limit);
        while used < into.len() {
            let Some((at, length)) = self.first() else { break };
            into[used] = iovec { iov_base: at.cast(), iov_len: length };
            used += 1;
            self.advance(length);
        }
        used
    }
}

/// No buffer.
pub const NO_PIECE: iovec = iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(list: &[iovec]) -> Vec<usize> {
        list.iter().map(|piece| piece.iov_len).collect()
    }

    #[test]
    fn every_byte_is_met_once_whatever_the_steps() {
        let mut memory = [0u8; 100];
        let base = memory.as_mut_ptr();
        let piece = |at: usize, length: usize| iovec { iov_base: base.wrapping_add(at).cast(), iov_len: length };
        let list = [piece(0, 0), piece(0, 10), piece(10, 1), piece(0, 0), piece(11, 0), piece(11, 50)];
        for step in [1, 3, 10, 61] {
            let mut pieces = Pieces::new(&list);
            let (mut met, mut next) = (0, 0);
            while let Some((at, length)) = pieces.first() {
                assert_eq!(at, base.wrapping_add(next));
                let taken = length.min(step);
                (met, next) = (met + taken, next + taken);
                pieces.advance(taken);
            }
            assert_eq!((met, pieces.left()), (61, 0));
        }
    }

    #[test]
    fn a_list_for_the_kernel_is_bounded_in_bytes_and_pieces() {
        let mut memory = [0u8; 64];
        let piece = iovec { iov_base: memory.as_mut_ptr().cast(), iov_len: 3 };
        let list = [piece; 20];
        let mut into = [NO_PIECE; 16];
        assert_eq!(lengths(Pieces::new(&list).list(7, &mut into)), [3, 3, 1]);
        assert_eq!(Pieces::new(&list).list(usize::MAX, &mut into).len(), 16);
        let mut later = Pieces::new(&list);
        later.advance(4);
        assert_eq!(lengths(later.list(5, &mut into)), [2, 3]);
        assert_eq!(lengths(later.list(0, &mut into)), []);
    }

    #[test]
    fn a_list_around_a_gap_has_what_stands_before_and_behind_it() {
        let mut memory = [0u8; 64];
        let base = memory.as_mut_ptr();
        let piece = |at: usize, length: usize| iovec { iov_base: base.wrapping_add(at).cast(), iov_len: length };
        let list = [piece(0, 10), piece(10, 20)];
        let mut into = [NO_PIECE; 16];
        for (limit, gap, expected) in [
            (4, 3, vec![4, 3, 20]),
            (4, 10, vec![4, 16]),
            (12, 30, vec![10, 2]),
            (0, 5, vec![5, 20]),
            (40, 1, vec![10, 20]),
        ] {
            let found = Pieces::new(&list).list_around(limit, gap, &mut into).to_vec();
            assert_eq!(lengths(&found), expected, "{limit} {gap}");
            let end = found.last().expect("a piece");
            let reaches = end.iov_base as usize + end.iov_len - base as usize;
            assert_eq!(reaches, if limit + gap < 30 { 30 } else { limit.min(30) });
        }
        // No place is left behind pieces that are listed only in part.
        let many = [piece(0, 1); 20];
        assert_eq!(Pieces::new(&many).list_around(18, 1, &mut into).len(), 16);
    }
}

//! Lists of pieces as they travel: a train is pieces of one length at one distance.

use crate::file::view::FilePiece;

/// `count` pieces of `bytes`, `stride` bytes apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Train {
    pub offset: u64,
    pub bytes: u64,
    pub stride: u64,
    pub count: u64,
}

/// The pieces as trains, in their order.
pub fn of(pieces: &[FilePiece]) -> Vec<Train> {
    let mut trains: Vec<Train> = Vec::new();
    for piece in pieces {
        if !trains.last_mut().is_some_and(|last| last.take(*piece)) {
            trains.push(Train { offset: piece.offset, bytes: piece.bytes, stride: 0, count: 1 });
        }
    }
    trains
}

impl Train {
    /// Takes the piece in if it goes on where the train ends.
    fn take(&mut self, piece: FilePiece) -> bool {
        let distance = piece.offset.wrapping_sub(self.offset.wrapping_add(self.stride.wrapping_mul(self.count - 1)));
        let fits = piece.bytes == self.bytes && (self.count == 1 || distance == self.stride);
        if fits {
            (self.stride, self.count) = (distance, self.count + 1);
        }
        fits
    }

    /// Its pieces, if all of them lie within `start .. end`; what a train says is its sender's claim.
    pub fn pieces(self, start: u64, end: u64) -> Option<impl Iterator<Item = FilePiece>> {
        let reach = self.stride.checked_mul(self.count.checked_sub(1)?)?;
        let last = self.offset.checked_add(reach)?.checked_add(self.bytes)?;
        let within = self.bytes > 0 && self.offset >= start && last <= end && self.count <= end - start;
        let Self { offset, bytes, stride, count } = self;
        within.then(|| (0..count).map(move |i| FilePiece { offset: offset + i * stride, bytes }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_out_as_they_went_in() {
        let piece = |offset, bytes| FilePiece { offset, bytes };
        let pieces = [piece(0, 4), piece(10, 4), piece(20, 4), piece(25, 3), piece(40, 3), piece(55, 3), piece(100, 1)];
        let trains = of(&pieces);
        assert_eq!(trains.len(), 3);
        let out: Vec<FilePiece> = trains.iter().flat_map(|train| train.pieces(0, 101).unwrap()).collect();
        assert_eq!(out, pieces);
        assert!(trains[2].pieces(0, 100).is_none() && trains[0].pieces(1, 101).is_none());
    }

    #[test]
    fn a_claim_that_overflows_has_no_pieces() {
        let claim = Train { offset: 8, bytes: 8, stride: u64::MAX / 2, count: 4 };
        assert!(claim.pieces(0, u64::MAX).is_none());
        assert!(Train { offset: 0, bytes: 1, stride: 0, count: u64::MAX }.pieces(0, 100).is_none());
        assert!(Train { offset: 0, bytes: 1, stride: 0, count: 0 }.pieces(0, 100).is_none());
    }
}

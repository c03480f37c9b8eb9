//! Pieces of the caller's memory, and how members copy them to and from their areas.

/// Bytes that lie side by side. Who sends them only reads them.
#[derive(Clone, Copy, Debug)]
pub struct SharedPiece {
    pub at: *mut u8,
    pub bytes: usize,
}

impl SharedPiece {
    pub fn new(at: *const u8, bytes: usize) -> Self {
        Self { at: at.cast_mut(), bytes }
    }

    /// The memory from the first to the last of some pieces.
    pub(super) fn hull(pieces: impl Iterator<Item = Self>) -> Self {
        let ends = pieces.filter(|piece| piece.bytes > 0).map(|piece| (piece.at, piece.at.wrapping_add(piece.bytes)));
        let hull = ends.reduce(|hull, ends| (hull.0.min(ends.0), hull.1.max(ends.1)));
        hull.map_or(Self::new(std::ptr::null(), 0), |(at, end)| Self { at, bytes: end as usize - at as usize })
    }

    /// At most `most` of its bytes, from byte `from` on.
    #[inline]
    pub(super) fn part(self, from: usize, most: usize) -> Self {
        let from = from.min(self.bytes);
        Self { at: self.at.wrapping_add(from), bytes: most.min(self.bytes - from) }
    }

    /// # Safety
    /// The piece is readable, and `to` writable for its bytes elsewhere.
    #[inline]
    pub(super) unsafe fn copy_to(self, to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { weft_fabric::copy(self.at, to, self.bytes) };
    }

    /// # Safety
    /// The piece is writable, and `from` readable for its bytes elsewhere.
    #[inline]
    pub(super) unsafe fn copy_from(self, from: *const u8) {
        // SAFETY: the caller's promise.
        unsafe { weft_fabric::copy(from, self.at, self.bytes) };
    }

    /// What a rank has for itself goes to its place, unless it lies there.
    ///
    /// # Safety
    /// The piece is readable, and `room` writable.
    #[inline]
    pub(super) unsafe fn keep(self, room: SharedPiece) {
        if self.at != room.at {
            // SAFETY: the caller's promise; the two may overlap where the arguments are wrong.
            unsafe { std::ptr::copy(self.at, room.at, self.bytes.min(room.bytes)) };
        }
    }
}

//! Pieces of the program's memory, and how members copy them to and from their areas.

use super::team::Team;
use super::word::{Alike, Differs};

/// Bytes of the program that lie side by side. Who sends them only reads them.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub at: *mut u8,
    pub bytes: usize,
}

impl Piece {
    pub fn new(at: *const u8, bytes: usize) -> Self {
        Self { at: at.cast_mut(), bytes }
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
        unsafe { std::ptr::copy_nonoverlapping(self.at, to, self.bytes) };
    }

    /// # Safety
    /// The piece is writable, and `from` readable for its bytes elsewhere.
    #[inline]
    pub(super) unsafe fn copy_from(self, from: *const u8) {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from, self.at, self.bytes) };
    }

    /// What a rank has for itself goes to its place, unless it lies there.
    ///
    /// # Safety
    /// The piece is readable, and `room` writable.
    #[inline]
    pub(super) unsafe fn keep(self, room: Piece) {
        if self.at != room.at {
            // SAFETY: the caller's promise; the two may overlap where the arguments are wrong.
            unsafe { std::ptr::copy(self.at, room.at, self.bytes.min(room.bytes)) };
        }
    }
}

impl Team {
    /// Our part in an operation in which we neither bring nor get a byte. We wait for nobody; those who expect something
    /// of us see that it is nothing.
    #[inline]
    pub(super) fn bring_nothing(&self, call: &'static str) -> Alike {
        let operation = self.begin();
        self.slot_room(call, operation)?;
        self.publish(operation, 0, 0..self.size);
        self.finish(operation);
        Ok(())
    }

    /// Tells the others that we cannot go on with them, instead of what they would take for our part.
    #[cold]
    pub fn give_up(&self, call: &'static str) -> Alike {
        let operation = self.begin();
        self.slot_room(call, operation)?;
        self.publish_difference(operation);
        self.finish(operation);
        Err(Differs::Length { member: self.me, bytes: None })
    }
}

//! Broadcast of what fits into a buffer.

use super::team::{SLOT_BYTES, Team};

const CALL: &str = "MPI_Bcast";

impl Team {
    /// The root does not wait for the others, except for room when it has run far ahead.
    ///
    /// # Safety
    /// `data` is readable (root) or writable (others) for `length` bytes, at most a buffer.
    pub unsafe fn bcast(&self, root: u32, data: *mut u8, length: usize) {
        let operation = self.begin();
        let short = length <= SLOT_BYTES;
        if self.me != root {
            self.await_one(CALL, root, operation);
            // SAFETY: the root has published `length` bytes in a place of at least that size; the caller's promise.
            unsafe { std::ptr::copy_nonoverlapping(self.place(root, operation, short), data, length) };
            return self.finish(operation);
        }
        match short {
            true => self.slot_room(CALL, operation),
            false => self.buffer_room(CALL, operation),
        }
        // SAFETY: as above; nobody reads the place, since there is room.
        unsafe { std::ptr::copy_nonoverlapping(data, self.place(root, operation, short), length) };
        self.publish(operation, 0..self.size);
        self.finish(operation);
    }

    /// Where a contribution stands.
    pub(super) fn place(&self, member: u32, operation: u64, short: bool) -> *mut u8 {
        if short { self.slot_bytes(member, operation) } else { self.buffer(member, operation) }
    }
}

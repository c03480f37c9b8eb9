//! Broadcast of what fits into a buffer.

use super::team::{BUFFER_BYTES, SLOT_BYTES, Team};
use super::word::Alike;

const CALL: &str = "MPI_Bcast";

impl Team {
    /// The root does not wait for the others, except for room when it has run far ahead.
    ///
    /// # Safety
    /// `data` is readable (root) or writable (others) for `length` bytes, at most a buffer.
    ///
    /// # Errors
    /// Not at the root: it brings another length. Then nothing is copied.
    pub unsafe fn bcast(&self, root: u32, data: *mut u8, length: usize) -> Alike {
        let operation = self.begin();
        let short = length <= SLOT_BYTES;
        if self.me != root {
            let arrived = self.await_one(CALL, root, operation, length);
            if arrived.is_ok() {
                // SAFETY: the root has published `length` bytes in a place of at least that size; the caller's promise.
                unsafe { std::ptr::copy_nonoverlapping(self.place(root, operation, short), data, length) };
            }
            self.finish(operation);
            return arrived;
        }
        match short {
            true => self.slot_room(CALL, operation)?,
            false => self.buffer_room(CALL, operation)?,
        }
        // SAFETY: as above; nobody reads the place, since there is room.
        unsafe { std::ptr::copy_nonoverlapping(data, self.place(root, operation, short), length) };
        self.publish(operation, length, 0..self.size);
        self.finish(operation);
        Ok(())
    }

    /// The root tells the length of what goes by messages, since a member that expects less looks here for it.
    ///
    /// # Errors
    /// Not at the root: it brings another length. If that goes by messages, they wait for us.
    pub fn announce_bcast(&self, root: u32, length: usize) -> Alike {
        debug_assert!(length > BUFFER_BYTES);
        let operation = self.begin();
        let alike = if self.me == root {
            self.slot_room(CALL, operation)?;
            self.publish(operation, length, 0..self.size);
            Ok(())
        } else {
            self.await_one(CALL, root, operation, length)
        };
        self.finish(operation);
        alike
    }

    /// Where a contribution stands.
    pub(super) fn place(&self, member: u32, operation: u64, short: bool) -> *mut u8 {
        if short { self.slot_bytes(member, operation) } else { self.buffer(member, operation) }
    }
}

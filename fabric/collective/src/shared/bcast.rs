//! Broadcast of what fits into a buffer.

use super::owner::TeamOwner;
use super::team::{BUFFER_BYTES, SLOT_BYTES, Team};
use super::word::Alike;

impl<O: TeamOwner> Team<O> {
    /// What fits into a buffer the root does not wait for the others with, except for room when it has run far ahead.
    /// Longer ones go in a row of operations. Before it all meet: who expects another length would leave it too soon.
    ///
    /// # Safety
    /// `data` is readable (root) or writable (others) for `length` bytes.
    ///
    /// # Errors
    /// The members bring different lengths, which the root of a short one does not see. Then nothing is copied.
    pub unsafe fn bcast(&self, root: u32, data: *mut u8, length: usize) -> Alike {
        self.tell("bcast", length);
        if length == 0 {
            self.bring_nothing();
            return Ok(());
        }
        if length <= BUFFER_BYTES {
            // SAFETY: the caller's promise.
            return unsafe { self.bcast_piece(root, data, length) };
        }
        self.announce_bcast(root, length)?;
        let most = self.buffer_bytes();
        for from in (0..length).step_by(most) {
            // SAFETY: the caller's promise.
            unsafe { self.bcast_piece(root, data.add(from), most.min(length - from))? };
        }
        Ok(())
    }

    /// # Safety
    /// As [`Self::bcast`], at most a buffer.
    unsafe fn bcast_piece(&self, root: u32, data: *mut u8, length: usize) -> Alike {
        let operation = self.begin();
        let short = length <= SLOT_BYTES;
        if self.me != root {
            let arrived = self.await_one(O::CALLS.bcast, root, operation, length);
            match arrived {
                // SAFETY: the root has published `length` bytes in a place of at least that size; the caller's promise.
                Ok(()) => unsafe {
                    weft_fabric::copy(self.place(root, operation, short), data, length);
                },
                // Members that expect more look at everybody.
                Err(_) => self.publish_late(operation, length),
            }
            self.finish(operation);
            return arrived;
        }
        match short {
            true => self.slot_room(O::CALLS.bcast, operation)?,
            false => self.buffer_room(O::CALLS.bcast, operation)?,
        }
        // SAFETY: as above; nobody reads the place, since there is room.
        unsafe { weft_fabric::copy(data, self.place(root, operation, short), length) };
        self.publish(operation, length, 0..self.size);
        self.finish(operation);
        Ok(())
    }

    #[cold]
    fn publish_late(&self, operation: u64, length: usize) {
        // Room there is soon: the others find their error.
        if self.slot_room(O::CALLS.bcast, operation).is_ok() {
            self.publish(operation, length, 0..self.size);
        }
    }

    /// All tell how much they expect, where that is more than a buffer. Of two, the root does not look: it sends
    /// messages.
    ///
    /// # Errors
    /// The members bring different lengths. If what the root of two brings goes by messages, they wait for us.
    pub fn announce_bcast(&self, root: u32, length: usize) -> Alike {
        debug_assert!(length > BUFFER_BYTES);
        let operation = self.begin();
        self.slot_room(O::CALLS.bcast, operation)?;
        self.publish(operation, length, 0..self.size);
        // The root first: those who expect as little as it brings have nothing to say.
        let mut alike = if self.me == root { Ok(()) } else { self.await_one(O::CALLS.bcast, root, operation, length) };
        if self.size > 2 && alike.is_ok() {
            alike = self.await_all(O::CALLS.bcast, operation, length);
        }
        self.finish(operation);
        alike
    }

    /// Where a contribution stands.
    pub(super) fn place(&self, member: u32, operation: u64, short: bool) -> *mut u8 {
        if short { self.slot_bytes(member, operation) } else { self.buffer(member, operation) }
    }
}

//! Gather and scatter. Who only brings something waits for nobody, except for room when it has run far ahead.
//!
//! What is too long for its place is only announced here, so that ranks which expect less see it, and goes by messages.

use super::exchange::HEAD;
use super::owner::TeamOwner;
use super::piece::SharedPiece;
use super::team::{BUFFER_BYTES, SLOT_BYTES, Team};
use super::word::{Alike, Differs};

/// Longer blocks are faster as messages, which may be copied once.
const MOST_BYTES: usize = 16 * 1024;
const _: () = assert!(MOST_BYTES <= BUFFER_BYTES);

impl<O: TeamOwner> Team<O> {
    /// Longest block of a gather that goes through shared memory.
    pub fn gathered_bytes(&self) -> usize {
        MOST_BYTES
    }

    /// Longest block of a scatter that goes through shared memory.
    pub fn scattered_bytes(&self) -> usize {
        MOST_BYTES.min(self.record_bytes() - HEAD)
    }

    /// What is not longer than [`Self::gathered_bytes`] of what the members bring comes to the root's `rooms`. `equal`:
    /// all bring as much, which everybody knows.
    ///
    /// # Safety
    /// `mine` is readable; at the root the rooms are writable.
    ///
    /// # Errors
    /// At the root: somebody brings another length than its room has.
    pub unsafe fn gather(
        &self,
        root: u32,
        mine: SharedPiece,
        rooms: impl Fn(u32) -> SharedPiece,
        equal: bool,
    ) -> Alike {
        self.tell("gather", mine.bytes);
        if equal && mine.bytes == 0 && (self.me != root || self.others().all(|member| rooms(member).bytes == 0)) {
            self.bring_nothing();
            return Ok(());
        }
        let operation = self.begin();
        let short = |piece: SharedPiece| piece.bytes <= SLOT_BYTES;
        let here = |piece: SharedPiece| piece.bytes <= self.gathered_bytes();
        if self.me != root {
            match short(mine) || !here(mine) {
                true => self.slot_room(O::CALLS.gather, operation)?,
                false => self.buffer_room(O::CALLS.gather, operation)?,
            }
            if here(mine) {
                // SAFETY: nobody reads the place, since there is room; the caller's promise.
                unsafe { mine.copy_to(self.place(self.me, operation, short(mine))) };
            }
            self.publish(operation, mine.bytes, root..root + 1);
            self.finish(operation);
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { mine.keep(rooms(root)) };

        let mut alike = Ok(());
        if self.others().any(|member| rooms(member).bytes > 0) {
            alike = self.await_members(O::CALLS.gather, 0..self.size, operation, |member| rooms(member).bytes);
        }
        if alike.is_ok() {
            for member in self.others().filter(|member| here(rooms(*member))) {
                let room = rooms(member);
                // SAFETY: what is not empty was published with this length; the caller's promise.
                unsafe { room.copy_from(self.place(member, operation, short(room))) };
            }
        }
        self.finish(operation);
        alike
    }

    /// What is not longer than [`Self::scattered_bytes`] of the root's `blocks`, which all have as many bytes as
    /// `mine`, goes to the members.
    ///
    /// # Safety
    /// At the root the blocks are readable; `mine` is writable.
    ///
    /// # Errors
    /// Not at the root: it brings another length.
    pub unsafe fn scatter(
        &self,
        root: u32,
        blocks: impl Fn(u32) -> SharedPiece,
        block: usize,
        mine: SharedPiece,
    ) -> Alike {
        self.tell("scatter", block);
        let bytes = if self.me == root { block } else { mine.bytes };
        if bytes == 0 {
            self.bring_nothing();
            return Ok(());
        }
        let operation = self.begin();
        let (short, here) = (self.size as usize * bytes <= SLOT_BYTES, bytes <= self.scattered_bytes());
        if self.me != root {
            let alike = self.await_one(O::CALLS.scatter, root, operation, bytes);
            if alike.is_ok() && here {
                // SAFETY: the root has published a block of this length for each member; the caller's promise.
                unsafe { mine.copy_from(self.place(root, operation, short).add(self.me as usize * bytes)) };
            }
            self.finish(operation);
            return alike;
        }
        match short || !here {
            true => self.slot_room(O::CALLS.scatter, operation)?,
            false => self.buffer_room(O::CALLS.scatter, operation)?,
        }
        if here {
            let place = self.place(root, operation, short);
            for member in (0..self.size).filter(|member| *member != root) {
                // SAFETY: nobody reads the place, which has room for a block of each; the caller's promise.
                unsafe { blocks(member).copy_to(place.add(member as usize * bytes)) };
            }
        }
        self.publish(operation, bytes, 0..self.size);
        // SAFETY: the caller's promise.
        unsafe { blocks(root).keep(mine) };
        self.finish(operation);
        Ok(())
    }

    /// As [`Self::scatter`] with lengths that only the root and the one who gets the block know.
    ///
    /// # Safety
    /// As [`Self::scatter`].
    ///
    /// # Errors
    /// Not at the root: it brings another length for us.
    pub unsafe fn scatterv(&self, root: u32, blocks: impl Fn(u32) -> SharedPiece, mine: SharedPiece) -> Alike {
        self.tell("scatter", mine.bytes);
        let operation = self.begin();
        let stride = self.record_bytes();
        let record = |member: u32| self.buffer(root, operation).wrapping_add(member as usize * stride);
        let here = |piece: SharedPiece| piece.bytes <= self.scattered_bytes();
        if self.me != root {
            let mut alike = Ok(());
            if mine.bytes > 0 {
                alike = self.await_one(O::CALLS.scatter, root, operation, 0);
                // SAFETY: the root has published a record for each member; the caller's promise.
                alike = alike.and_then(|()| unsafe {
                    let bytes = record(self.me).cast::<u64>().read_unaligned();
                    if bytes != mine.bytes as u64 {
                        return Err(Differs::Length { member: root, bytes: Some(bytes) });
                    }
                    if here(mine) {
                        mine.copy_from(record(self.me).add(HEAD));
                    }
                    Ok(())
                });
            }
            self.finish(operation);
            return alike;
        }
        self.buffer_room(O::CALLS.scatter, operation)?;
        for member in (0..self.size).filter(|member| *member != root) {
            let block = blocks(member);
            // SAFETY: nobody reads the record, which has room for a head and what is here; the caller's promise.
            unsafe {
                record(member).cast::<u64>().write_unaligned(block.bytes as u64);
                if here(block) {
                    block.copy_to(record(member).add(HEAD));
                }
            }
        }
        self.publish(operation, 0, 0..self.size);
        // SAFETY: the caller's promise.
        unsafe { blocks(root).keep(mine) };
        self.finish(operation);
        Ok(())
    }
}

//! Allgather and all to all: everybody writes what it brings, and takes what it is to have out of everybody's area.
//!
//! What is longer than a buffer goes in a row of operations. Their number is the same for all, or all see at the first
//! one that it is not.

use super::piece::Piece;
use super::team::{SLOT_BYTES, Team};
use super::word::{Alike, Differs};

const ALLGATHER: &str = "MPI_Allgather";
const ALLTOALL: &str = "MPI_Alltoall";
const ALLTOALLV: &str = "MPI_Alltoallv";
/// In front of what one member has for another, where only the two know how long it is: its bytes.
pub(super) const HEAD: usize = 8;

impl Team {
    /// `mine` reaches everybody; `rooms` are the places by member, in which everybody names the same lengths.
    ///
    /// # Safety
    /// `mine` is readable, the rooms are writable.
    ///
    /// # Errors
    /// A member brings another length than its room has; all of them find it in the first operation.
    pub unsafe fn allgather(&self, mine: Piece, rooms: impl Fn(u32) -> Piece) -> Alike {
        self.tell("allgather", mine.bytes);
        let longest = (0..self.size).map(|member| rooms(member).bytes).max().unwrap_or(0);
        if longest == 0 && mine.bytes == 0 {
            return self.bring_nothing(ALLGATHER);
        }
        let most = self.buffer_bytes();
        let rounds = longest.max(mine.bytes).div_ceil(most);
        if rounds > 1 && mine.bytes != rooms(self.me).bytes {
            return self.give_up(ALLGATHER);
        }
        let row = if rounds > 1 { self.table(|member| rooms(member).bytes) } else { 1 };
        for round in 0..rounds {
            let from = round * most;
            let operation = self.begin();
            let short = |piece: Piece| rounds == 1 && piece.bytes <= SLOT_BYTES;
            match short(mine) {
                true => self.slot_room(ALLGATHER, operation)?,
                false => self.buffer_room(ALLGATHER, operation)?,
            }
            // SAFETY: the part fits into our place, which nobody reads, since there is room; the caller's promise.
            unsafe { mine.part(from, most).copy_to(self.place(self.me, operation, short(mine))) };
            self.publish_of_row(operation, mine.bytes, row, 0..self.size);
            if round == 0 {
                // SAFETY: the caller's promise.
                unsafe { mine.keep(rooms(self.me)) };
            }
            let alike = self.await_row(ALLGATHER, operation, row, |member| rooms(member).bytes);
            // SAFETY: all have published, pieces of the lengths that we expect.
            unsafe {
                if alike.is_ok() {
                    self.each_other(|member| {
                        let room = rooms(member);
                        room.part(from, most).copy_from(self.place(member, operation, short(room)));
                    });
                }
            }
            self.finish(operation);
            alike?;
        }
        Ok(())
    }

    /// The other members, the next one first, so that not all read the same one at a time.
    #[inline]
    fn each_other(&self, mut visit: impl FnMut(u32)) {
        (self.me + 1..self.size).chain(0..self.me).for_each(&mut visit);
    }

    /// Longest block of an all to all that goes through shared memory: one of each member fits into a buffer.
    pub fn dealt_bytes(&self) -> usize {
        self.buffer_bytes() / self.size as usize
    }

    /// The share of a buffer for one member.
    pub(super) fn record_bytes(&self) -> usize {
        (self.buffer_bytes() / self.size as usize) & !63
    }

    /// What we have in `inputs` for each member, `sent` bytes, goes to it; what it has for us comes to `outputs`, each of
    /// `block` bytes. Neither is more than [`Self::dealt_bytes`].
    ///
    /// # Safety
    /// The inputs are readable, the outputs writable. They may be the same memory.
    ///
    /// # Errors
    /// A member brings another length.
    pub unsafe fn alltoall(
        &self,
        inputs: impl Fn(u32) -> Piece,
        sent: usize,
        outputs: impl Fn(u32) -> Piece,
        block: usize,
    ) -> Alike {
        self.tell("alltoall", sent);
        if sent == 0 && block == 0 {
            return self.bring_nothing(ALLTOALL);
        }
        let short = |block: usize| self.size as usize * block <= SLOT_BYTES;
        let operation = self.begin();
        match short(sent) {
            true => self.slot_room(ALLTOALL, operation)?,
            false => self.buffer_room(ALLTOALL, operation)?,
        }
        let mine = self.place(self.me, operation, short(sent));
        // SAFETY: as in `allgather`; each block has its own part of the place.
        self.each_other(|member| unsafe { inputs(member).copy_to(mine.add(member as usize * sent)) });
        self.publish(operation, sent, 0..self.size);
        // SAFETY: the caller's promise.
        unsafe { inputs(self.me).keep(outputs(self.me)) };
        let alike = self.await_all(ALLTOALL, operation, block);
        if alike.is_ok() {
            // SAFETY: as above; where inputs and outputs are the same, all inputs have been copied.
            self.each_other(|member| unsafe {
                let theirs = self.place(member, operation, short(block));
                outputs(member).copy_from(theirs.add(self.me as usize * block));
            });
        }
        self.finish(operation);
        alike
    }

    /// As [`Self::alltoall`] with lengths that only each pair knows. True: it is done; otherwise some member brings more than
    /// there is room for, which all see, and all of it goes by messages.
    ///
    /// # Safety
    /// As [`Self::alltoall`].
    ///
    /// # Errors
    /// A member brings another length than we expect of it. The others go on.
    pub unsafe fn alltoallv(
        &self,
        inputs: impl Fn(u32) -> Piece,
        outputs: impl Fn(u32) -> Piece,
    ) -> Result<bool, Differs> {
        let others = || (0..self.size).filter(|member| *member != self.me);
        let longest = others().map(|member| inputs(member).bytes).max().unwrap_or(0);
        self.tell("alltoall", longest);
        let gets_nothing = others().all(|member| outputs(member).bytes == 0);
        let stride = self.record_bytes();
        let most = stride - HEAD;
        let operation = self.begin();
        match longest {
            0 => self.slot_room(ALLTOALLV, operation)?,
            _ => self.buffer_room(ALLTOALLV, operation)?,
        }
        let record = |of: u32, to: u32| self.buffer(of, operation).wrapping_add(to as usize * stride);
        if longest > 0 && longest <= most {
            // SAFETY: each record has room for its head and `most` bytes; nobody reads them, since there is room.
            self.each_other(|member| unsafe {
                let (piece, to) = (inputs(member), record(self.me, member));
                to.cast::<u64>().write_unaligned(piece.bytes as u64);
                piece.copy_to(to.add(HEAD));
            });
        }
        // SAFETY: the payload of our slot, not published yet.
        unsafe { self.slot_bytes(self.me, operation).cast::<u64>().write_unaligned(longest as u64) };
        self.publish(operation, 0, 0..self.size);
        // SAFETY: the caller's promise.
        unsafe { inputs(self.me).keep(outputs(self.me)) };
        if longest == 0 && gets_nothing {
            self.finish(operation);
            return Ok(true);
        }
        let mut outcome = self.await_all(ALLTOALLV, operation, 0).map(|()| true);
        if outcome.is_ok() {
            // SAFETY: all have published, and nobody writes there before we have finished.
            let longest_of = |member| unsafe { self.slot_bytes(member, operation).cast::<u64>().read_unaligned() };
            if (0..self.size).any(|member| longest_of(member) > most as u64) {
                outcome = Ok(false);
            } else {
                // SAFETY: as above; what is copied has the length of our own place.
                self.each_other(|member| unsafe {
                    let (room, from) = (outputs(member), record(member, self.me));
                    let bytes = if longest_of(member) == 0 { 0 } else { from.cast::<u64>().read_unaligned() };
                    // Both are claims: nobody has more there than `most`.
                    if bytes == room.bytes as u64 && room.bytes <= most {
                        room.copy_from(from.add(HEAD));
                    } else {
                        outcome = Err(Differs::Length { member, bytes: Some(bytes) });
                    }
                });
            }
        }
        self.finish(operation);
        outcome
    }
}

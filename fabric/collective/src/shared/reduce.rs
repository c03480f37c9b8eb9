//! Reductions with predefined operations, in the order of ranks.

use super::owner::TeamOwner;
use super::piece::SharedPiece;
use super::showing::{SHOWN_BYTES, SHOWN_ROW, Seen};
use super::team::{BUFFER_BYTES, FLAT_MEMBERS, SLOT_BYTES, Team};
use super::word::{Alike, Differs};
use crate::run::Kernel;

/// Up to so many bytes everybody reduces everything by itself, which saves a second meeting.
const ALONE_BYTES: usize = 2048;

/// Folded at a time where inputs are read in place: it stays in the first cache.
const PART_BYTES: usize = 4096;

/// What is folded: `count` elements of a predefined type, and the loop of a predefined operation on that type.
#[derive(Clone, Copy)]
pub struct Vector {
    pub kernel: Kernel,
    pub count: usize,
    /// Bytes of one element.
    pub size: usize,
}

impl Vector {
    pub fn bytes(&self) -> usize {
        self.count * self.size
    }

    pub(super) fn part(&self, count: usize) -> Self {
        Self { count, ..*self }
    }

    /// `out = a op b`.
    ///
    /// # Safety
    /// All are valid for the vector; `out` may be `a` or `b`.
    unsafe fn fold(&self, a: *const u8, b: *const u8, out: *mut u8) {
        // SAFETY: the caller's promise; the kernel is the one for the type.
        unsafe { (self.kernel)(a, b, out, self.count) };
    }
}

impl<O: TeamOwner> Team<O> {
    /// `output` = all contributions to `operation`, folded in the order of ranks.
    ///
    /// # Safety
    /// Everybody has published the vector; `output` is writable for it.
    unsafe fn fold_all(&self, vector: Vector, operation: u64, short: bool, output: *mut u8) {
        // SAFETY: the places hold the vector; `output` is ours.
        unsafe { self.fold_from(vector, |member| self.place(member, operation, short).cast_const(), output) };
    }

    /// `output` = the vectors that stand `at` each member's place, folded in the order of ranks.
    ///
    /// # Safety
    /// `at` answers addresses of vectors; `output` is writable for one. It may be where `at` finds our own.
    #[inline]
    pub(super) unsafe fn fold_from(&self, vector: Vector, at: impl Fn(u32) -> *const u8, output: *mut u8) {
        // Nothing that is still to be read is overwritten: our own vector, which `output` may be, is folded from
        // where it stands only if it is one of the first two.
        debug_assert!(self.me < 2 || at(self.me) != output.cast_const());
        // SAFETY: the caller's promise.
        unsafe {
            vector.fold(at(0), at(1), output);
            for member in 2..self.size {
                vector.fold(output, at(member), output);
            }
        }
    }

    /// # Safety
    /// `input` is readable and `output` writable for the vector; they may be the same.
    ///
    /// # Errors
    /// The members bring different lengths. All of them find it in the first part, so that none is left waiting.
    pub unsafe fn allreduce(&self, vector: Vector, input: *const u8, output: *mut u8) -> Alike {
        self.tell("allreduce", vector.bytes());
        if vector.count == 0 {
            self.bring_nothing();
            return Ok(());
        }
        let alone = vector.bytes() <= SLOT_BYTES || (vector.bytes() <= ALONE_BYTES && self.size <= FLAT_MEMBERS);
        if alone {
            // SAFETY: the caller's promise.
            return unsafe { self.allreduce_alone(vector, input, output) };
        }
        // SAFETY: the caller's promise.
        if vector.bytes() >= SHOWN_BYTES && unsafe { self.allreduce_in_place(vector, input, output)? } {
            return Ok(());
        }
        let (most, all) = (self.buffer_bytes() / vector.size, vector.bytes());
        let mut done = 0;
        while done < vector.count {
            let part = vector.part(most.min(vector.count - done));
            // SAFETY: done + part.count <= count.
            unsafe { self.allreduce_sliced(part, all, input.add(done * vector.size), output.add(done * vector.size))? };
            done += part.count;
        }
        Ok(())
    }

    /// Everybody folds everything, or member 0 does it for a large team.
    ///
    /// # Safety
    /// As [`Self::allreduce`]; the vector fits into a buffer, and into a slot when the team is large.
    unsafe fn allreduce_alone(&self, vector: Vector, input: *const u8, output: *mut u8) -> Alike {
        let operation = self.begin();
        // SAFETY: the caller's promise.
        let short = unsafe { self.contribute(O::CALLS.allreduce, operation, vector, input)? };
        let bytes = vector.bytes();
        let alike = if self.size <= FLAT_MEMBERS {
            self.publish(operation, bytes, 0..self.size);
            let alike = self.await_all(O::CALLS.allreduce, operation, bytes);
            if alike.is_ok() {
                // SAFETY: all contributions are there.
                unsafe { self.fold_all(vector, operation, short, output) };
            }
            alike
        } else if self.me == 0 {
            // SAFETY: the caller's promise; large teams come here only with what fits into a slot.
            unsafe { self.allreduce_for_all(vector, operation, output) }
        } else {
            self.publish(operation, bytes, 0..1);
            let alike = self.await_one(O::CALLS.allreduce, 0, operation, bytes);
            match alike {
                Ok(()) => {
                    self.all_met(operation);
                    // SAFETY: member 0 has published the answer.
                    unsafe { weft_fabric::copy(self.slot_bytes(0, operation), output, bytes) };
                }
                // Members that bring more than fits into a slot look at everybody.
                Err(_) => self.wake(0..self.size),
            }
            alike
        };
        self.finish(operation);
        alike
    }

    /// Member 0 of a large team folds what all have brought, and tells them.
    ///
    /// # Safety
    /// As [`Self::allreduce`]; our contribution stands in our slot.
    unsafe fn allreduce_for_all(&self, vector: Vector, operation: u64, output: *mut u8) -> Alike {
        let bytes = vector.bytes();
        if let Err(differs) = self.await_all(O::CALLS.allreduce, operation, bytes) {
            if matches!(differs, Differs::Length { .. }) {
                self.publish_difference(operation);
            }
            return Err(differs);
        }
        // SAFETY: all contributions are there; the answer takes the place of our own, which nobody else reads.
        unsafe {
            self.fold_all(vector, operation, true, output);
            weft_fabric::copy(output, self.slot_bytes(0, operation), bytes);
        }
        self.publish(operation, bytes, 0..self.size);
        Ok(())
    }

    /// The same out of everybody's input, where it stands. False: not all can be read there.
    ///
    /// # Safety
    /// As [`Self::allreduce`].
    unsafe fn allreduce_in_place(&self, vector: Vector, input: *const u8, output: *mut u8) -> Result<bool, Differs> {
        let bytes = vector.bytes();
        let (given, taken) = (SharedPiece::new(input, bytes), SharedPiece::new(output, bytes));
        let Some(seen) =
            self.show(O::CALLS.allreduce, (bytes, SHOWN_ROW), |_| bytes, |_| bytes, Some(given), Some(Some(taken)))?
        else {
            return Ok(false);
        };
        // SAFETY: the caller's promise. Of two, each reads as much of the other one's memory if it folds everything
        // itself.
        unsafe {
            match self.size == 2 && !seen.is_in_place {
                true => self.fold_shown(vector, &seen, input, output, 0),
                false => self.allreduce_shown(vector, &seen, input, output)?,
            }
        }
        self.all_have_read(O::CALLS.allreduce, bytes)?;
        Ok(true)
    }

    /// `output` = a slice, which begins at byte `from`, of everybody's input, folded.
    ///
    /// # Safety
    /// As [`Self::allreduce`]; the slice lies inside the vector. `output` may be where it stands in our input, if
    /// nobody else reads that.
    pub(super) unsafe fn fold_shown(&self, slice: Vector, seen: &Seen, input: *const u8, output: *mut u8, from: usize) {
        // Members behind the second fold into the output before they come to their own part.
        let is_own = self.me >= 2 && output.cast_const() == input.wrapping_add(from);
        let mut aside = [0u64; PART_BYTES / 8];
        let most = PART_BYTES / slice.size;
        for done in (0..slice.count).step_by(most) {
            let (piece, at) = (slice.part(most.min(slice.count - done)), from + done * slice.size);
            let place = |member| match member == self.me {
                true => input.wrapping_add(at),
                false => seen.input(member, at, piece.bytes()),
            };
            // SAFETY: the caller's promise; the piece has at most so many bytes.
            unsafe {
                let output = output.add(done * slice.size);
                if is_own {
                    self.fold_from(piece, place, aside.as_mut_ptr().cast());
                    weft_fabric::copy(aside.as_ptr().cast(), output, piece.bytes());
                } else {
                    self.fold_from(piece, place, output);
                }
            }
        }
    }

    /// Everybody folds a slice, and reads the others' out of their outputs.
    ///
    /// # Safety
    /// As [`Self::allreduce`].
    unsafe fn allreduce_shown(&self, vector: Vector, seen: &Seen, input: *const u8, output: *mut u8) -> Alike {
        let bounds = |member: u32| member as usize * vector.count / self.size as usize * vector.size;
        let (from, to) = (bounds(self.me), bounds(self.me + 1));
        // SAFETY: the slice lies inside the vector; nobody else reads ours of our input.
        unsafe { self.fold_shown(vector.part((to - from) / vector.size), seen, input, output.add(from), from) };
        let folded = self.begin();
        self.slot_room(O::CALLS.allreduce, folded)?;
        self.publish(folded, 0, 0..self.size);
        for step in 1..self.size {
            let member = (self.me + step) % self.size;
            self.await_one(O::CALLS.allreduce, member, folded, 0)?;
            let (from, to) = (bounds(member), bounds(member + 1));
            // SAFETY: the slice lies inside the outputs. Of our input, which our output may be, only this member has
            // read it.
            unsafe {
                weft_fabric::copy(seen.output(member, from, to - from), output.add(from), to - from);
            }
        }
        self.all_met(folded);
        self.finish(folded);
        Ok(())
    }

    /// Everybody folds a slice of this part of `all` bytes and tells the others.
    ///
    /// # Safety
    /// As [`Self::allreduce`]; the vector fits into a buffer.
    unsafe fn allreduce_sliced(&self, vector: Vector, all: usize, input: *const u8, output: *mut u8) -> Alike {
        let bounds = |member: u32| member as usize * vector.count / self.size as usize * vector.size;
        let (from, to) = (bounds(self.me), bounds(self.me + 1));
        let slice = vector.part((to - from) / vector.size);
        // Our own slice nobody else reads. Members behind the second fold into `output`, which may be the input, before
        // they come to their own: they read it from the buffer.
        let own_stays = self.me < 2 || input != output.cast_const();
        let first = self.begin();
        self.buffer_room(O::CALLS.allreduce, first)?;
        let mine = self.buffer(self.me, first);
        // SAFETY: the caller's promise; nobody reads the buffer, since there is room.
        unsafe {
            if own_stays {
                weft_fabric::copy(input, mine, from);
                weft_fabric::copy(input.add(to), mine.add(to), vector.bytes() - to);
            } else {
                weft_fabric::copy(input, mine, vector.bytes());
            }
        }
        self.publish(first, all, 0..self.size);
        let alike = self.await_all(O::CALLS.allreduce, first, all);
        self.finish(first);
        alike?;
        let second = self.begin();
        // SAFETY: the slice lies inside the buffers. Ours of the second operation is free: everybody has begun the
        // first one, and the one before the first used the same buffer.
        unsafe {
            if slice.count > 0 {
                let at = |member| match member == self.me && own_stays {
                    true => input.add(from),
                    false => self.buffer(member, first).add(from).cast_const(),
                };
                self.fold_from(slice, at, output.add(from));
            }
            weft_fabric::copy(output.add(from), self.buffer(self.me, second).add(from), to - from);
        }
        self.publish(second, all, 0..self.size);
        for step in 1..self.size {
            let member = (self.me + step) % self.size;
            self.await_one(O::CALLS.allreduce, member, second, all)?;
            let (from, to) = (bounds(member), bounds(member + 1));
            // SAFETY: as above, for the slice of `member`.
            unsafe { weft_fabric::copy(self.buffer(member, second).add(from), output.add(from), to - from) };
        }
        self.all_met(second);
        self.finish(second);
        Ok(())
    }

    /// # Safety
    /// As [`Self::allreduce`], `output` at the root only.
    ///
    /// # Errors
    /// The members bring different lengths. At least the root finds it; where others might wait for it, all of them do.
    pub unsafe fn reduce(&self, root: u32, vector: Vector, input: *const u8, output: *mut u8) -> Alike {
        self.tell("reduce", vector.bytes());
        if vector.count == 0 {
            self.bring_nothing();
            return Ok(());
        }
        if vector.bytes() <= BUFFER_BYTES {
            // SAFETY: the caller's promise.
            return unsafe { self.reduce_at_root(root, vector, input, output) };
        }
        let (most, all) = (self.buffer_bytes() / vector.size, vector.bytes());
        let mut done = 0;
        while done < vector.count {
            let part = vector.part(most.min(vector.count - done));
            let at = done * vector.size;
            // SAFETY: done + part.count <= count.
            unsafe { self.reduce_sliced(root, part, all, input.add(at), output.wrapping_add(at))? };
            done += part.count;
        }
        Ok(())
    }

    /// Everybody folds a slice of this part of `all` bytes, and the root collects the slices.
    ///
    /// # Safety
    /// As [`Self::reduce`]; the vector fits into a buffer.
    unsafe fn reduce_sliced(&self, root: u32, vector: Vector, all: usize, input: *const u8, output: *mut u8) -> Alike {
        let bounds = |member: u32| member as usize * vector.count / self.size as usize * vector.size;
        let (from, to) = (bounds(self.me), bounds(self.me + 1));
        let slice = vector.part((to - from) / vector.size);
        let first = self.begin();
        self.buffer_room(O::CALLS.reduce, first)?;
        let mine = self.buffer(self.me, first);
        // SAFETY: the caller's promise; nobody reads the buffer, since there is room. Our own slice nobody else reads.
        unsafe {
            weft_fabric::copy(input, mine, from);
            weft_fabric::copy(input.add(to), mine.add(to), vector.bytes() - to);
        }
        self.publish(first, all, 0..self.size);
        let alike = self.await_all(O::CALLS.reduce, first, all);
        if alike.is_err() {
            // Those who bring less than a buffer look at nobody and wake the root alone.
            if self.me == root {
                self.wake(0..self.size);
            }
            self.finish(first);
            return alike;
        }
        let second = self.begin();
        if slice.count > 0 {
            let at = |member| match member == self.me {
                true => input.wrapping_add(from),
                false => self.buffer(member, first).wrapping_add(from).cast_const(),
            };
            // SAFETY: the slice lies inside the buffers. Ours of the second operation is free: everybody has begun the
            // first one, and the one before the first used the same buffer.
            unsafe { self.fold_from(slice, at, self.buffer(self.me, second).add(from)) };
        }
        self.finish(first);
        self.publish(second, all, root..root + 1);
        if self.me == root {
            self.await_all(O::CALLS.reduce, second, all)?;
            for member in 0..self.size {
                let (from, to) = (bounds(member), bounds(member + 1));
                // SAFETY: as above, for the slice of `member`.
                unsafe {
                    let slice = self.buffer(member, second).add(from);
                    weft_fabric::copy(slice, output.add(from), to - from);
                }
            }
        }
        self.finish(second);
        Ok(())
    }

    /// Only the root reads; the others do not wait.
    ///
    /// # Safety
    /// As [`Self::reduce`]; the vector fits into a buffer.
    unsafe fn reduce_at_root(&self, root: u32, vector: Vector, input: *const u8, output: *mut u8) -> Alike {
        let operation = self.begin();
        // SAFETY: the caller's promise.
        let short = unsafe { self.contribute(O::CALLS.reduce, operation, vector, input)? };
        let mut alike = Ok(());
        if self.me == root {
            alike = self.await_all(O::CALLS.reduce, operation, vector.bytes());
            match alike {
                // SAFETY: all contributions are there.
                Ok(()) => unsafe { self.fold_all(vector, operation, short, output) },
                // Members that bring more than a buffer look at everybody.
                Err(_) => self.publish(operation, vector.bytes(), 0..self.size),
            }
        } else {
            self.publish(operation, vector.bytes(), root..root + 1);
        }
        self.finish(operation);
        alike
    }

    /// Writes our contribution; answers whether it stands in the slot.
    ///
    /// # Safety
    /// `input` is readable for the vector, which fits into a buffer.
    unsafe fn contribute(
        &self,
        call: &'static str,
        operation: u64,
        vector: Vector,
        input: *const u8,
    ) -> Result<bool, Differs> {
        let short = vector.bytes() <= SLOT_BYTES;
        match short {
            true => self.slot_room(call, operation)?,
            false => self.buffer_room(call, operation)?,
        }
        // SAFETY: the caller's promise; nobody reads the place, since there is room.
        unsafe { weft_fabric::copy(input, self.place(self.me, operation, short), vector.bytes()) };
        Ok(short)
    }
}

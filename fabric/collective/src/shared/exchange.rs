//! Allgather and all to all: everybody writes what it brings, and takes what it is to have out of everybody's area.
//!
//! What is longer than a buffer goes in a row of operations. Their number is the same for all, or all see at the first
//! one that it is not.

use super::owner::TeamOwner;
use super::piece::SharedPiece;
use super::showing::{SHOWN_BYTES, SHOWN_ROW, Said};
use super::team::{SLOT_BYTES, Team};
use super::word::{Alike, Differs};
use weft_fabric::{Driven, ShownPlace};

/// In front of what one member has for another, where only the two know how long it is: its bytes.
pub(super) const HEAD: usize = 8;

impl<O: TeamOwner> Team<O> {
    /// `mine` reaches everybody; `rooms` are the places by member, in which everybody names the same lengths.
    ///
    /// # Safety
    /// `mine` is readable, the rooms are writable.
    ///
    /// # Errors
    /// A member brings another length than its room has; all of them find it in the first operation.
    pub unsafe fn allgather(&self, mine: SharedPiece, rooms: impl Fn(u32) -> SharedPiece) -> Alike {
        self.tell("allgather", mine.bytes);
        let longest = (0..self.size).map(|member| rooms(member).bytes).max().unwrap_or(0);
        if longest == 0 && mine.bytes == 0 {
            self.bring_nothing();
            return Ok(());
        }
        let most = self.buffer_bytes();
        let rounds = longest.max(mine.bytes).div_ceil(most);
        // Who brings another length than the others expect would go on alone.
        if (rounds > 1 || longest >= SHOWN_BYTES) && mine.bytes != rooms(self.me).bytes {
            return self.give_up(O::CALLS.allgather);
        }
        let table = || self.table(|member| rooms(member).bytes);
        if longest >= SHOWN_BYTES {
            let bytes = |member| rooms(member).bytes;
            if let Some(seen) = self.show(O::CALLS.allgather, (mine.bytes, table()), bytes, bytes, Some(mine), None)? {
                // SAFETY: everybody shows as many bytes as its room has; the caller's promise.
                unsafe {
                    mine.keep(rooms(self.me));
                    for member in self.others().filter(|member| bytes(*member) > 0) {
                        rooms(member).copy_from(seen.input(member, 0, bytes(member)));
                    }
                }
                return self.all_have_read(O::CALLS.allgather, self.others().map(bytes).sum());
            }
        }
        let row = if rounds > 1 { table() } else { 1 };
        for round in 0..rounds {
            let from = round * most;
            let operation = self.begin();
            let short = |piece: SharedPiece| rounds == 1 && piece.bytes <= SLOT_BYTES;
            match short(mine) {
                true => self.slot_room(O::CALLS.allgather, operation)?,
                false => self.buffer_room(O::CALLS.allgather, operation)?,
            }
            // SAFETY: the part fits into our place, which nobody reads, since there is room; the caller's promise.
            unsafe { mine.part(from, most).copy_to(self.place(self.me, operation, short(mine))) };
            self.publish_of_row(operation, mine.bytes, row, 0..self.size);
            if round == 0 {
                // SAFETY: the caller's promise.
                unsafe { mine.keep(rooms(self.me)) };
            }
            let alike = self.await_row(O::CALLS.allgather, operation, row, |member| rooms(member).bytes);
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

    /// What we have in `inputs` for each member, `sent` bytes, goes to it; what it has for us comes to `outputs`, each
    /// of `block` bytes. Neither is more than [`Self::dealt_bytes`]. `row`: the inputs, where they lie one after the
    /// other.
    ///
    /// # Safety
    /// The inputs are readable, the outputs writable. They may be the same memory.
    ///
    /// # Errors
    /// A member brings another length.
    pub unsafe fn alltoall(
        &self,
        inputs: impl Fn(u32) -> SharedPiece,
        sent: usize,
        outputs: impl Fn(u32) -> SharedPiece,
        block: usize,
        row: Option<SharedPiece>,
    ) -> Alike {
        self.tell("alltoall", sent);
        if sent == 0 && block == 0 {
            self.bring_nothing();
            return Ok(());
        }
        if block >= SHOWN_BYTES {
            if sent != block {
                return self.give_up(O::CALLS.alltoall);
            }
            let (all, from) = (self.size as usize * block, self.me as usize * block);
            if let Some(seen) = self.show(O::CALLS.alltoall, (sent, SHOWN_ROW), |_| block, |_| all, row, None)? {
                // SAFETY: everybody shows a block for each member; the caller's promise.
                unsafe {
                    inputs(self.me).keep(outputs(self.me));
                    self.each_other(|member| outputs(member).copy_from(seen.input(member, from, block)));
                }
                return self.all_have_read(O::CALLS.alltoall, all - block);
            }
        }
        let short = |block: usize| self.size as usize * block <= SLOT_BYTES;
        let operation = self.begin();
        match short(sent) {
            true => self.slot_room(O::CALLS.alltoall, operation)?,
            false => self.buffer_room(O::CALLS.alltoall, operation)?,
        }
        let mine = self.place(self.me, operation, short(sent));
        // SAFETY: as in `allgather`; each block has its own part of the place.
        self.each_other(|member| unsafe { inputs(member).copy_to(mine.add(member as usize * sent)) });
        self.publish(operation, sent, 0..self.size);
        // SAFETY: the caller's promise.
        unsafe { inputs(self.me).keep(outputs(self.me)) };
        let alike = self.await_all(O::CALLS.alltoall, operation, block);
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

    /// As [`Self::alltoall`] with lengths that only each pair knows. `apart`: inputs and outputs are not the same
    /// memory. True: it is done; otherwise some member brings more than there is room for, and it cannot be read where
    /// it stands, which all see, and all of it goes by messages.
    ///
    /// # Safety
    /// As [`Self::alltoall`].
    ///
    /// # Errors
    /// A member brings another length than we expect of it. The others go on.
    pub unsafe fn alltoallv(
        &self,
        inputs: impl Fn(u32) -> SharedPiece,
        outputs: impl Fn(u32) -> SharedPiece,
        apart: bool,
    ) -> Result<bool, Differs> {
        let longest = self.others().map(|member| inputs(member).bytes).max().unwrap_or(0);
        self.tell("alltoall", longest);
        let operation = self.begin();
        match longest {
            0 => self.slot_room(O::CALLS.alltoallv, operation)?,
            _ => self.buffer_room(O::CALLS.alltoallv, operation)?,
        }
        // SAFETY: the caller's promise; there is room.
        unsafe { self.bring_each(operation, &inputs, longest, apart) };
        self.publish(operation, 0, 0..self.size);
        // SAFETY: the caller's promise.
        unsafe { inputs(self.me).keep(outputs(self.me)) };
        if longest == 0 && self.others().all(|member| outputs(member).bytes == 0) {
            self.finish(operation);
            return Ok(true);
        }
        let met = self.await_all(O::CALLS.alltoallv, operation, 0);
        // SAFETY: all have published; the caller's promise.
        let taken = met.map(|()| unsafe { self.take_each(operation, &outputs) });
        match taken {
            // Others may still read what we show, and where one could not all go by messages, which find what is wrong.
            Ok((true, outcome)) => {
                if self.have_read(O::CALLS.alltoallv, operation)? {
                    Ok(false)
                } else {
                    outcome
                }
            }
            taken => {
                self.finish(operation);
                taken?.1
            }
        }
    }

    /// Writes what we have for each, or where it stands, with its length in front.
    ///
    /// # Safety
    /// The inputs are readable; nobody reads our slot and buffer.
    unsafe fn bring_each(&self, operation: u64, inputs: &impl Fn(u32) -> SharedPiece, longest: usize, apart: bool) {
        let may_show = apart && longest >= SHOWN_BYTES && self.all_may_see();
        let hull = may_show.then(|| SharedPiece::hull(self.others().map(inputs)));
        let said = hull.map_or(Said::default(), |hull| self.say(Some(hull), None));
        let is_here = longest <= self.record_bytes() - HEAD;
        self.each_other(|member| {
            let (piece, record) = (inputs(member), self.record(self.me, operation, member));
            // SAFETY: each record has room for its head, and for what is here; the caller's promise.
            unsafe {
                let head = record.cast::<[u64; 2]>();
                match hull.filter(|_| said.input.is_some()) {
                    Some(hull) => head.write_unaligned(
                        [piece.bytes, (piece.at as usize).wrapping_sub(hull.at as usize)].map(|n| n as u64),
                    ),
                    None if longest > 0 && is_here => {
                        record.cast::<u64>().write_unaligned(piece.bytes as u64);
                        piece.copy_to(record.add(HEAD));
                    }
                    None => {}
                }
            }
        });
        // SAFETY: the payload of our slot.
        unsafe { self.slot_bytes(self.me, operation).cast::<u64>().write_unaligned(longest as u64) };
        self.write_said(operation, said);
    }

    /// Takes what each has for us. Answers whether somebody shows what it has, and what [`Self::alltoallv`] does.
    ///
    /// # Safety
    /// All have published, and the outputs are writable.
    unsafe fn take_each(&self, operation: u64, outputs: &impl Fn(u32) -> SharedPiece) -> (bool, Result<bool, Differs>) {
        // SAFETY: all have published, and nobody writes there before we have finished.
        let longest_of = |member| unsafe { self.slot_bytes(member, operation).cast::<u64>().read_unaligned() };
        let shows = |member| self.said(member, operation).input.is_some();
        let most = self.record_bytes() - HEAD;
        if (0..self.size).any(|member| longest_of(member) > most as u64 && !shows(member)) {
            return (false, Ok(false));
        }
        let mut outcome = Ok(true);
        self.each_other(|member| {
            let (room, record) = (outputs(member), self.record(member, operation, self.me));
            // SAFETY: as above. What stands there is a claim; what is copied has the length of our own place.
            unsafe {
                let [bytes, offset] = record.cast::<[u64; 2]>().read_unaligned();
                let bytes = if longest_of(member) == 0 { 0 } else { bytes };
                if bytes != room.bytes as u64 {
                    outcome = Err(Differs::Length { member, bytes: Some(bytes) });
                } else if let Some(place) = self.said(member, operation).input.filter(|_| bytes > 0) {
                    let place = ShownPlace { offset: place.offset.saturating_add(offset), ..place };
                    match self.see(member, place, room.bytes) {
                        Some(shown) => {
                            room.copy_from(shown.at(0, room.bytes));
                            O::monitor().enter().endpoint().count_single_copy(bytes);
                        }
                        None => self.is_blind(operation),
                    }
                } else if room.bytes <= most {
                    room.copy_from(record.add(HEAD));
                }
            }
        });
        ((0..self.size).any(shows), outcome)
    }

    /// What `of` has for `to` in an operation.
    fn record(&self, of: u32, operation: u64, to: u32) -> *mut u8 {
        self.buffer(of, operation).wrapping_add(to as usize * self.record_bytes())
    }
}

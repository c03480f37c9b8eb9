//! Reduce-scatter with predefined operations, in the order of ranks: each member folds its own share out of everybody's
//! area.

use super::owner::TeamOwner;
use super::piece::SharedPiece;
use super::reduce::Vector;
use super::showing::{SHOWN_BYTES, SHOWN_ROW};
use super::team::{SLOT_BYTES, Team};
use super::word::Alike;

/// Which elements of the vector are whose.
struct ScatterShare {
    member: u32,
    first: usize,
    count: usize,
}

impl<O: TeamOwner> Team<O> {
    /// `output` = our share of all contributions, folded. The members' shares, `counts` elements each, lie in `input`,
    /// which is `vector` long, one after the other.
    ///
    /// # Safety
    /// `input` is readable for the vector and `output` writable for our share; it may be the beginning of `input`.
    ///
    /// # Errors
    /// The members bring different lengths. All of them find it in the first operation.
    pub unsafe fn reduce_scatter(
        &self,
        vector: Vector,
        counts: impl Fn(u32) -> usize,
        input: *const u8,
        output: *mut u8,
    ) -> Alike {
        let all = vector.bytes();
        self.tell("reduce-scatter", all);
        if all == 0 {
            self.bring_nothing();
            return Ok(());
        }
        let shares = || {
            (0..self.size).scan(0, |first, member| {
                let share = ScatterShare { member, first: *first, count: counts(member) };
                *first += share.count;
                Some(share)
            })
        };
        let mine = shares().nth(self.me as usize).expect("we are a member");
        if input == output {
            // What is folded first must not overwrite what is still to be brought.
            let mut result = vec![0u64; (mine.count * vector.size).div_ceil(8)];
            // SAFETY: the caller's promise; there is room for our share.
            unsafe {
                self.fold_share(vector, shares, mine, input, result.as_mut_ptr().cast())?;
                let bytes = counts(self.me) * vector.size;
                weft_fabric::copy(result.as_ptr().cast(), output, bytes);
            }
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { self.fold_share(vector, shares, mine, input, output) }
    }

    /// # Safety
    /// As [`Self::reduce_scatter`]; `output` lies elsewhere.
    unsafe fn fold_share<I: Iterator<Item = ScatterShare>>(
        &self,
        vector: Vector,
        shares: impl Fn() -> I,
        mine: ScatterShare,
        input: *const u8,
        output: *mut u8,
    ) -> Alike {
        let (all, size) = (vector.bytes(), vector.size);
        if all >= SHOWN_BYTES {
            let shown = Some(SharedPiece::new(input, all));
            if let Some(seen) = self.show(O::CALLS.reduce_scatter, (all, SHOWN_ROW), |_| all, |_| all, shown, None)? {
                // SAFETY: our share lies inside everybody's input; `output` is ours, and nobody reads it.
                unsafe { self.fold_shown(vector.part(mine.count), &seen, input, output, mine.first * size) };
                return self.all_have_read(O::CALLS.reduce_scatter, (self.size as usize - 1) * mine.count * size);
            }
        }
        let longest = shares().map(|share| share.count).max().unwrap_or(0);
        // The whole vector where it fits, else so many elements of each share.
        let whole = all <= self.buffer_bytes();
        let most = if whole { longest } else { self.record_bytes() / size };
        let rounds = longest.div_ceil(most.max(1));
        for round in 0..rounds {
            let from = round * most;
            let operation = self.begin();
            let short = all <= SLOT_BYTES;
            match short {
                true => self.slot_room(O::CALLS.reduce_scatter, operation)?,
                false => self.buffer_room(O::CALLS.reduce_scatter, operation)?,
            }
            // Where a share's part stands in the area of whoever brings it, bytes.
            let place =
                |share: &ScatterShare| if whole { share.first * size } else { share.member as usize * most * size };
            let elements = |share: &ScatterShare| share.count.saturating_sub(from).min(most);
            let area = self.place(self.me, operation, short);
            for share in shares().filter(|share| share.member != self.me) {
                // SAFETY: the parts lie beside each other in our place, which nobody reads, since there is room.
                unsafe {
                    let part = input.add((share.first + from.min(share.count)) * size);
                    weft_fabric::copy(part, area.add(place(&share)), elements(&share) * size);
                }
            }
            self.publish_of_row(operation, all, rounds, 0..self.size);
            let alike = self.await_row(O::CALLS.reduce_scatter, operation, rounds, |_| all);
            let part = vector.part(elements(&mine));
            if alike.is_ok() && part.count > 0 {
                // SAFETY: everybody has published a part of our share; our own nobody else writes.
                unsafe {
                    let at = |member| match member == self.me {
                        true => input.add((mine.first + from) * size),
                        false => self.place(member, operation, short).add(place(&mine)).cast_const(),
                    };
                    self.fold_from(part, at, output.add(from * size));
                }
            }
            self.finish(operation);
            alike?;
        }
        Ok(())
    }
}

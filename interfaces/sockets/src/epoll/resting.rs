//! A sleep on sets: which of them count it, the one that is slept on and those inside it.
//!
//! Who gets up takes back what was counted when it lay down, whatever has been put into the sets or taken out of them
//! meanwhile.

use super::members::{self, for_each_nested};
use super::set::{self, SETS};
use crate::raw;

/// Places on the stack.
const FEW: usize = 16;

/// A set that counts this sleep, in which of its lives.
#[derive(Clone, Copy)]
struct Counted {
    index: u32,
    life: u32,
}

/// Takes everything back when it is dropped, also where the thread is cancelled.
pub struct RestingSet {
    few: [Counted; FEW],
    many: *mut Counted,
    count: usize,
    short: bool,
    /// In which process.
    forks: u32,
}

impl RestingSet {
    pub fn new() -> Self {
        let few = [Counted { index: 0, life: 0 }; FEW];
        Self { few, many: std::ptr::null_mut(), count: 0, short: false, forks: set::forks() }
    }

    /// Before a sleep on the set (or on something that has it inside): all is armed, the bell rings. To be followed by
    /// a barrier, a look for what came alive, and a last look at the rings.
    pub fn lie_down(&mut self, index: u32) {
        if !self.has_place() {
            self.short = true;
            return;
        }
        match members::lie_down(index) {
            Some((life, short)) => {
                self.short |= short;
                self.add(Counted { index, life });
                for_each_nested(index, |nested| self.lie_down(nested));
            }
            // We are a signal handler, and this set cannot be touched.
            None => self.short = true,
        }
    }

    /// Whether the sleep must be short: something could not be armed.
    pub fn is_short(&self) -> bool {
        self.short
    }

    fn has_place(&mut self) -> bool {
        if self.count == FEW && self.many.is_null() {
            self.many = raw::map(SETS * size_of::<Counted>(), false).cast();
        }
        self.count < FEW || (!self.many.is_null() && self.count - FEW < SETS)
    }

    fn add(&mut self, counted: Counted) {
        match self.count.checked_sub(FEW) {
            None => self.few[self.count] = counted,
            // SAFETY: mapped for so many by `has_place`, which was asked before.
            Some(at) => unsafe { self.many.add(at).write(counted) },
        }
        self.count += 1;
    }

    fn all(&self) -> impl Iterator<Item = Counted> + '_ {
        // SAFETY: as in `add`.
        let more = (FEW..self.count).map(|at| unsafe { self.many.add(at - FEW).read() });
        self.few[..self.count.min(FEW)].iter().copied().chain(more)
    }
}

impl Drop for RestingSet {
    fn drop(&mut self) {
        // In the child of a fork nobody sleeps but its own threads, and the sets know that already.
        if self.forks == set::forks() {
            self.all().for_each(|set| members::get_up(set.index, set.life));
        }
        if !self.many.is_null() {
            // SAFETY: mapped in `has_place` with this size, used by nobody else.
            unsafe { raw::unmap(self.many.cast(), SETS * size_of::<Counted>()) };
        }
    }
}

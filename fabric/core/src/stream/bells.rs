//! Bells as callers see them.

use std::io;
use std::os::fd::RawFd;
use weft_device::shm::stream::{BellCalls, bell};

use super::page::PAGE;
use std::sync::atomic::Ordering;

/// Where a sleeper can be rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BellAddress {
    pub(super) number: u64,
    /// Which of the process's bells it is.
    pub(super) index: usize,
}

impl BellAddress {
    /// The bell's number: another one for every bell that was ever made.
    pub fn number(&self) -> u64 {
        self.number
    }
}

/// A bell of this process: a descriptor that becomes readable when somebody rings. Taken from a pool. In the child of a
/// fork the parent's bells are useless: take others.
#[derive(Debug)]
pub struct PooledBell(bell::Bell);

impl PooledBell {
    /// # Errors
    /// When there are no descriptors left.
    pub fn take() -> io::Result<Self> {
        bell::Bell::take().map(Self)
    }

    pub fn address(&self) -> BellAddress {
        BellAddress { number: self.0.number(), index: self.0.index() }
    }

    /// Readable when rung. The descriptor stays this module's.
    pub fn fd(&self) -> RawFd {
        self.0.descriptor()
    }

    /// Whether the descriptor is still the bell's, and not closed or replaced by the program.
    pub fn is_intact(&self) -> bool {
        self.0.is_intact()
    }

    /// Rings it, for another thread of this process.
    pub fn ring(&self) {
        PAGE.counters.bells.fetch_add(1, Ordering::Relaxed);
        bell::ring(self.0.number());
    }

    /// Makes it unreadable again.
    pub fn drain(&self) {
        self.0.drain();
    }

    /// `silent`: it was not rung since it was last drained, and nobody is left who would.
    pub fn give_back(self, silent: bool) {
        self.0.give_back(silent);
    }
}

/// Rings those who are to be rung.
#[inline(always)]
pub(super) fn ring(calls: BellCalls) {
    if calls != BellCalls::NONE {
        ring_all(calls);
    }
}

#[cold]
fn ring_all(BellCalls(bells): BellCalls) {
    for number in bells.into_iter().filter(|number| *number != 0) {
        PAGE.counters.bells.fetch_add(1, Ordering::Relaxed);
        bell::ring(number);
    }
}

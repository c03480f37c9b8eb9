//! Where an object is best, by counted reads and writes.
//!
//! The cost is messages. A replicated object costs one for each process and write, and reads are free. An object on one
//! process costs two for each operation of another. It moves where that halves the cost, twice in a row: a window that
//! was counted while a reader had not said yet what it has read is not enough.

use crate::message::{ObjectPlacement, ProcessId};
use std::collections::BTreeMap;

/// Operations of a window. Of a replicated object only writes are counted here, since all see only these.
const WINDOW: u32 = 32;

/// How much more a placement must cost than the best one before the object moves.
const WORTH: u64 = 2;

/// What was counted in this window, and what the last one told.
#[derive(Default)]
pub struct UseTally {
    reads: BTreeMap<ProcessId, u64>,
    writes: BTreeMap<ProcessId, u64>,
    operations: u32,
    told: Option<ObjectPlacement>,
}

impl UseTally {
    pub fn add_reads(&mut self, of: ProcessId, reads: u64) {
        *self.reads.entry(of).or_default() += reads;
    }

    pub fn add_write(&mut self, of: ProcessId) {
        *self.writes.entry(of).or_default() += 1;
    }

    /// Counts one operation more; whether the window is over.
    pub fn add_operation(&mut self) -> bool {
        self.operations += 1;
        self.operations >= WINDOW
    }

    /// Ends the window: where the object should go, with that many processes.
    pub fn end_window(&mut self, now: ObjectPlacement, processes: u64) -> Option<ObjectPlacement> {
        let better = self.better(now, processes);
        let is_told_again = better.is_some() && better == self.told;
        *self = Self { told: better, ..Self::default() };
        better.filter(|_| is_told_again)
    }

    fn accesses(&self, of: ProcessId) -> u64 {
        self.reads.get(&of).unwrap_or(&0) + self.writes.get(&of).unwrap_or(&0)
    }

    fn cost(&self, placement: ObjectPlacement, processes: u64) -> u64 {
        let writes: u64 = self.writes.values().sum();
        match placement {
            ObjectPlacement::Replicated => writes * processes,
            ObjectPlacement::Single(on) => 2 * (writes + self.reads.values().sum::<u64>() - self.accesses(on)),
        }
    }

    /// The cheapest placement, if it is worth a move; of two that cost the same, that of the lower process.
    fn better(&self, now: ObjectPlacement, processes: u64) -> Option<ObjectPlacement> {
        let users = self.reads.keys().chain(self.writes.keys());
        let singles = users.map(|process| ObjectPlacement::Single(*process));
        let order = |placement: &ObjectPlacement| match placement {
            ObjectPlacement::Replicated => (self.cost(*placement, processes), 0),
            ObjectPlacement::Single(on) => (self.cost(*placement, processes), 1 + u64::from(*on)),
        };
        let best = singles.chain([ObjectPlacement::Replicated]).min_by_key(order)?;
        let is_worth = WORTH * self.cost(best, processes) <= self.cost(now, processes);
        (best != now && self.cost(now, processes) > 0 && is_worth).then_some(best)
    }
}

#[cfg(test)]
mod tests {
    use super::ObjectPlacement::{Replicated, Single};
    use super::*;

    /// Two windows with the same accesses: of each process its reads and writes.
    fn told(now: ObjectPlacement, accesses: &[(u64, u64)]) -> Option<ObjectPlacement> {
        let mut tally = UseTally::default();
        let mut window = || {
            for (process, (reads, writes)) in (0..).zip(accesses) {
                tally.add_reads(process, *reads);
                (0..*writes).for_each(|_| tally.add_write(process));
            }
            tally.end_window(now, accesses.len() as u64)
        };
        assert_eq!(window(), None, "one window is not enough");
        window()
    }

    #[test]
    fn what_is_read_by_many_is_replicated() {
        assert_eq!(told(Single(0), &[(10, 2), (40, 0), (40, 0)]), Some(Replicated));
        assert_eq!(told(Replicated, &[(10, 2), (40, 0), (40, 0)]), None);
    }

    #[test]
    fn what_one_process_uses_goes_there() {
        assert_eq!(told(Replicated, &[(0, 1), (5, 40), (0, 0)]), Some(Single(1)));
        assert_eq!(told(Single(0), &[(0, 1), (5, 40), (0, 0)]), Some(Single(1)));
        assert_eq!(told(Single(1), &[(0, 1), (5, 40), (0, 0)]), None);
    }

    #[test]
    fn what_all_write_is_single_among_many() {
        assert_eq!(told(Replicated, &[(1, 8); 8]), Some(Single(0)));
        assert_eq!(told(Single(3), &[(1, 8); 8]), None);
    }

    #[test]
    fn what_costs_nothing_stays() {
        assert_eq!(told(Replicated, &[(1000, 0), (1000, 0)]), None);
        assert_eq!(told(Single(0), &[(1000, 1000)]), None);
    }
}

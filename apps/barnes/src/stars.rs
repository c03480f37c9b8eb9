//! The shared object: all bodies, replicated. Each process reads them at the start of a step, and writes those that it
//! has moved, all in one operation. When all have written the step is over for everybody.
//!
//! There are two sets of bodies, since who is fast writes while others still read. That is enough: the next step is
//! not over before all have written of it, so all have read this one.

use crate::vector::Vector;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use weft_app_objects::Reals;
use weft_objects::object;

/// A body; all have the same mass.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Star {
    pub position: Vector,
    /// At the start of the first step; later in the middle of the last one.
    pub velocity: Vector,
    /// How many terms its pull had in the last step.
    pub cost: u32,
}

/// A body is so many numbers.
const NUMBERS: usize = 7;

/// Bodies as numbers, which are copied as they are.
pub fn packed(stars: impl Iterator<Item = Star>) -> Reals {
    let numbers = stars.flat_map(|star| {
        let ([x, y, z], [u, v, w]) = (star.position, star.velocity);
        [x, y, z, u, v, w, f64::from(star.cost)]
    });
    Reals(numbers.collect())
}

fn unpacked(numbers: &Reals) -> impl ExactSizeIterator<Item = Star> {
    let stars = numbers.0.as_chunks::<NUMBERS>().0.iter();
    stars.map(|[x, y, z, u, v, w, cost]| Star { position: [*x, *y, *z], velocity: [*u, *v, *w], cost: *cost as u32 })
}

/// All bodies.
#[derive(Default, Serialize, Deserialize)]
pub struct Stars {
    step: u32,
    now: Vec<Star>,
    later: Vec<Star>,
    /// How many processes there are, and how many of them have written of `later`.
    writers: u32,
    written: u32,
    /// Kinetic and potential energy and terms of each body, as they were accounted last.
    accounts: Vec<[f64; 3]>,
}

impl Stars {
    pub fn new(stars: Vec<Star>, writers: u32) -> Self {
        let accounts = vec![[0.0; 3]; stars.len()];
        Self { step: 0, later: stars.clone(), now: stars, writers, written: 0, accounts }
    }
}

#[object]
impl Stars {
    /// All bodies when so many steps are over. Waits for that.
    #[operation(read, guard = self.step == *step)]
    pub fn after(&self, step: u32) -> Vec<Star> {
        self.now.clone()
    }

    /// Bodies of the next step, from this place of the tree on: all that a process has.
    #[operation(write)]
    pub fn advance(&mut self, first: usize, moved: Reals) {
        self.later[first..].iter_mut().zip(unpacked(&moved)).for_each(|(place, star)| *place = star);
        self.written += 1;
        if self.written == self.writers {
            std::mem::swap(&mut self.now, &mut self.later);
            self.written = 0;
            self.step += 1;
        }
    }

    /// Energies and terms of bodies, before they are moved.
    #[operation(write)]
    pub fn account(&mut self, first: usize, accounts: Vec<[f64; 3]>) {
        self.accounts[first..first + accounts.len()].copy_from_slice(&accounts);
    }

    /// Kinetic and potential energy and terms of all, as they were accounted last. Waits until so many steps are over.
    #[operation(read, guard = self.step == *step)]
    pub fn accounted(&self, step: u32) -> [f64; 3] {
        let all = self.accounts.iter();
        all.fold([0.0; 3], |sum, one| [sum[0] + one[0], sum[1] + one[1], sum[2] + one[2]])
    }
}

/// The bodies of one of `size` processes: those that come after its share of the cost. There can be none.
pub fn zone(stars: &[Star], me: u32, size: u32) -> Range<usize> {
    let mut all = 0;
    let mut before = Vec::with_capacity(stars.len());
    for star in stars {
        before.push(all);
        all += u64::from(star.cost);
    }
    let begin_of = |process: u32| {
        let share = all * u64::from(process) / u64::from(size);
        before.partition_point(|before| *before < share)
    };
    begin_of(me)..if me + 1 == size { stars.len() } else { begin_of(me + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plummer::clusters;

    #[test]
    fn zones_are_all_bodies_with_like_costs() {
        let mut stars = clusters(100);
        stars.iter_mut().zip(1..).for_each(|(star, cost)| star.cost = cost);
        let zones = [0, 1, 2].map(|process| zone(&stars, process, 3));
        assert_eq!((zones[0].start, zones[0].end, zones[1].end), (0, zones[1].start, zones[2].start));
        assert_eq!(zones[2].end, 100);
        let costs = zones.map(|zone| stars[zone].iter().map(|star| star.cost).sum::<u32>());
        assert!(costs.iter().all(|cost| cost.abs_diff(5050 / 3) <= 100), "{costs:?}");
        // One has all the cost.
        stars.iter_mut().for_each(|star| star.cost = u32::from(star.position == stars_first()));
        let count: usize = [0, 1, 2].map(|process| zone(&stars, process, 3).len()).iter().sum();
        assert_eq!(count, 100);
    }

    fn stars_first() -> Vector {
        clusters(100)[0].position
    }

    #[test]
    fn a_step_is_over_when_all_have_written() {
        let stars = clusters(20);
        let mut all = Stars::new(stars.clone(), 3);
        all.advance(5, packed(stars[..15].iter().copied()));
        all.advance(20, packed([].into_iter()));
        assert_eq!((all.step, all.after(0)), (0, stars.clone()));
        all.advance(0, packed(stars[15..].iter().copied()));
        assert_eq!((all.step, all.after(1)), (1, [&stars[15..], &stars[..15]].concat()));
    }
}

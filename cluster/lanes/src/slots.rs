//! Which slots of an arena are used: pure.

use std::collections::VecDeque;
use weft_wire::stream::arena::SLOTS;

#[derive(Default)]
pub struct LaneSlots {
    /// Of each slot that was ever used, by which number of uses it is known.
    generations: Vec<u32>,
    /// The longest free first: what is late for one finds nobody.
    free: VecDeque<u32>,
}

impl LaneSlots {
    /// A slot and its generation.
    pub fn take(&mut self) -> Option<(u32, u32)> {
        let slot = match self.free.pop_front() {
            Some(slot) => slot,
            None if self.generations.len() < SLOTS as usize => {
                self.generations.push(0);
                self.generations.len() as u32 - 1
            }
            None => return None,
        };
        let generation = &mut self.generations[slot as usize];
        // After four thousand million uses a number comes back; 0 never.
        *generation = generation.checked_add(1).unwrap_or(1);
        Some((slot, *generation))
    }

    /// It is not used any more. To be said once for each time that it was taken.
    pub fn give_back(&mut self, slot: u32) {
        self.free.push_back(slot);
    }

    pub fn used(&self) -> usize {
        self.generations.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_comes_back_with_another_generation() {
        let mut slots = LaneSlots::default();
        assert_eq!(slots.used(), 0);
        assert_eq!((slots.take(), slots.take()), (Some((0, 1)), Some((1, 1))));
        slots.give_back(0);
        assert_ne!(slots.used(), 0);
        assert_eq!((slots.take(), slots.take()), (Some((0, 2)), Some((2, 1))));
    }

    #[test]
    fn there_are_as_many_as_an_arena_has() {
        let mut slots = LaneSlots::default();
        assert_eq!(std::iter::from_fn(|| slots.take()).count(), SLOTS as usize);
        (0..SLOTS).for_each(|slot| slots.give_back(slot));
        assert_eq!(slots.used(), 0);
        assert!(slots.take().is_some());
    }
}

//! Makes a map as Orca's `boxMaker` does: boxes of one cell lie anywhere, and grow a row of cells at a time, one of
//! them at random to a side at random, until nothing is between them. A hole that is left becomes a box that grows,
//! too. It is that program's map for the same size and seed, box by box.

use crate::boxes::MapBox;
use crate::random::SumRandom;

/// A side that a box can grow to, as a bit.
type Side = u8;

const LEFT: Side = 1;
const HIGH: Side = 2;
const RIGHT: Side = 4;
const LOW: Side = 8;

/// So often a side is taken at random; then it is the next one.
const TRIES: u32 = 4;

struct Growing {
    place: MapBox,
    /// Sides that have not been found closed.
    free: Side,
}

/// A map that is being made.
struct Making {
    random: SumRandom,
    size: u16,
    /// A bit for each cell: column after column.
    taken: Vec<u64>,
    words: usize,
    boxes: Vec<Growing>,
}

/// The map of `size` x `size` cells that grows out of `count` boxes, or of more. `on_progress` is told now and then
/// how many of them are grown.
pub fn make(size: u16, count: usize, seed: u32, mut on_progress: impl FnMut(u64)) -> Vec<MapBox> {
    let words = usize::from(size).div_ceil(64);
    let taken = vec![0; usize::from(size) * words];
    let mut making = Making { random: SumRandom::new(seed), size, taken, words, boxes: Vec::with_capacity(count) };
    while making.boxes.len() < count {
        let [y, x] = [0; 2].map(|_| making.random.below(usize::from(size)) as u16);
        making.put(x, y);
    }
    let (mut active, mut column, mut grown) = (count, 0, 0_u64);
    while active > 0 {
        let number = making.random.below(active);
        if let Some(side) = making.free_side(number) {
            making.grow(number, side);
            continue;
        }
        active -= 1;
        making.boxes.swap(number, active);
        grown += 1;
        if grown.is_multiple_of(1024) {
            on_progress(grown);
        }
        if active == 0 {
            let other = making.random.below(making.boxes.len());
            making.boxes.swap(0, other);
            if let Some(row) = making.next_hole(&mut column) {
                making.put(column, row);
                let last = making.boxes.len() - 1;
                making.boxes.swap(0, last);
                active = 1;
            }
        }
    }
    making.boxes.into_iter().map(|one| one.place).collect()
}

impl Making {
    fn is_taken(&self, x: u16, y: u16) -> bool {
        self.taken[usize::from(x) * self.words + usize::from(y) / 64] >> (y % 64) & 1 == 1
    }

    fn take(&mut self, x: u16, y: u16) {
        self.taken[usize::from(x) * self.words + usize::from(y) / 64] |= 1 << (y % 64);
    }

    /// A box of one cell, if that is free.
    fn put(&mut self, x: u16, y: u16) {
        if !self.is_taken(x, y) {
            self.take(x, y);
            let place = MapBox::new(x, y, x + 1, y + 1);
            self.boxes.push(Growing { place, free: LEFT | HIGH | RIGHT | LOW });
        }
    }

    /// A side to which this box can grow.
    fn free_side(&mut self, number: usize) -> Option<Side> {
        let mut side = LEFT;
        let mut tries = 0;
        while self.boxes[number].free != 0 {
            side = match tries {
                0..TRIES => 1 << self.random.below(4),
                _ if side == LOW => LEFT,
                _ => side << 1,
            };
            tries += 1;
            if self.boxes[number].free & side == 0 {
                continue;
            }
            if self.is_free(self.boxes[number].place, side) {
                return Some(side);
            }
            self.boxes[number].free &= !side;
        }
        None
    }

    /// Whether nothing is beside a box.
    fn is_free(&self, place: MapBox, side: Side) -> bool {
        let MapBox { left, low, right, high } = place;
        match side {
            LEFT => left > 0 && !(low..high).any(|y| self.is_taken(left - 1, y)),
            RIGHT => right < self.size && !(low..high).any(|y| self.is_taken(right, y)),
            HIGH => high < self.size && !(left..right).any(|x| self.is_taken(x, high)),
            _ => low > 0 && !(left..right).any(|x| self.is_taken(x, low - 1)),
        }
    }

    fn grow(&mut self, number: usize, side: Side) {
        let place = &mut self.boxes[number].place;
        match side {
            LEFT => place.left -= 1,
            RIGHT => place.right += 1,
            HIGH => place.high += 1,
            _ => place.low -= 1,
        }
        let MapBox { left, low, right, high } = *place;
        match side {
            LEFT => (low..high).for_each(|y| self.take(left, y)),
            RIGHT => (low..high).for_each(|y| self.take(right - 1, y)),
            HIGH => (left..right).for_each(|x| self.take(x, high - 1)),
            _ => (left..right).for_each(|x| self.take(x, low)),
        }
    }

    /// The next cell from this column on that is in no box: its row.
    fn next_hole(&self, column: &mut u16) -> Option<u16> {
        while *column < self.size {
            if let Some(row) = (0..self.size).find(|row| !self.is_taken(*column, *row)) {
                return Some(row);
            }
            *column += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_whole_and_no_box_lies_on_another() {
        let (size, boxes) = (60, make(60, 50, 1, |_| ()));
        let mut seen = vec![0; 60 * 60];
        for one in &boxes {
            for x in one.left..one.right {
                (one.low..one.high).for_each(|y| seen[usize::from(x * size + y)] += 1);
            }
        }
        assert!(seen.iter().all(|times| *times == 1));
    }

    /// What the original program finds.
    #[test]
    fn the_map_is_that_of_the_original() {
        let boxes = make(300, 850, 1, |_| ());
        assert_eq!(boxes.len(), 1081);
        assert_eq!(boxes[..2], [MapBox::new(68, 140, 78, 147), MapBox::new(33, 29, 58, 43)]);
        assert_eq!(boxes[1080], MapBox::new(82, 213, 112, 222));
    }
}

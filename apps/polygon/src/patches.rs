//! A map cut into square patches, whose number depends on the map only.

use crate::boxes::MapBox;
use std::ops::Range;

/// So many boxes of one map are in a patch, about. With more it takes longer to find what is common; with fewer more
/// boxes are in several patches.
const BOXES: usize = 256;

/// PatchGrid of a square map: so many in a row, and so many rows.
#[derive(Clone, Copy, Debug)]
pub struct PatchGrid {
    size: u16,
    pub across: u16,
    /// Cells of a patch, but in the last row and column.
    side: u16,
}

/// Boxes by the patches that they touch: one after the other, row by row.
pub struct PatchedBoxes {
    pub boxes: Vec<MapBox>,
    ends: Vec<usize>,
}

impl PatchedBoxes {
    pub fn of(&self, patch: usize) -> &[MapBox] {
        let begin = if patch == 0 { 0 } else { self.ends[patch - 1] };
        &self.boxes[begin..self.ends[patch]]
    }
}

impl PatchGrid {
    pub fn new(size: u16, across: u16) -> Self {
        let side = size.div_ceil(across);
        Self { size, across: size.div_ceil(side), side }
    }

    /// PatchGrid that are good for maps of so many boxes.
    pub fn for_boxes(size: u16, count: usize) -> Self {
        Self::new(size, ((count / BOXES).isqrt() as u16).clamp(1, size))
    }

    /// The rows that a box touches.
    pub fn rows_of(self, one: &MapBox) -> Range<u16> {
        one.low / self.side..(one.high - 1) / self.side + 1
    }

    fn columns_of(self, one: &MapBox) -> Range<u16> {
        one.left / self.side..(one.right - 1) / self.side + 1
    }

    /// Where the patches of these rows are, in their order.
    pub fn places(self, rows: &Range<u16>) -> impl Iterator<Item = MapBox> {
        let (side, size, across) = (self.side, self.size, self.across);
        let end = move |at: u16| (at * side).saturating_add(side).min(size);
        rows.clone().flat_map(move |row| {
            (0..across).map(move |column| MapBox::new(column * side, row * side, end(column), end(row)))
        })
    }

    /// The boxes that touch each of these rows, which are all rows in their order.
    pub fn dealt(self, shares: &[Range<u16>], boxes: &[MapBox]) -> Vec<Vec<MapBox>> {
        let numbered = shares.iter().enumerate();
        let share_of: Vec<usize> = numbered.flat_map(|(number, rows)| rows.clone().map(move |_| number)).collect();
        let room = |rows: &Range<u16>| boxes.len() * rows.len() / usize::from(self.across) * 5 / 4;
        let mut dealt: Vec<Vec<MapBox>> = shares.iter().map(|rows| Vec::with_capacity(room(rows))).collect();
        for one in boxes {
            let rows = self.rows_of(one);
            let its = &mut dealt[share_of[usize::from(rows.start)]..=share_of[usize::from(rows.end) - 1]];
            its.iter_mut().for_each(|share| share.push(*one));
        }
        dealt
    }

    /// These boxes by the patches of these rows.
    pub fn sorted(self, rows: &Range<u16>, boxes: &[MapBox]) -> PatchedBoxes {
        let across = usize::from(self.across);
        let mut ends = vec![0; across * rows.len()];
        let touched = |one: &MapBox| {
            let its = self.rows_of(one);
            (its.start.max(rows.start) - rows.start..its.end.min(rows.end) - rows.start, self.columns_of(one))
        };
        let each = |what: &mut dyn FnMut(usize, MapBox)| {
            for one in boxes {
                let (rows, columns) = touched(one);
                for row in rows {
                    let first = usize::from(row) * across;
                    columns.clone().for_each(|column| what(first + usize::from(column), *one));
                }
            }
        };
        each(&mut |patch, _| ends[patch] += 1);
        let mut begin = 0;
        for end in &mut ends {
            (*end, begin) = (begin, begin + *end);
        }
        let mut sorted = vec![MapBox::default(); begin];
        each(&mut |patch, one| {
            sorted[ends[patch]] = one;
            ends[patch] += 1;
        });
        PatchedBoxes { boxes: sorted, ends }
    }
}

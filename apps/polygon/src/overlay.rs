//! The overlay of two maps, patch by patch: all boxes that are common to one of the first map and one of the second.
//!
//! A box is in each patch that it touches. What is common to two boxes belongs to the patch with its corner, so it is
//! found once, and whole.
//!
//! Inside a patch it is Orca's method, *sort and delete*: both lists are sorted from the left. A box of the second map
//! is held against those of the first, from the left, until all its cells in the patch are found. One of the first map
//! whose cells are all found is deleted.

use crate::boxes::MapBox;
use crate::patches::PatchGrid;
use std::ops::Range;

/// The overlay of these rows of patches, in the order of the patches. The lists have all boxes that touch them.
/// `pause` is called after each patch.
pub fn overlay(patches: PatchGrid, rows: Range<u16>, lists: [&[MapBox]; 2], pause: impl Fn()) -> Vec<MapBox> {
    let [first, second] = lists.map(|boxes| patches.sorted(&rows, boxes));
    let mut found = Vec::with_capacity(2 * (first.boxes.len() + second.boxes.len()));
    let mut desk = PatchDesk::default();
    for (at, place) in patches.places(&rows).enumerate() {
        desk.lay(place, first.of(at), second.of(at), &mut found);
        pause();
    }
    found
}

/// The same of whole maps at once, in no order.
pub fn whole_overlay(size: u16, first: &[MapBox], second: &[MapBox]) -> Vec<MapBox> {
    let mut found = Vec::new();
    PatchDesk::default().lay(MapBox::new(0, 0, size, size), first, second, &mut found);
    found
}

/// Memory for one patch after the other.
#[derive(Default)]
struct PatchDesk {
    first: Vec<MapBox>,
    second: Vec<MapBox>,
    /// After each box of the first map the next one that is not deleted, by its place plus one; place 0 is the head.
    next: Vec<u32>,
    /// Cells of the first map's boxes that are not found yet.
    rest: Vec<u32>,
}

impl PatchDesk {
    fn lay(&mut self, patch: MapBox, first: &[MapBox], second: &[MapBox], found: &mut Vec<MapBox>) {
        take_sorted(&mut self.first, first);
        take_sorted(&mut self.second, second);
        self.next.clear();
        self.next.extend(1..=first.len() as u32 + 1);
        self.rest.clear();
        self.rest.extend(self.first.iter().map(|one| one.common(patch).area()));
        let end = first.len() as u32 + 1;
        for one in &self.second {
            let mut rest = one.common(patch).area();
            let (mut before, mut at) = (0, self.next[0]);
            while rest > 0 && at != end {
                let place = at as usize - 1;
                let after = self.next[at as usize];
                let common = self.first[place].common(*one);
                let inside = common.common(patch);
                if !inside.is_hollow() {
                    if inside.left == common.left && inside.low == common.low {
                        found.push(common);
                    }
                    rest -= inside.area();
                    self.rest[place] -= inside.area();
                    if self.rest[place] == 0 {
                        self.next[before as usize] = after;
                        at = after;
                        continue;
                    }
                }
                (before, at) = (at, after);
            }
        }
    }
}

fn take_sorted(to: &mut Vec<MapBox>, from: &[MapBox]) {
    to.clear();
    to.extend_from_slice(from);
    to.sort_unstable();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maker::make;

    /// Each box with each.
    fn one_by_one(first: &[MapBox], second: &[MapBox]) -> Vec<MapBox> {
        let pairs = first.iter().flat_map(|a| second.iter().map(|b| a.common(*b)));
        let mut all: Vec<MapBox> = pairs.filter(|common| !common.is_hollow()).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn patches_and_whole_maps_give_what_each_box_with_each_gives() {
        let (first, second) = (make(120, 200, 1, |_| ()), make(120, 180, 2, |_| ()));
        let right = one_by_one(&first, &second);
        let sorted = |mut boxes: Vec<MapBox>| {
            boxes.sort_unstable();
            boxes
        };
        assert_eq!(sorted(whole_overlay(120, &first, &second)), right);
        for across in [1, 2, 7] {
            let patches = PatchGrid::new(120, across);
            assert_eq!(sorted(overlay(patches, 0..across, [&first, &second], || ())), right, "{across}");
        }
    }

    #[test]
    fn rows_apart_are_the_overlay_in_the_same_order() {
        let (first, second) = (make(120, 200, 1, |_| ()), make(120, 180, 2, |_| ()));
        let patches = PatchGrid::new(120, 7);
        let all = overlay(patches, 0..7, [&first, &second], || ());
        let shares = [0..3, 3..3, 3..4, 4..7];
        let (first, second) = (patches.dealt(&shares, &first), patches.dealt(&shares, &second));
        let part = |at: usize| overlay(patches, shares[at].clone(), [&first[at], &second[at]], || ());
        assert_eq!([0, 1, 2, 3].map(part).concat(), all);
    }
}

//! What is known of the overlay: it covers the map, it is what another method finds, and for some maps Orca's own
//! programs say how many boxes there are.

use crate::MapInput;
use crate::boxes::MapBox;
use crate::overlay::whole_overlay;
use weft_app_objects::AppAnswer;

/// A map that `boxMaker` makes with seeds 1 and 2, how many boxes each has, and how many Orca's sequential program
/// (`seqC`) finds in the overlay.
const KNOWN: [(MapInput, [usize; 3]); 3] = [
    (MapInput { size: 300, count: 850 }, [1081, 1082, 3916]),
    (MapInput { size: 2000, count: 38500 }, [50234, 50323, 181_731]),
    (MapInput { size: 4000, count: 154_000 }, [201_352, 201_101, 728_458]),
];

pub fn run(answer: &mut AppAnswer, input: MapInput, maps: [&[MapBox]; 2], overlay: &[MapBox]) {
    let found = [maps[0].len(), maps[1].len(), overlay.len()];
    if let Some((_, known)) = KNOWN.iter().find(|(one, _)| *one == input) {
        answer.check(found == *known, || format!("{found:?} boxes in the maps and the overlay: should be {known:?}"));
    }
    let area: u64 = overlay.iter().map(|one| u64::from(one.area())).sum();
    let whole = u64::from(input.size) * u64::from(input.size);
    answer.check(area == whole, || format!("the overlay covers {area} cells of {whole}"));
    let sorted = |boxes: &[MapBox]| {
        let mut boxes = boxes.to_vec();
        boxes.sort_unstable();
        boxes
    };
    let right = sorted(&whole_overlay(input.size, maps[0], maps[1]));
    answer.check(sorted(overlay) == right, || "other boxes than those of the maps at once".to_owned());
}

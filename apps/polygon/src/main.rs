//! Two maps of one area laid over each other, over shared objects: `weft run -n 4 polygon`.
//!
//! - `maker`, `random`: makes maps. - `boxes`: their polygons. - `patches`, `overlay`: what is common to two of them.
//! - `exchange`: the shared objects. - `check`: what is known of the result.
//!
//! What holds: the overlay is the same list of boxes for any number of processes.
//!
//! Deliberately not here: polygons other than boxes, and maps that are not square.
//!
//! Test: `cargo test -p weft-app-polygon`.

mod boxes;
mod check;
mod exchange;
mod maker;
mod overlay;
mod patches;
mod random;

use boxes::{BoxList, MapBox};
use clap::{Parser, ValueEnum};
use exchange::{MapPart, Overlays, PartSlot, SharedOverlays, SharedPartSlot};
use patches::PatchGrid;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use weft_app_objects::{AppAnswer, AppFailure, AppRun, picture, run};
use weft_objects::{ObjectPlacement, Strategy};

/// Each of the others gets its share in so many parts, so that it begins early, and its first results come early.
const PARTS: usize = 4;

/// What the first process takes itself, where each of the others takes 1.
const OWN_SHARE: f64 = 0.8;

/// One of so many boxes is looked at to see where many are.
const SAMPLE: usize = 16;

/// Two maps of rectangles laid over each other.
///
/// The overlay is compared with that of another method; the exit status is 1 if it is wrong.
#[derive(Parser)]
#[command(name = "polygon")]
struct PolygonArguments {
    /// Polygons of each map, about: S 1000, P 50000 (the paper), L 200000
    #[arg(long, value_enum, default_value = "S", ignore_case = true)]
    class: MapClass,
    /// Polygons that each map grows from, in the place of the class's
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    polygons: Option<u32>,
    /// Cells in each direction, in the place of the class's
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=16384))]
    size: Option<u16>,
    /// Writes the middle of the overlay, as PNG
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "UPPER")]
enum MapClass {
    S,
    P,
    L,
}

/// The size of a map, and how many boxes it grows from.
#[derive(Clone, Copy, Debug, PartialEq)]
struct MapInput {
    size: u16,
    count: usize,
}

impl PolygonArguments {
    fn input(&self) -> Result<MapInput, AppFailure> {
        let (size, count) = match self.class {
            MapClass::S => (300, 850),
            MapClass::P => (2000, 38500),
            MapClass::L => (4000, 154_000),
        };
        let count = self.polygons.map_or(count, |count| count as usize);
        let input = MapInput { size: self.size.unwrap_or(size), count };
        let cells = usize::from(input.size) * usize::from(input.size);
        // Each of them begins in a cell of its own, which is looked for at random.
        if count > cells / 2 {
            let size = input.size;
            let text = format!("--polygons {count}: allowed are up to {} on {size} x {size} cells", cells / 2);
            return Err(AppFailure::Refused(text));
        }
        Ok(input)
    }
}

fn main() -> ExitCode {
    run(work)
}

fn work(run: &AppRun, arguments: &PolygonArguments) -> Result<AppAnswer, AppFailure> {
    let input = arguments.input()?;
    let slots = (0..run.size).map(|process| {
        let slot = SharedPartSlot::share(&run.space, &format!("parts of {process}"), PartSlot::default())?;
        // An object can move to a process that has opened it.
        run.meet()?;
        slot.place(Strategy::Fixed(ObjectPlacement::Single(process)))?;
        Ok(slot)
    });
    let slots = slots.collect::<Result<Vec<_>, AppFailure>>()?;
    let overlays = SharedOverlays::share(&run.space, "overlays", Overlays::new(run.size - 1, PARTS))?;
    overlays.place(Strategy::Fixed(ObjectPlacement::Single(0)))?;
    if run.me == 0 {
        return lead(run, arguments, input, &slots, &overlays);
    }
    run.meet()?;
    follow(run, patches_of(input), &slots[run.me as usize], &overlays)?;
    run.meet()?;
    Ok(AppAnswer::default())
}

/// The first process has the maps, and gets the overlay.
fn lead(
    run: &AppRun,
    arguments: &PolygonArguments,
    input: MapInput,
    slots: &[SharedPartSlot],
    overlays: &SharedOverlays,
) -> Result<AppAnswer, AppFailure> {
    let (first, second) = made(run, input);
    let begin = run.meet()?;
    let own = distribute(run, patches_of(input), slots, [&first, &second])?;
    overlays.await_all()?;
    let seconds = begin.elapsed().as_secs_f64();
    run.meet()?;
    let all = [own, overlays.all()?.0].concat();
    let text = format!("{} and {} polygons, {} in the overlay", first.len(), second.len(), all.len());
    let mut answer = AppAnswer::new(text, seconds);
    check::run(&mut answer, input, [&first, &second], &all);
    if let Some(path) = &arguments.picture {
        draw(path, input.size, &all)?;
    }
    Ok(answer)
}

/// Another one lays its parts over each other, as they come.
fn follow(
    run: &AppRun,
    patches: PatchGrid,
    slot: &SharedPartSlot,
    overlays: &SharedOverlays,
) -> Result<(), AppFailure> {
    for number in 0..PARTS {
        slot.await_part(number)?;
        let MapPart { rows, first, second } = slot.part(number)?;
        let overlay = overlay::overlay(patches, rows, [&first.0, &second.0], || run.space.poll());
        overlays.deliver((run.me as usize - 1) * PARTS + number, BoxList(overlay))?;
    }
    Ok(())
}

fn patches_of(input: MapInput) -> PatchGrid {
    // A map has about a third more boxes at the end.
    PatchGrid::for_boxes(input.size, input.count * 4 / 3)
}

/// The two maps, on the first process: the input.
fn made(run: &AppRun, input: MapInput) -> (Vec<MapBox>, Vec<MapBox>) {
    let progress = run.progress(Some(2 * input.count as u64), "maps");
    let make = |seed: u32| {
        let before = u64::from(seed - 1) * input.count as u64;
        maker::make(input.size, input.count, seed, |grown| progress.set_position(before + grown))
    };
    let maps = (make(1), make(2));
    progress.finish_and_clear();
    maps
}

/// Gives each of the others its parts, and does the own one.
fn distribute(
    run: &AppRun,
    patches: PatchGrid,
    slots: &[SharedPartSlot],
    maps: [&[MapBox]; 2],
) -> Result<Vec<MapBox>, AppFailure> {
    if run.size == 1 {
        return Ok(overlay::overlay(patches, 0..patches.across, maps, || ()));
    }
    let shares = shares(patches, run.size, maps);
    let [mut first, mut second] = maps.map(|map| patches.dealt(&shares, map));
    // Each gets something to do before anybody gets more.
    for number in 0..PARTS {
        for (process, slot) in slots[1..].iter().enumerate() {
            let at = 1 + process * PARTS + number;
            let [first, second] = [&mut first, &mut second].map(|boxes| BoxList(std::mem::take(&mut boxes[at])));
            slot.give(MapPart { rows: shares[at].clone(), first, second })?;
        }
    }
    // Others that are ready have not to wait.
    Ok(overlay::overlay(patches, shares[0].clone(), [&first[0], &second[0]], || run.space.poll()))
}

/// Rows of patches: for the first process, then for each of the others in parts. What the others have is of about the
/// same number of boxes; the first has less, since it sends and receives all the others have.
fn shares(patches: PatchGrid, processes: u32, maps: [&[MapBox]; 2]) -> Vec<Range<u16>> {
    let mut counts = vec![0_u64; usize::from(patches.across)];
    let sample = maps.into_iter().flat_map(|map| map.iter().step_by(SAMPLE));
    sample.for_each(|one| counts[usize::from(patches.rows_of(one).start)] += 1);
    let mut all = 0;
    let mut sums = Vec::with_capacity(counts.len());
    for count in counts {
        sums.push(all);
        all += count;
    }
    let others = f64::from(processes - 1);
    let parts = PARTS * (processes as usize - 1);
    let end_of = |part: usize| {
        let share = OWN_SHARE + others * part as f64 / parts as f64;
        if part == parts {
            return patches.across;
        }
        sums.partition_point(|before| (*before as f64) < all as f64 * share / (OWN_SHARE + others)) as u16
    };
    let first = std::iter::once(0..end_of(0));
    first.chain((0..parts).map(|part| end_of(part)..end_of(part + 1))).collect()
}

/// The middle of the overlay, each box in a colour, with dark edges.
fn draw(path: &Path, size: u16, boxes: &[MapBox]) -> Result<(), AppFailure> {
    const CELLS: u16 = 80;
    const PIXELS: u16 = 6;
    let cells = CELLS.min(size);
    let corner = (size - cells) / 2;
    let window = MapBox::new(corner, corner, corner + cells, corner + cells);
    let width = usize::from(cells * PIXELS);
    let mut colours = vec![[0; 3]; width * width];
    for seen in boxes.iter().filter(|one| !one.common(window).is_hollow()) {
        let part = seen.common(window);
        // Some colour that only depends on the box.
        let hash = u32::from(seen.left).wrapping_mul(0x9e37_79b1) ^ u32::from(seen.low).wrapping_mul(0x85eb_ca77);
        let colour = picture::colour_at(0.15 + 0.85 * f64::from(hash >> 8 & 0xff) / 255.0);
        let pixels =
            |from: u16, to: u16| usize::from((from - corner) * PIXELS)..usize::from((to - corner) * PIXELS) - 1;
        for y in pixels(part.low, part.high) {
            let row = &mut colours[y * width..][..width];
            pixels(part.left, part.right).for_each(|x| row[x] = colour);
        }
    }
    picture::write_colours(path, width, &colours)
}

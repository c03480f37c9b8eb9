//! The iterations. In each, all red cells change and then all black ones; but a row's black cells change as soon as the
//! red ones around them have, so that the field goes through the processor's cache once.

use crate::borders::Borders;
use crate::field::CellColour::{Black, Red};
use crate::field::CellField;
use weft_app_objects::AppRun;
use weft_objects::{ObjectFault, Space};

/// Cells after which it is looked whether others want something.
const LOOK: usize = 1 << 16;

/// Iterates until no cell of any process changes much; how many iterations that took.
pub fn relax(run: &AppRun, field: &mut CellField, borders: &Borders) -> Result<u64, ObjectFault> {
    let pace = field.grid.pace();
    let bar = run.progress(None, "iterations");
    for iteration in 1.. {
        let worst = iterate(&run.space, field, borders, pace.omega)?;
        bar.inc(1);
        if borders.agree(iteration, worst <= pace.enough)? {
            bar.finish_and_clear();
            return Ok(iteration);
        }
        borders.take(field, Black)?;
    }
    unreachable!("iterations have no end of their own")
}

/// One iteration, at the end of which the neighbours have been given black cells and theirs were not taken yet.
fn iterate(space: &Space, field: &mut CellField, borders: &Borders, omega: f64) -> Result<f64, ObjectFault> {
    let (first, last) = (1, field.rows());
    let look = LOOK.div_ceil(field.grid.columns);
    let mut worst = field.relax(Red, first, omega);
    let mut note = |change: f64| worst = worst.max(change);
    if last > first {
        note(field.relax(Red, last, omega));
    }
    borders.give(field, Red)?;
    for row in first + 1..last {
        note(field.relax(Red, row, omega));
        if row - 1 > first {
            note(field.relax(Black, row - 1, omega));
        }
        if row % look == 0 {
            space.poll();
        }
    }
    if last > first + 1 {
        note(field.relax(Black, last - 1, omega));
    }
    borders.take(field, Red)?;
    note(field.relax(Black, first, omega));
    if last > first {
        note(field.relax(Black, last, omega));
    }
    borders.give(field, Black)?;
    Ok(worst)
}

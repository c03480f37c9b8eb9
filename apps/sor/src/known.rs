//! What must come out: known for the classes, and for other sizes found by the plain loop.

use crate::field::Grid;
use std::fmt;
use weft_app_objects::{AppAnswer, AppRun};

/// Rows, columns, iterations and the mean of all cells that are no borders: by the plain loop.
const KNOWN: [(Grid, u64, f64); 3] = [
    (Grid { rows: 482, columns: 80 }, 100, 7.018301060525),
    (Grid { rows: 480, columns: 1000 }, 300, 6.302276988145),
    (Grid { rows: 964, columns: 4000 }, 467, 5.412981222485),
];

/// Of a row: the sum of its cells, and a number that differs where a bit differs.
pub type RowFacts = (f64, u64);

/// What has come out.
#[derive(Debug, PartialEq)]
pub struct SorOutcome {
    iterations: u64,
    mean: f64,
    digest: u64,
}

impl fmt::Display for SorOutcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} iterations, mean {:.12}, bits {:016x}", self.iterations, self.mean, self.digest)
    }
}

impl SorOutcome {
    /// Of all rows between the borders, in their order.
    pub fn new(iterations: u64, rows: Vec<RowFacts>, grid: Grid) -> Self {
        let sum: f64 = rows.iter().map(|(sum, _)| sum).sum();
        let digest = rows.iter().fold(0, |all, (_, row)| mixed(all, *row));
        Self { iterations, mean: sum / ((grid.rows - 2) * (grid.columns - 2)) as f64, digest }
    }
}

/// FNV's step, by words.
fn mixed(all: u64, next: u64) -> u64 {
    (all ^ next).wrapping_mul(0x0100_0000_01b3)
}

/// Of the cells of a row, borders included.
fn facts(cells: impl Iterator<Item = f64> + Clone) -> RowFacts {
    let digest = cells.clone().fold(0xcbf2_9ce4_8422_2325, |all, cell| mixed(all, cell.to_bits()));
    let last = cells.clone().count() - 1;
    (cells.take(last).skip(1).sum(), digest)
}

/// Of the rows of this process.
pub fn row_facts(field: &crate::field::CellField) -> Vec<RowFacts> {
    (1..=field.rows()).map(|row| facts(field.row(row).collect::<Vec<_>>().iter().copied())).collect()
}

/// Compares with the known answer, or with the plain loop where there is none: on process 0.
pub fn check(run: &AppRun, grid: Grid, outcome: &SorOutcome, answer: &mut AppAnswer) {
    if let Some((_, iterations, mean)) = KNOWN.iter().find(|(known, ..)| *known == grid) {
        // Bits may differ with the cosine of another C library.
        let is_right = outcome.iterations == *iterations && (outcome.mean / mean - 1.0).abs() < 1e-10;
        answer.check(is_right, || format!("known are {iterations} iterations, mean {mean:.12}"));
        return;
    }
    let plain = plain_outcome(run, grid);
    answer.check(*outcome == plain, || format!("the plain loop finds {plain}"));
}

/// The original's loop: all cells of one colour, then all of the other one, in one array.
fn plain_outcome(run: &AppRun, grid: Grid) -> SorOutcome {
    let (columns, pace) = (grid.columns, grid.pace());
    let mut cells: Vec<f64> = (0..grid.rows * columns).map(|at| grid.initial(at / columns, at % columns)).collect();
    let bar = run.progress(None, "iterations of the plain loop");
    for iteration in 1.. {
        let mut worst = 0.0;
        for colour in 0..2 {
            for row in 1..grid.rows - 1 {
                for at in (row * columns + 1 + ((row + colour) & 1)..(row + 1) * columns - 1).step_by(2) {
                    let mean = (cells[at - columns] + cells[at + columns] + cells[at - 1] + cells[at + 1]) / 4.0;
                    worst = f64::max(worst, (mean - cells[at]).abs());
                    cells[at] += pace.omega * (mean - cells[at]);
                }
            }
        }
        bar.inc(1);
        if worst <= pace.enough {
            bar.finish_and_clear();
            let rows = cells.chunks(columns).take(grid.rows - 1).skip(1);
            return SorOutcome::new(iteration, rows.map(|row| facts(row.iter().copied())).collect(), grid);
        }
    }
    unreachable!("iterations have no end of their own")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::borders::Borders;
    use crate::field::CellField;
    use crate::relaxation::relax;
    use weft_objects::Space;

    #[test]
    fn rows_one_after_the_other_are_the_plain_loop() {
        let run = AppRun::new(Space::alone()).expect("a space");
        for (rows, columns) in [(3, 3), (3, 20), (4, 5), (21, 40), (22, 41)] {
            let grid = Grid { rows, columns };
            let mut field = CellField::new(grid, 1..rows - 1);
            let borders = Borders::open(&AppRun::new(Space::alone()).expect("a space"), &field).expect("nobody else");
            let iterations = relax(&run, &mut field, &borders).expect("nobody else");
            assert_eq!(SorOutcome::new(iterations, row_facts(&field), grid), plain_outcome(&run, grid), "{grid:?}");
        }
    }
}

//! Red-black successive over-relaxation over shared objects: Laplace's equation on a grid whose borders are given.
//!
//! - `field`: the cells that a process has, and what a step does with a row of them. - `borders`: all communication.
//! - `relaxation`: the iterations. - `known`: what must come out.
//!
//! What holds: the result is the same bit for bit for any number of processes, and that of the plain loop.
//!
//! Test: `cargo test -p weft-app-sor`; whole programs: `cargo test -p weft-tests --test objects_apps`.

mod borders;
mod field;
mod known;
mod relaxation;

use borders::Borders;
use clap::{Parser, ValueEnum};
use field::{CellField, Grid};
use known::SorOutcome;
use std::path::PathBuf;
use std::process::ExitCode;
use weft_app_objects::{AppAnswer, AppFailure, AppRun, Reals, picture, run};

/// Laplace's equation on a grid by red-black successive over-relaxation.
#[derive(Parser)]
#[command(name = "sor")]
struct SorArguments {
    /// How much: S 482 x 80 (the original's default), P 480 x 1000 (the paper), L 964 x 4000
    #[arg(long, value_enum, default_value = "S", ignore_case = true)]
    class: SorClass,
    /// Rows, borders included, in the place of the class's
    #[arg(long, value_parser = clap::value_parser!(u32).range(3..=65536))]
    rows: Option<u32>,
    /// Columns, borders included, in the place of the class's
    #[arg(long, value_parser = clap::value_parser!(u32).range(3..=65536))]
    columns: Option<u32>,
    /// Writes the field at the end, as PNG
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "UPPER")]
enum SorClass {
    S,
    P,
    L,
}

impl SorArguments {
    fn grid(&self) -> Grid {
        let (rows, columns) = match self.class {
            SorClass::S => (482, 80),
            SorClass::P => (480, 1000),
            SorClass::L => (964, 4000),
        };
        let given = |number: Option<u32>, usual| number.map_or(usual, |number| number as usize);
        Grid { rows: given(self.rows, rows), columns: given(self.columns, columns) }
    }
}

fn main() -> ExitCode {
    run(work)
}

fn work(run: &AppRun, arguments: &SorArguments) -> Result<AppAnswer, AppFailure> {
    let grid = arguments.grid();
    if run.size as usize > grid.rows - 2 {
        let text = format!("{} processes: allowed are {}, one for each row", run.size, grid.rows - 2);
        return Err(AppFailure::Refused(text));
    }
    let own = run.share_of(run.me, grid.rows - 2);
    let mut field = CellField::new(grid, own.start + 1..own.end + 1);
    let borders = Borders::open(run, &field)?;
    let start = run.meet()?;
    let iterations = relaxation::relax(run, &mut field, &borders)?;
    let seconds = (run.meet()? - start).as_secs_f64();
    let mut answer = AppAnswer::new(format!("{} x {}", grid.rows, grid.columns), seconds);
    if let Some(parts) = run.gather("sums of rows", known::row_facts(&field))? {
        let outcome = SorOutcome::new(iterations, parts.concat(), grid);
        println!("sor: {outcome}");
        known::check(run, grid, &outcome, &mut answer);
    }
    if let Some(path) = &arguments.picture {
        let rows = (0..field.rows()).flat_map(|row| field.row(row + 1)).collect();
        if let Some(parts) = run.gather("rows of the picture", Reals(rows))? {
            let numbers: Vec<f64> = parts.into_iter().flat_map(|part| part.0).collect();
            picture::write(path, grid.columns, &numbers)?;
        }
    }
    Ok(answer)
}

//! A solver of skyline matrices over shared objects, one of the Cowichan problems: LU decomposition by Doolittle, where
//! each row and each column is kept from its first element that is not zero.
//!
//! - `skyline`: shapes, and the parts of a matrix that a process has.
//! - `made`: the matrix, by the original's generator.
//! - `dot`: the one sum. - `pivots`: all communication. - `decomposition`: the steps. - `known`: what must come out.
//!
//! What holds: each element is computed once, by one sum in a fixed order, so the solution is the same bit for bit for
//! any number of processes.
//!
//! Test: `cargo test -p weft-app-skyline`; whole programs: `cargo test -p weft-tests --test objects_apps`.

mod decomposition;
mod dot;
mod known;
mod made;
mod pivots;
mod skyline;

use clap::{Parser, ValueEnum};
use decomposition::solve;
use made::System;
use pivots::SharedPivots;
use skyline::SkylineShape;
use std::path::PathBuf;
use std::process::ExitCode;
use weft_app_objects::{AppAnswer, AppFailure, AppRun, picture, run};

/// Widest and highest a picture is, in dots.
const PICTURE: usize = 512;

/// Solves a skyline system of equations by LU decomposition.
#[derive(Parser)]
#[command(name = "skyline")]
struct SkylineArguments {
    /// How much: S 500, P 3000 (the paper), W 3500 (the original's page), L 8000 equations
    #[arg(long, value_enum, default_value = "S", ignore_case = true)]
    class: SkylineClass,
    /// Equations, in the place of the class's
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=30000))]
    equations: Option<u32>,
    /// How high a row or a column may reach, in percent of all that is before it
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=100))]
    fill: u32,
    /// Writes the skyline as PNG: how much work each element is
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "UPPER")]
enum SkylineClass {
    S,
    P,
    W,
    L,
}

impl SkylineArguments {
    fn equations(&self) -> usize {
        let usual = match self.class {
            SkylineClass::S => 500,
            SkylineClass::P => 3000,
            SkylineClass::W => 3500,
            SkylineClass::L => 8000,
        };
        self.equations.map_or(usual, |equations| equations as usize)
    }
}

fn main() -> ExitCode {
    run(work)
}

fn work(run: &AppRun, arguments: &SkylineArguments) -> Result<AppAnswer, AppFailure> {
    let count = arguments.equations();
    let system = System::new(count, arguments.fill, |index| skyline::owner(index, run.size) == run.me);
    let pivots = SharedPivots::open(run)?;
    let mut answer = AppAnswer::new(format!("{count} equations, fill {} %", arguments.fill), 0.0);
    let shape = system.shape.clone();
    let start = run.meet()?;
    let solved = solve(run, system, &pivots)?;
    answer.seconds = (run.meet()? - start).as_secs_f64();
    if let Some(solved) = solved {
        println!("skyline: {}", known::SkylineOutcome::new(&solved.solution));
        known::check(&System::new(count, arguments.fill, |_| true), &solved, &mut answer);
        if let Some(path) = &arguments.picture {
            let side = count.min(PICTURE);
            picture::write(path, side, &outline(&shape, side))?;
        }
    }
    Ok(answer)
}

/// How long the sum of each element is, or no number where there is none: `side` elements by `side` of the matrix.
fn outline(shape: &SkylineShape, side: usize) -> Vec<f64> {
    let at = |dot: usize| dot * shape.count() / side;
    let element = |row: usize, column: usize| {
        let (begin, first) = (shape.column_begin(column), shape.row_begin(row));
        let is_there = if row <= column { row >= begin } else { column >= first };
        if is_there { (row.min(column) - begin.max(first).min(row.min(column))) as f64 } else { f64::NAN }
    };
    (0..side * side).map(|dot| element(at(dot / side), at(dot % side))).collect()
}

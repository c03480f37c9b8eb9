//! End-game databases of awari over shared objects, by retrograde analysis: for each position with few stones, how many
//! more of them the player who moves can get than the opponent.
//!
//! - `board`: the game. - `level`: what a process knows of its positions. - `exchange`: all communication.
//! - `analysis`: the method. - `known`: what must come out.
//!
//! What holds: values do not depend on the order in which they are found, so they are the same for any number of
//! processes.
//!
//! Test: `cargo test -p weft-app-awari`; whole programs: `cargo test -p weft-tests --test objects_apps`.

mod analysis;
mod board;
mod exchange;
mod known;
mod level;

use board::{MOST_STONES, Numbering};
use clap::{Parser, ValueEnum};
use level::Deal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use weft_app_objects::{AppAnswer, AppFailure, AppRun, picture, run};

/// Dots of a field of the picture, each way.
const FIELD: usize = 16;

/// Finds the values of all awari positions with few stones.
#[derive(Parser)]
#[command(name = "awari")]
struct AwariArguments {
    /// How much: S up to 6 stones, P 10 (the paper), A 13 (the original's page), L 15
    #[arg(long, value_enum, default_value = "S", ignore_case = true)]
    class: AwariClass,
    /// Most stones, in the place of the class's
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=MOST_STONES as i64))]
    stones: Option<u32>,
    /// Compares with the plain method instead of known numbers, which takes much longer
    #[arg(long)]
    plain: bool,
    /// Writes how values are distributed, as PNG: a row for each number of stones
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "UPPER")]
enum AwariClass {
    S,
    P,
    A,
    L,
}

impl AwariArguments {
    fn stones(&self) -> usize {
        let usual = match self.class {
            AwariClass::S => 6,
            AwariClass::P => 10,
            AwariClass::A => 13,
            AwariClass::L => 15,
        };
        self.stones.map_or(usual, |stones| stones as usize)
    }
}

fn main() -> ExitCode {
    run(work)
}

fn work(run: &AppRun, arguments: &AwariArguments) -> Result<AppAnswer, AppFailure> {
    let (numbering, most) = (Numbering::new(), arguments.stones());
    let start = run.meet()?;
    let database = analysis::solve(run, &numbering, Deal { me: run.me, size: run.size }, most)?;
    let seconds = (run.meet()? - start).as_secs_f64();
    let mut answer = AppAnswer::new(format!("up to {most} stones"), seconds);
    let wrong = known::count_wrong(run, &numbering, &database)?;
    if let Some(wrong) = wrong {
        println!(
            "awari: {most} stones, {} positions: {}",
            database[most].len(),
            known::LevelOutcome::new(&database[most])
        );
        answer.check(wrong == 0, || format!("{wrong} values are not those of the best move"));
        known::check(run, &numbering, &database, arguments.plain, &mut answer);
        if let Some(path) = &arguments.picture {
            paint(path, &database)?;
        }
    }
    Ok(answer)
}

/// Rows are numbers of stones, columns values from the worst to the best one; frequent ones are hot.
fn paint(path: &Path, database: &level::Database) -> Result<(), AppFailure> {
    let most = database.len() - 1;
    let width = 2 * most + 1;
    let mut counts = vec![0_u32; width * most];
    for (row, values) in database.iter().skip(1).enumerate() {
        values.iter().for_each(|value| counts[row * width + (most as i64 + i64::from(*value)) as usize] += 1);
    }
    let share = |at: usize| f64::from(counts[at]) / database[at / width + 1].len() as f64;
    let heat = |at: usize| if counts[at] == 0 { f64::NAN } else { share(at).ln() };
    let dot = |dot: usize| heat(dot / (width * FIELD) / FIELD * width + dot % (width * FIELD) / FIELD);
    picture::write(path, width * FIELD, &(0..width * FIELD * most * FIELD).map(dot).collect::<Vec<_>>())
}

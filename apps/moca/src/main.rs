//! Ions and electrons that recombine in a liquid, by Monte Carlo, over shared objects: `weft run -n 4 moca`.
//!
//! - `physics`: the liquid. - `simulation`: clusters, one after the other. - `particles`, `forces`: who acts on whom.
//! - `random`: one sequence for all processes. - `rounds`: the shared object. - `check`: what is known of the result.
//!
//! What holds: all results are the same bit for bit for any number of processes.
//!
//! Deliberately not here: external fields, and the spins of those that recombine, which the original counts as well.
//!
//! Test: `cargo test -p weft-app-moca`.

mod check;
mod forces;
mod particles;
mod physics;
mod random;
mod rounds;
mod simulation;

use clap::{Parser, ValueEnum};
use random::GlobalRandom;
use rounds::{IonRounds, SharedIonRounds, rows, workers};
use simulation::{ClusterTally, IonSimulation};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use weft_app_objects::{AppAnswer, AppFailure, AppRun, Reals, picture, run};
use weft_objects::{ObjectPlacement, Strategy};

/// Ions and electrons that recombine in a liquid: clusters of them, one after the other.
///
/// The first cluster is compared with what one process finds, and single pairs with theory; the exit status is 1 if
/// they are wrong.
#[derive(Parser)]
#[command(name = "moca")]
struct MocaArguments {
    /// Particles of a cluster: S 34 (a track of the original's input), P 600 (the paper), L 4000
    #[arg(long, value_enum, default_value = "S", ignore_case = true)]
    class: IonClass,
    /// Particles, half of them ions, in the place of the class's
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(2..=65536))]
    particles: Option<u32>,
    /// Clusters, one after the other, in the place of the class's
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    clusters: Option<u32>,
    /// Writes how many pairs are left, against the logarithm of time, as PNG
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "UPPER")]
enum IonClass {
    S,
    P,
    L,
}

impl MocaArguments {
    fn simulation(&self) -> Result<IonSimulation, AppFailure> {
        let (usual, clusters) = match self.class {
            IonClass::S => (None, 100),
            IonClass::P => (Some(600), 4),
            IonClass::L => (Some(4000), 1),
        };
        let mut random = GlobalRandom::default();
        let ions = match self.particles.or(usual) {
            None => physics::TRACK.to_vec(),
            Some(count) if count % 2 == 0 => scattered(count as usize / 2, &mut random),
            Some(count) => return Err(AppFailure::Refused(format!("--particles {count}: allowed are even numbers"))),
        };
        Ok(IonSimulation::new(ions, None, self.clusters.unwrap_or(clusters), random))
    }
}

/// Ions in a ball, as dense as 300 of them in one of 10 nanometres.
fn scattered(count: usize, random: &mut GlobalRandom) -> Vec<[f64; 3]> {
    let radius = 1e-8 * (count as f64 / 300.0).cbrt();
    let ion = |_| {
        let distance = radius * random.next().cbrt();
        random.direction().map(|part| part * distance)
    };
    (0..count).map(ion).collect()
}

fn main() -> ExitCode {
    run(work)
}

fn work(run: &AppRun, arguments: &MocaArguments) -> Result<AppAnswer, AppFailure> {
    let initial = arguments.simulation()?;
    let pairs = initial.particles.ions.len();
    let shared = SharedIonRounds::share(&run.space, "rounds", IonRounds::new(initial.clone(), run.size))?;
    shared.place(Strategy::Fixed(ObjectPlacement::Replicated))?;
    let begin = run.meet()?;
    simulate(run, &shared)?;
    let tallies = shared.tallies()?;
    let seconds = (run.meet()? - begin).as_secs_f64();
    let ClusterTally { clusters, rounds, survivors, escaped, .. } = tallies.0;
    let share = escaped / (f64::from(clusters) * pairs as f64);
    let input = format!(
        "{clusters} x {} particles, {rounds} rounds, {survivors} pairs at the end, {share:.12} escape",
        2 * pairs
    );
    let mut answer = AppAnswer::new(input, seconds);
    if run.me == 0 {
        check::run(&mut answer, &initial, pairs, &tallies);
        if let Some(path) = &arguments.picture {
            draw(path, &tallies.0, pairs)?;
        }
    }
    Ok(answer)
}

/// All rounds, as far as this process takes part in them.
fn simulate(run: &AppRun, shared: &SharedIonRounds) -> Result<(), AppFailure> {
    let progress = run.progress(None, "clusters");
    let mut round = 0;
    loop {
        let view = shared.from(round)?;
        if view.is_over {
            break;
        }
        progress.set_position(u64::from(view.clusters));
        let count = view.particles.count();
        let workers = workers(count, run.size);
        if workers == 1 && run.me == 0 {
            let mut simulation = shared.simulation()?;
            simulation.run_until(|simulation| simulation.tally.clusters > view.clusters);
            shared.put_back(simulation)?;
        } else if run.me < workers {
            let rows = rows(count, workers, run.me);
            let found = forces::find(&view.particles, rows.clone());
            let fields = Reals(found.fields.as_flattened().to_vec());
            shared.tell(run.me, rows.start, fields, found.nearest, found.near)?;
        }
        round = view.round + 1;
    }
    progress.finish_and_clear();
    Ok(())
}

/// The part of pairs that are left, from 0 to 1 upwards, against the decades of time, with a line for each decade and
/// each tenth.
fn draw(path: &Path, tally: &ClusterTally, pairs: usize) -> Result<(), AppFailure> {
    const STEP: usize = 6;
    const HEIGHT: usize = 320;
    let width = STEP * tally.curve.len();
    let mut colours = vec![[255_u8; 3]; width * HEIGHT];
    for (at, colour) in colours.iter_mut().enumerate() {
        let (x, y) = (at % width, at / width);
        if x % (10 * STEP) == 0 || y % (HEIGHT / 10) == 0 {
            *colour = [225; 3];
        }
    }
    let all = f64::from(tally.clusters) * pairs as f64;
    let mut left = 1.0;
    let mut above = 0;
    for (point, gone) in tally.curve.iter().enumerate() {
        left -= *gone as f64 / all;
        let row = (((1.0 - left) * HEIGHT as f64) as usize).min(HEIGHT - 1);
        for x in point * STEP..(point + 1) * STEP {
            let rows = if x == point * STEP { above..=row } else { row..=row };
            rows.for_each(|y| colours[y * width + x] = [175, 45, 95]);
        }
        above = row;
    }
    picture::write_colours(path, width, &colours)
}

//! Bodies that attract each other, by the method of Barnes and Hut, over shared objects: `weft run -n 4 barnes`.
//!
//! - `plummer`: how they lie at the start. - `stars`: the shared object with all bodies. - `tree`, `force`: who pulls
//!   whom. - `check`: what is known of the result. - `vector`.
//!
//! What holds: a body's pull depends on the tree only, and the tree on the bodies only. So all results are the same
//! bit for bit for any number of processes.
//!
//! Deliberately not here: bodies of different masses, steps of different length, and quadrupoles.

mod check;
mod force;
mod plummer;
mod stars;
mod tree;
mod vector;

use crate::force::{Accuracy, Pull, Puller};
use crate::stars::{SharedStars, Star, Stars, packed, zone};
use crate::tree::Octree;
use crate::vector::{added, scaled, square};
use clap::{Parser, ValueEnum};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use weft_app_objects::{AppAnswer, AppFailure, AppRun, picture, run};
use weft_objects::{ObjectPlacement, Strategy};

/// What SPLASH takes.
const STEP: f64 = 0.025;
const ACCURACY: Accuracy = Accuracy { distance: 1.0, softening: 0.05 * 0.05 };

/// Bodies that attract each other: two clusters that fall into one another, by the method of Barnes and Hut.
///
/// Energies and forces are compared with known ones; the exit status is 1 if they are wrong.
#[derive(Parser)]
#[command(name = "barnes")]
struct BarnesArguments {
    /// How many bodies: S 1024, P 8192 (the paper), O 16384 (the original), L 65536
    #[arg(long, value_enum, default_value = "S", ignore_case = true)]
    class: BodyClass,
    /// Bodies in the place of the class's
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(2..=1 << 24))]
    bodies: Option<u32>,
    /// How many steps, each of 0.025 units of time
    #[arg(long, value_name = "NUMBER", default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    /// Writes where the bodies are at the end, as PNG
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "UPPER")]
enum BodyClass {
    S,
    P,
    O,
    L,
}

impl BarnesArguments {
    fn count(&self) -> usize {
        let usual = match self.class {
            BodyClass::S => 1024,
            BodyClass::P => 8192,
            BodyClass::O => 16384,
            BodyClass::L => 65536,
        };
        self.bodies.map_or(usual, |bodies| bodies as usize)
    }
}

fn main() -> ExitCode {
    run(work)
}

fn work(run: &AppRun, arguments: &BarnesArguments) -> Result<AppAnswer, AppFailure> {
    let count = arguments.count();
    let initial = plummer::clusters(count);
    let stars = SharedStars::share(&run.space, "bodies", Stars::new(initial.clone(), run.size))?;
    stars.place(Strategy::Fixed(ObjectPlacement::Replicated))?;
    let progress = run.progress(Some(u64::from(arguments.steps)), "steps");
    let mut first = None;
    let begin = run.meet()?;
    for step in 0..arguments.steps {
        let is_accounted = step == 0 || step + 1 == arguments.steps;
        advance(run, &stars, step, is_accounted)?;
        if step == 0 {
            first = Some(stars.accounted(1)?);
        }
        progress.inc(1);
    }
    let last = stars.accounted(arguments.steps)?;
    let seconds = (run.meet()? - begin).as_secs_f64();
    progress.finish_and_clear();
    let [kinetic, potential, _] = last;
    let input = format!("{count} bodies, {} steps, energy {kinetic} {potential}", arguments.steps);
    let mut answer = AppAnswer::new(input, seconds);
    if run.me == 0 {
        let first = first.expect("there is a first step");
        check::run(&mut answer, &initial, arguments.steps, [first, last]);
        if let Some(path) = &arguments.picture {
            draw(path, &stars.after(arguments.steps)?)?;
        }
    }
    Ok(answer)
}

/// One step of this process's bodies.
fn advance(run: &AppRun, stars: &SharedStars, step: u32, is_accounted: bool) -> Result<(), AppFailure> {
    let all = stars.after(step)?;
    let mass = 1.0 / all.len() as f64;
    let tree = Octree::new(&all, mass);
    let zone = zone(&tree.stars, run.me, run.size);
    let pulls = Puller::new(&tree, mass, ACCURACY).pulls(zone.clone());
    let mine = &tree.stars[zone.clone()];
    if is_accounted {
        let accounts = mine.iter().zip(&pulls).map(|(star, pull)| account(star, pull, step, mass));
        stars.account(zone.start, accounts.collect())?;
    }
    let moved = mine.iter().zip(&pulls).map(|(star, pull)| moved(star, pull, step));
    stars.advance(zone.start, packed(moved))?;
    Ok(())
}

/// A velocity at the start is half a step older than the place where it moves a body to; later it is a whole step.
fn half_steps(step: u32) -> f64 {
    if step == 0 { 0.0 } else { 0.5 * STEP }
}

/// The body a step later.
fn moved(star: &Star, pull: &Pull, step: u32) -> Star {
    let velocity = added(star.velocity, scaled(pull.acceleration, half_steps(step) + 0.5 * STEP));
    Star { position: added(star.position, scaled(velocity, STEP)), velocity, cost: pull.terms }
}

/// Kinetic and potential energy, and terms.
fn account(star: &Star, pull: &Pull, step: u32, mass: f64) -> [f64; 3] {
    let velocity = added(star.velocity, scaled(pull.acceleration, half_steps(step)));
    [0.5 * mass * square(velocity), 0.5 * mass * pull.potential, f64::from(pull.terms)]
}

/// The bodies as one sees them from above, brighter where there are more.
fn draw(path: &Path, stars: &[Star]) -> Result<(), AppFailure> {
    const SIZE: usize = 480;
    const WIDTH: f64 = 10.0;
    let mut seen = vec![0.0_f64; SIZE * SIZE];
    let pixel = |at: f64| Some((at / WIDTH + 0.5) * SIZE as f64).filter(|at| (0.0..SIZE as f64).contains(at));
    for star in stars {
        if let (Some(x), Some(y)) = (pixel(star.position[0]), pixel(-star.position[1])) {
            seen[y as usize * SIZE + x as usize] += 1.0;
        }
    }
    let bright: Vec<f64> = seen.iter().map(|count| count.ln_1p()).collect();
    picture::write(path, SIZE, &bright)
}

//! What the applications over shared objects have in common.
//!
//! A program hands its work to [`run`], which opens the job's space, reads the command line, and says at the end in one
//! line how it went: `sor: 482 x 80, 2 processes, 0.0123 s: right`. Each run checks its own result, and the exit status
//! is 1 if it is wrong, 2 for wrong use.
//!
//! - `run`: the life of a program. - `report`: what it answers. - [`Reals`]: rows of numbers in operations.
//! - [`picture`]: numbers as colours.
//!
//! Deliberately not here: anything that one program needs alone, and sums over processes. Who adds numbers gathers them
//! and adds in one fixed order, so that the result does not depend on the number of processes.
//!
//! Test: `cargo test -p weft-app-objects`; whole programs: `cargo test -p weft-tests --test objects_apps`.

pub mod picture;
mod reals;
mod report;
mod run;

pub use clap;
pub use reals::Reals;
pub use report::{AppAnswer, AppFailure};
pub use run::{AppRun, run};

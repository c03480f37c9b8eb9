//! What the ranks of this host are doing, for who looks on: `weft ps`, the daemon, and launchers whose time is over.
//!
//! The ranks do not help: their status pages stand in the job's shared memory, which is found through `/proc` and read
//! like a file. What stands there is a claim of a program that may be broken, and is treated as one.
//!
//! Not here: what is shown of it, and to whom.
//!
//! Test: `cargo test -p weft-ranks`; with real jobs: the tests of `weft ps`.
#![forbid(unsafe_code)]

mod doing;
mod find;
mod process;
mod read;

pub use doing::{Doing, duration, list, seconds};
pub use find::{FoundJob, Whose, segments};
pub use process::Cpu;
pub use read::{BlockedRank, RankStage, SeenJob, SeenRank};

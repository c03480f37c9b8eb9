//! What the ranks of this host are doing, for who looks on: `weft ps` and the daemon.
//!
//! The ranks do not help: their status pages stand in the job's shared memory, which is found through `/proc` and read
//! like a file. What stands there is a claim of a program that may be broken, and is treated as one.
//!
//! Not here: what is shown of it, and to whom.
//!
//! Test: `cargo test -p weft-ranks`; with real jobs: the tests of `weft ps`.
#![forbid(unsafe_code)]

mod find;
mod process;
mod read;

pub use find::{Found, Whose, segments};
pub use process::Cpu;
pub use read::{Blocked, Job, Rank, Stage};

//! Who runs where: the job's description, placement, the state of a job and PMI.
//!
//! Everything here is pure: bytes and events go in, bytes and decisions come out. There is no system call, no clock,
//! no thread and no environment here; `weft-agent` owns those and drives these machines.
//!
//! - [`job`] says what is to be started: programs, ranks, environment.
//! - [`hosts`] gives each rank its host, [`placement`] its cores there; [`allocation`] reads what a batch system has
//!   given.
//! - [`frame`] is what launcher and agents of a job on several hosts say to each other.
//! - [`state`] follows the ranks of a running job, decides when the others must be ended and what the exit code is.
//! - [`usage`] is what a rank has used, [`failure`] where it has failed, as they are told.
//! - [`job_log`] is what ranks have written lately.
//! - [`pmi`] speaks PMI-1 (protocol 1.1): the server half for the launcher, which knows PMI-2 too, the client half for
//!   a rank.
//! - [`pmix`] brings together what the PMIx servers of a job's hosts gather.
//!
//! Invariants: a rank is numbered `0..size` in the order of the programs; an input from a rank is a claim and never
//! panics this code; every answer of the PMI server is one line of at most [`pmi::LINE_MAX`] bytes, or one frame.
//!
//! Test: `cargo test -p weft-cluster`.
#![forbid(unsafe_code)]

pub mod allocation;
pub mod failure;
pub mod frame;
pub mod hosts;
pub mod job;
pub mod job_log;
pub mod placement;
pub mod pmi;
pub mod pmix;
pub mod spawn;
pub mod state;
pub mod usage;

//! Starts the processes of a job on this host and looks after them until nothing of the job is left.
//!
//! Two processes share the work, and each survives the death of the other:
//!
//! - the *launcher* (the process that calls [`run`]) serves PMI, merges output, feeds standard input, forwards signals
//!   and keeps the time, all in one poll loop ([`supervisor`]);
//! - the *keeper*, forked from it, is the parent of all ranks ([`keeper`]). It starts them, collects them and ends
//!   what they leave behind. It is a child subreaper in a process group of its own with every signal blocked, so that
//!   it outlives whatever happens to the launcher; it learns of the launcher's death by the end of their socket.
//!
//! Beside them, and with nothing in common: [`rendezvous`], where connected processes of the host find each other.
//!
//! Invariants:
//! - when `run` returns, or after either process was killed, no process of the job lives: also not one that a rank
//!   started in another session;
//! - nothing is ever made in a file system, except what the user asks for with [`Output::Files`];
//! - no flag of a descriptor that is shared with other programs (standard input and output) is changed;
//! - memory for output is bounded; who writes faster than we can pass on waits.
//!
//! Not here: decisions about ranks, exit codes and placement (weft-cluster), more than this one host.
//!
//! [`run`] forks, so the process that calls it must have one thread only.
//!
//! Test: `cargo test -p weft-agent` (the parts); `cargo test -p weft-tests --test launcher` (whole jobs, killed ones too).
#![deny(unsafe_code)]

mod cores;
mod descriptors;
mod elf;
mod keeper;
mod link;
mod output;
mod preload;
mod program;
pub mod rendezvous;
mod signals;
mod stdin;
mod supervisor;
#[allow(unsafe_code)]
mod sys;

pub use preload::{Obstacle, Why, obstacle};
pub use program::{ProgramError, find};

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;
use weft_cluster::job::{JobError, Program, StdinTo};
use weft_cluster::placement::{Bind, PlacementError};

/// The variable that tells a rank its job.
pub const JOB_VARIABLE: &str = "WEFT_JOB";

/// Names one job on this host: the launcher's process id and a random number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobId(String);

impl JobId {
    /// A name that no other job has.
    pub fn new() -> Self {
        use std::hash::{BuildHasher, RandomState};
        let random = RandomState::new().hash_one(std::process::id());
        Self(format!("{}-{random:016x}", std::process::id()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for JobId {
    fn default() -> Self {
        Self::new()
    }
}

/// Where the output of the ranks goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// To the launcher's own output, line by line; with `tag`, each line begins with its rank.
    Merged { tag: bool },
    /// To files `rank-N.out` and `rank-N.err` in this directory, which is made when missing.
    Files(PathBuf),
}

/// A job to be run.
#[derive(Debug)]
pub struct Job {
    /// How messages begin: the command that the user typed, such as `weft run`.
    pub front: String,
    pub id: JobId,
    pub programs: Vec<Program>,
    pub bind: Bind,
    pub stdin: StdinTo,
    pub output: Output,
    /// How long the job may take.
    pub timeout: Option<Duration>,
    /// Descriptors that every rank inherits, each with the variable that tells its number.
    pub inherit: Vec<(String, OwnedFd)>,
}

/// A job that could not be started. Nothing has run.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error(transparent)]
    Job(#[from] JobError),
    #[error(transparent)]
    Placement(#[from] PlacementError),
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error("{ranks} ranks need {needed} descriptors, but this process may open {limit} (ulimit -Hn)")]
    TooFewDescriptors { ranks: usize, needed: u64, limit: u64 },
    #[error("output directory '{}' cannot be used: {error}", .directory.display())]
    Output { directory: PathBuf, error: std::io::Error },
    #[error("{what}: {error}")]
    System { what: &'static str, error: std::io::Error },
}

impl LaunchError {
    /// What the launcher exits with, by the custom of shells: 127 for a program that is not there, 126 for one that
    /// cannot be executed, 1 for all else.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Program(error) => error.exit_code(),
            _ => 1,
        }
    }

    fn system(what: &'static str) -> impl Fn(std::io::Error) -> Self {
        move |error| Self::System { what, error }
    }
}

/// Runs `job` to its end and answers the exit code; failures of ranks have then been reported on standard error.
pub fn run(job: Job) -> Result<i32, LaunchError> {
    supervisor::run(job)
}

/// The name of this host, as reports give it.
pub fn host_name() -> String {
    sys::host_name()
}

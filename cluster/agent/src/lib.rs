//! Starts the processes of a job, on this host or on several, and looks after them until nothing of the job is left.
//!
//! On one host two processes share the work, and each survives the death of the other:
//!
//! - the *launcher* (the process that calls [`run`]) serves PMI, merges output, feeds standard input, forwards signals
//!   and keeps the time, all in one poll loop ([`supervisor`]);
//! - the *keeper*, forked from it, is the parent of all ranks ([`keeper`]). It starts them, collects them and ends
//!   what they leave behind. It is a child subreaper in a process group of its own with every signal blocked, so that
//!   it outlives whatever happens to the launcher; it learns of the launcher's death by the end of their socket.
//!
//! On several hosts there is one more on each of them: the *agent* ([`agent`]), started through a launch command. It
//! has a keeper of its own, and passes on what the keeper reports and the ranks say; the launcher serves PMI, merges
//! output and so on as ever ([`gather`] brings the agents together, [`relay`] is both ends of the link to one). The
//! launch commands themselves are children of a keeper of the launcher, so that none of them is left either.
//!
//! Beside them, and with nothing in common: [`rendezvous`], where connected processes of the host find each other, and
//! [`beside`], which runs one program and adds up what it and all that it starts have counted. [`told`] is where
//! launchers tell a command above them what their jobs have used.
//!
//! Invariants:
//! - when `run` returns, or after either process was killed, no process of the job lives: also not one that a rank
//!   started in another session;
//! - nothing is made in a file system, except what the user asks for: [`RankOutput`], [`LaunchHosts::stage`], folders
//!   of cores;
//! - no flag of a descriptor that is shared with other programs (standard input and output) is changed;
//! - memory for output is bounded; who writes faster than we can pass on waits.
//!
//! Not here: decisions about ranks, exit codes and placement, and what the bytes between launcher and agent mean
//! (weft-cluster).
//!
//! [`run`] forks, so the process that calls it must have one thread only.
//!
//! Test: `cargo test -p weft-agent` (the parts); `cargo test -p weft-tests --test launcher` (whole jobs, killed ones
//! too).
#![deny(unsafe_code)]

mod agent;
pub mod beside;
mod branch;
mod checksum;
mod cores;
mod descriptors;
mod elf;
mod faults;
mod gather;
mod keeper;
mod libraries;
mod link;
mod log;
mod members;
mod memory;
mod network;
mod output;
mod pmix;
mod preload;
mod program;
mod relay;
pub mod rendezvous;
mod signals;
mod stage;
mod stdin;
mod supervisor;
#[allow(unsafe_code)]
mod sys;
pub mod told;
pub mod tuning;

pub use agent::serve;
pub use libraries::{Abi, VARIABLE as LIBRARY_VARIABLE, has_library, library_path, mpi_among, needed};
pub use log::JobLog;
pub use network::HostLanes;
pub use preload::{Obstacle, Why, obstacle};
pub use program::{ProgramError, find};

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use weft_cluster::hosts::Launch;
use weft_cluster::job::{JobError, Program, StdinTo};
use weft_cluster::placement::{Bind, PlacementError};
use weft_cluster::spawn::SignalWish;
use weft_cluster::state::{Exit, signal_name};
use weft_records::JobRecord;

/// The variable that tells a rank its job.
pub const JOB_VARIABLE: &str = "WEFT_JOB";

/// Names one job on this host: the launcher's process id and a random number. All users may see that; a second number
/// only the job's processes know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobId {
    name: String,
    secret: u64,
}

impl JobId {
    /// A name that no other job has.
    pub fn new() -> Self {
        use std::hash::{BuildHasher, RandomState};
        let random = RandomState::new().hash_one(std::process::id());
        Self { name: format!("{}-{random:016x}", std::process::id()), secret: weft_kernel::random() }
    }

    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// What only the job's processes may know.
    fn secret(&self) -> u64 {
        self.secret
    }

    /// One that another host has made.
    fn named(name: String, secret: u64) -> Self {
        Self { name, secret }
    }
}

impl Default for JobId {
    fn default() -> Self {
        Self::new()
    }
}

/// A line for the user, in one piece: the launchers of spawned jobs write to the same place.
pub(crate) fn say(front: &str, line: impl std::fmt::Display) {
    // Nobody is left to be told where it cannot be written.
    let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{front}: {line}\n").as_bytes());
}

/// Where the output of the ranks goes.
#[derive(Debug, Default)]
pub struct RankOutput {
    /// Each line that goes by the launcher begins with its rank.
    pub tag: bool,
    /// Standard output and standard error.
    pub streams: [Destination; 2],
    /// Where what goes by the launcher is kept for a while.
    pub log: Option<JobLog>,
}

/// Where one stream of the ranks goes.
#[derive(Debug, Default)]
pub enum Destination {
    /// To the launcher's own, line by line.
    #[default]
    Merged,
    /// The same into a file of the launcher's.
    MergedInto(File),
    /// Each rank writes a file of its own on its host. In the path `%r` is the rank, `%0r` the rank with as many digits
    /// as the last one has, and `%%` a percent sign; its directory is made when missing.
    Each(PathBuf),
}

impl RankOutput {
    /// All to the launcher's own output.
    pub fn merged(tag: bool) -> Self {
        Self { tag, ..Self::default() }
    }

    /// To files `rank-N.out` and `rank-N.err` in `directory`.
    pub fn files_in(directory: &Path) -> Self {
        let directory = OsString::from_vec(descriptors::escaped(directory));
        let each = |name: &str| Destination::Each(Path::new(&directory).join(name));
        Self { streams: [each("rank-%0r.out"), each("rank-%0r.err")], ..Self::default() }
    }
}

/// How long a job may take, and what that is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeLimit {
    pub time: Duration,
    pub words: String,
}

impl From<Duration> for TimeLimit {
    fn from(time: Duration) -> Self {
        Self { time, words: format!("the time limit of {} s", time.as_secs_f64()) }
    }
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
    pub output: RankOutput,
    /// How long the job may take.
    pub timeout: Option<TimeLimit>,
    /// A rank that is lost does not end the others.
    pub keep_going: bool,
    /// Descriptors that every rank inherits, each with the variable that tells its number.
    pub inherit: Vec<(String, OwnedFd)>,
    /// The hosts it runs on, when it is not this one alone.
    pub hosts: Option<LaunchHosts>,
    /// On this host alone: ranks get what they need to reach each other over the network all the same.
    pub network: bool,
    /// The partition that it was given, for its record.
    pub partition: Option<String>,
    /// The directory where cores of ranks are gathered, each on its host.
    pub cores: Option<PathBuf>,
    /// Who has had it started, and is told of its ranks.
    pub starter: Option<Box<dyn Starter>>,
}

/// Who has had a job started, as its launcher hears and tells them.
pub trait Starter: std::fmt::Debug {
    /// Can be read when they say something, or are gone.
    fn descriptor(&self) -> RawFd;

    /// A rank has ended.
    fn tell(&mut self, rank: usize, exit: Exit);

    /// What they say next.
    fn poll(&mut self) -> StarterSays;
}

/// What those say who have had a job started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StarterSays {
    Wants(SignalWish),
    Nothing,
    Gone,
}

/// A job that is over.
#[derive(Debug)]
pub struct Finished {
    /// What its launcher is to exit with.
    pub code: i32,
    pub record: JobRecord,
}

/// The hosts of a job.
#[derive(Clone, Debug)]
pub struct LaunchHosts {
    pub launch: Launch,
    /// Names of the hosts that get ranks.
    pub names: Vec<String>,
    /// The host of each rank, as a number in `names`.
    pub places: Vec<usize>,
    /// How long a host may take to answer.
    pub patience: Option<Duration>,
    /// Hosts where this program is missing, or another build, get a copy.
    pub stage: bool,
    /// From so many hosts on, agents start agents.
    pub tree: Option<usize>,
}

impl LaunchHosts {
    /// For the places that [`weft_cluster::hosts::spread`] gives on `hosts`; who gets no rank is left out.
    pub fn new(
        hosts: &[weft_cluster::hosts::SlotHost],
        spread: &[usize],
        launch: Launch,
        patience: Option<Duration>,
        stage: bool,
        tree: Option<usize>,
    ) -> Self {
        let mut used = spread.to_vec();
        used.sort_unstable();
        used.dedup();
        let names = used.iter().map(|host| hosts[*host].name.clone()).collect();
        let places = spread.iter().filter_map(|host| used.binary_search(host).ok()).collect();
        Self { launch, names, places, patience, stage, tree }
    }
}

/// Tells a rank the descriptor of the memory that the ranks of its host share; one of [`Job::inherit`].
pub const SEGMENT_VARIABLE: &str = "WEFT_SEGMENT";

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
    #[error("output cannot be written to '{}': {error}", .path.display())]
    Output { path: PathBuf, error: std::io::Error },
    #[error("working directory '{}' cannot be used: {error}", .directory.display())]
    Directory { directory: PathBuf, error: std::io::Error },
    #[error("the memory that the ranks share: {0}")]
    Segment(String),
    #[error("{0}")]
    Map(String),
    #[error(
        "no PMIx server for the ranks: {0}; Debian has libpmix.so.2 in libpmix2, {library} names another file, and \
         WEFT_PMIX=off starts them without", library = weft_pmix::LIBRARY_VARIABLE
    )]
    Pmix(String),
    #[error("host '{host}': {reason}")]
    Host { host: String, reason: String },
    #[error("{hosts}: {reason}")]
    Refused { hosts: String, code: i32, reason: String },
    #[error("ended by {} before the job began", signal_name(*.signal))]
    Interrupted { signal: i32 },
    #[error("{what}: {error}")]
    System { what: &'static str, error: std::io::Error },
}

impl LaunchError {
    /// What the launcher exits with, by the custom of shells: 127 for a program that is not there, 126 for one that
    /// cannot be executed, 1 for all else.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Program(error) => error.exit_code(),
            Self::Refused { code, .. } => *code,
            Self::Interrupted { signal } => 128 + signal,
            _ => 1,
        }
    }

    fn system(what: &'static str) -> impl Fn(std::io::Error) -> Self {
        move |error| Self::System { what, error }
    }
}

/// To be called first by a launcher that another launcher has started: the signals which that one had blocked, as it
/// takes them elsewhere, come here again.
pub fn take_signals_back() {
    // It cannot fail with a set that is one.
    let _ = sys::SignalSet::of(&[]).block_only();
}

/// Runs `job` to its end and answers what is known of it then; failures of ranks have been reported on standard error.
pub fn run(job: Job) -> Result<Finished, LaunchError> {
    supervisor::run(job)
}

/// What tells this program on this host from others.
#[derive(Clone, Debug)]
pub struct About {
    pub version: &'static str,
    /// Of the executable: two that differ here are different builds.
    pub checksum: u64,
    /// Of the host's interfaces, without loopback.
    pub addresses: Vec<std::net::IpAddr>,
}

/// # Errors
/// The executable cannot be read.
pub fn about() -> std::io::Result<About> {
    let checksum = checksum::of_this_program()?;
    Ok(About { version: env!("CARGO_PKG_VERSION"), checksum, addresses: sys::interface_addresses() })
}

/// A checksum of this program and the libraries that are installed with it, in hexadecimal digits.
///
/// # Errors
/// One of them cannot be read.
pub fn checksum_of_kit() -> std::io::Result<String> {
    stage::Kit::here()?.checksum()
}

/// The name of this host, as reports give it.
pub fn host_name() -> String {
    sys::host_name()
}

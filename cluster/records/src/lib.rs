//! What is known of a job when it is over: who ran what where, how it ended, and what each rank used.
//!
//! The launcher makes one [`JobRecord`] for each job, whatever the number of hosts. In a file it is one line of JSON
//! ([`lines`]), for people a row of a table or a page ([`show`]), and many of them have a sum ([`total`]).
//!
//! Everything here is pure. Programs of users load none of it: what launcher and agents say to each other is in
//! weft-cluster, which has no serde.
//!
//! Not here: how it is measured (weft-agent), and where it is kept.
//!
//! Invariants: a field that is added later has a default, so that records of today are read tomorrow; what is not known
//! of a rank is absent, not 0.
//!
//! Test: `cargo test -p weft-records`.
#![forbid(unsafe_code)]

pub mod lines;
pub mod show;
pub mod total;

use serde::{Deserialize, Serialize};

/// A job that is over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobRecord {
    /// The name that its launcher gave it.
    pub job: String,
    /// Who ran it.
    pub user: String,
    /// What ran, in the order of the ranks.
    pub programs: Vec<ProgramRecord>,
    /// The partition that it was given, if it was given one.
    #[serde(default)]
    pub partition: Option<String>,
    /// When it began: seconds since 1970.
    pub started: u64,
    /// How long it took.
    pub wall_seconds: f64,
    /// The names of its hosts.
    pub hosts: Vec<String>,
    /// By number.
    pub ranks: Vec<RankRecord>,
    /// What processes used that had left the ranks which started them.
    #[serde(default)]
    pub others: Spent,
    /// What the launcher exited with.
    pub exit_code: i32,
    /// The first failure, in words.
    #[serde(default)]
    pub cause: Option<String>,
    /// The first rank that a signal of its own doing ended.
    #[serde(default)]
    pub fault: Option<FaultRecord>,
    /// Of all that the ranks used, what the system counts for the process of the launcher as well, and so for whoever
    /// waits for it: what its own children used, in microseconds.
    #[serde(default)]
    pub below_launcher_us: [u64; 2],
}

/// One of the programs of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramRecord {
    /// As it was given; what is very long is cut.
    pub program: String,
    pub arguments: Vec<String>,
    pub ranks: usize,
}

/// One rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankRecord {
    pub rank: u32,
    /// Where in [`JobRecord::hosts`].
    pub host: u32,
    pub exit: Ending,
    /// Whether it took its leave (`MPI_Finalize`); absent where it never began (`MPI_Init`).
    #[serde(default)]
    pub finalised: Option<bool>,
    #[serde(default)]
    pub spent: Option<Spent>,
    /// What it sent; absent where it shows no status page.
    #[serde(default)]
    pub sent: Option<DeviceBytes>,
    /// The same as messages, whatever devices and interfaces made of them. What processes of one host do on memory
    /// that they share is none.
    #[serde(default)]
    pub messages: Option<SentMessages>,
}

/// How a rank ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    Code(i32),
    Signal(i32),
    /// Killed by the kernel, or perhaps so.
    OutOfMemory,
    NotStarted,
    /// Its host was lost before it told.
    #[default]
    Unknown,
}

/// What a process used, with all that it had started and waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    pub wall_us: u64,
    pub user_us: u64,
    pub system_us: u64,
    /// The largest that one process of it was in memory.
    pub peak_bytes: u64,
}

/// Bytes that a rank sent, by the device that carried them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceBytes {
    pub shm: u64,
    pub tcp: u64,
    pub udp: u64,
    /// Copied straight out of a sender's memory.
    #[serde(default)]
    pub copied: u64,
}

/// Messages that a rank sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentMessages {
    pub count: u64,
    pub bytes: u64,
}

/// Where a program failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultRecord {
    pub rank: u32,
    pub signal: i32,
    /// The function, where it is known.
    #[serde(default)]
    pub function: Option<String>,
    /// The thread that failed, innermost frame first, a line each.
    #[serde(default)]
    pub backtrace: Vec<String>,
    /// Where the core lies, on its host.
    #[serde(default)]
    pub core: Option<String>,
}

/// Bytes of a program's arguments that a record keeps: a command line may have megabytes.
pub const ARGUMENTS_MAX: usize = 4096;
/// The same for its name: no path is longer.
pub const PROGRAM_MAX: usize = 4096;

impl ProgramRecord {
    /// Keeps as much of the name and as many of the arguments as there is room for.
    pub fn new(program: &str, arguments: impl Iterator<Item = String>, ranks: usize) -> Self {
        let mut room = ARGUMENTS_MAX;
        let fits = |word: &String| {
            let length = word.len() + 1;
            let fits = length <= room;
            room = room.saturating_sub(length);
            fits
        };
        let program = program[..program.floor_char_boundary(PROGRAM_MAX)].to_owned();
        Self { program, arguments: arguments.take_while(fits).collect(), ranks }
    }
}

impl Spent {
    /// With what another process of the same rank used. The time that passed is the longer one of both.
    pub fn add(&mut self, other: Self) {
        self.wall_us = self.wall_us.max(other.wall_us);
        self.user_us = self.user_us.saturating_add(other.user_us);
        self.system_us = self.system_us.saturating_add(other.system_us);
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
    }
}

impl DeviceBytes {
    /// With what another rank, or another interface of the same, sent.
    pub fn add(&mut self, other: Self) {
        for (sum, more) in [
            (&mut self.shm, other.shm),
            (&mut self.tcp, other.tcp),
            (&mut self.udp, other.udp),
            (&mut self.copied, other.copied),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}

impl JobRecord {
    /// The name of the host of a rank.
    pub fn host_of(&self, rank: &RankRecord) -> &str {
        self.hosts.get(rank.host as usize).map_or("?", String::as_str)
    }

    /// What all ranks used.
    pub fn spent(&self) -> Spent {
        let mut sum = self.others;
        self.ranks.iter().filter_map(|rank| rank.spent).for_each(|spent| sum.add(spent));
        sum
    }

    /// The messages of all ranks; nothing where none of them told.
    pub fn messages(&self) -> Option<SentMessages> {
        let told = self.ranks.iter().filter_map(|rank| rank.messages);
        told.reduce(|a, b| SentMessages {
            count: a.count.saturating_add(b.count),
            bytes: a.bytes.saturating_add(b.bytes),
        })
    }

    /// What all ranks sent; nothing where none of them told.
    pub fn sent(&self) -> Option<DeviceBytes> {
        let mut told = self.ranks.iter().filter_map(|rank| rank.sent);
        let mut sum = told.next()?;
        told.for_each(|sent| sum.add(sent));
        Some(sum)
    }
}

#[cfg(test)]
mod tests;

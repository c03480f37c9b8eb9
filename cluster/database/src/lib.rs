//! The configuration database of a cluster: its members, and the partitions that jobs run on.
//!
//! It is a file that people write, in TOML:
//!
//! ```toml
//! name = "lab"
//! version = 3
//! default = "fast"                  # the partition of a job that names none; else the first
//! launch = "ssh {host}"             # how a host is reached; else WEFT_LAUNCH, else ssh
//!
//! [[member]]
//! name = "node1"
//! slots = 4                         # how many ranks it takes
//!
//! [[partition]]
//! name = "fast"
//! members = ["node1"]               # else all members, in their order
//! device = "shm,xdp,udp,tcp"        # the order of devices, where a job says none
//! ranks = 16                        # the most that a job may have
//! ```
//!
//! Partitions may overlap. A file without partitions has one of all members, which is named as the cluster.
//!
//! Everything here is pure: text goes in, and a [`Cluster`] or [`Mistake`]s come out. All mistakes of a file are told at
//! once, each with its line and what is allowed. A file that has any is not used, so nothing of it is half applied.
//!
//! Test: `cargo test -p weft-database`.
#![forbid(unsafe_code)]

mod read;

pub use read::{Mistake, read};
use weft_cluster::hosts::{Host, Launch};

/// A cluster as its file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    pub name: String,
    /// Counts the changes of the file: of two the higher one is newer.
    pub version: u64,
    /// How hosts are reached, where the user says nothing.
    pub launch: Option<Launch>,
    pub members: Vec<Host>,
    /// The default one first.
    pub partitions: Vec<Partition>,
}

/// Members that jobs run on together, and what holds for these jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    pub name: String,
    /// Members with their slots, in the order in which they are filled.
    pub hosts: Vec<Host>,
    /// The order of devices for a job that says none, as `WEFT_DEVICE` has it.
    pub device: Option<String>,
    /// The most ranks of a job.
    pub ranks: Option<usize>,
}

impl Cluster {
    /// The partition of this name; without one, the default.
    ///
    /// # Errors
    /// There is none: one line that says which there are.
    pub fn partition(&self, name: Option<&str>) -> Result<&Partition, String> {
        let Some(name) = name else { return Ok(&self.partitions[0]) };
        self.partitions.iter().find(|partition| partition.name == name).ok_or_else(|| {
            let all: Vec<&str> = self.partitions.iter().map(|partition| partition.name.as_str()).collect();
            format!("'{name}' is no partition of cluster '{}', which has {}", self.name, all.join(", "))
        })
    }
}

impl Partition {
    pub fn slots(&self) -> usize {
        self.hosts.iter().map(|host| host.slots).sum()
    }

    /// How many ranks a job may have.
    pub fn most_ranks(&self) -> usize {
        self.ranks.map_or(self.slots(), |most| most.min(self.slots()))
    }
}

/// The file of a new cluster: these members, and one partition of them all.
pub fn write_new(name: &str, members: &[Host], launch: Option<&Launch>) -> String {
    use std::fmt::Write as _;
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let mut text = format!("name = {}\nversion = 1\n", quoted(name));
    if let Some(launch) = launch {
        let _ = writeln!(text, "launch = {}", quoted(&launch.to_string()));
    }
    for Host { name, slots } in members {
        let _ = write!(text, "\n[[member]]\nname = {}\nslots = {slots}\n", quoted(name));
    }
    let names: Vec<String> = members.iter().map(|member| quoted(&member.name)).collect();
    let _ = write!(text, "\n[[partition]]\nname = \"all\"\nmembers = [{}]\n", names.join(", "));
    text
}

/// The same text with another version.
pub fn with_version(text: &str, version: u64) -> String {
    let is_version = |line: &str| line.split('=').next().is_some_and(|key| key.trim() == "version");
    let top = text.lines().take_while(|line| !line.trim_start().starts_with('['));
    match top.clone().position(is_version) {
        Some(at) => {
            let lines = text.lines().enumerate();
            lines
                .map(|(n, line)| if n == at { format!("version = {version}\n") } else { format!("{line}\n") })
                .collect()
        }
        None => format!("version = {version}\n{text}"),
    }
}

#[cfg(test)]
mod tests;

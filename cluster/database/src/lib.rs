//! The configuration database of a cluster: its members, and the partitions that jobs run on.
//!
//! It is a file that people write, in TOML. What it may say, `docs/guide/cluster.md` shows; what it says is a
//! [`Cluster`]:
//!
//! ```toml
//! name = "lab"
//! version = 3
//! servers = ["node1"]               # the members that order jobs
//!
//! [[member]]
//! name = "node1"
//! slots = 4                         # how many ranks it takes
//!
//! [[partition]]
//! name = "fast"
//! members = ["node1"]               # else all members, in their order
//! ```
//!
//! A cluster can also be TXT records of the domain name system: [`records`] makes them and reads them, [`zone`] writes
//! a whole zone. Partitions may overlap. A file without partitions has one of all members, which is named as the
//! cluster.
//!
//! Everything here is pure: text goes in, and a [`Cluster`] or [`Mistake`]s come out. All mistakes of a file are told
//! at once, each with its line and what is allowed. A file that has any is not used, so nothing of it is half applied.
//!
//! Deliberately not here: where files are (the command `weft` knows), who is a user and in which groups (the system
//! knows), and how the members are now (their daemons know).
//!
//! Test: `cargo test -p weft-database`.
#![forbid(unsafe_code)]

mod entries;
mod read;
pub mod records;
mod reservation;
mod time;
mod write;
pub mod zone;

pub use entries::Mistake;
pub use read::read;
pub use reservation::{Reservation, read_moment, show_moment};
use std::net::IpAddr;
use std::time::Duration;
pub use time::{read_time, show_time};
use weft_cluster::hosts::{Launch, SlotHost};
pub use write::{with_reservation, with_version, without_reservations, write, write_new};

/// Most members of a cluster.
pub const MEMBERS_MAX: usize = 16384;
/// Most partitions of a cluster.
pub const PARTITIONS_MAX: usize = 256;
/// Most members that order jobs.
pub const SERVERS_MAX: usize = 8;
/// Most reservations of a cluster.
pub const RESERVATIONS_MAX: usize = 256;
/// How long a turn of jobs lasts that take turns, where a file does not say it.
pub const SLICE_MS: usize = 100;
/// What a file may say of it: a shorter one is spent on cold caches, and a longer one is seen by who waits for output.
pub const SLICES_MS: std::ops::RangeInclusive<usize> = 10..=10_000;
/// The TCP and UDP port of the daemons, where a file says none.
pub const PORT: u16 = 7337;
/// Priorities, as those of `nice` with the sign changed: what is higher gets more.
pub const PRIORITIES: std::ops::RangeInclusive<i32> = -19..=20;

/// A cluster as its file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    pub name: String,
    /// Counts the changes of the file: of two the higher one is newer.
    pub version: u64,
    /// How hosts are reached, where the user says nothing.
    pub launch: Option<Launch>,
    /// The members that order jobs, the first one before the others; at least one.
    pub servers: Vec<String>,
    /// The TCP and UDP port of the daemons.
    pub port: u16,
    /// How long the turn of a job lasts where jobs take turns ([`SchedulingPolicy::Gang`]).
    pub slice_ms: usize,
    /// Not empty, and no name is there twice.
    pub members: Vec<Member>,
    /// The default one first.
    pub partitions: Vec<Partition>,
    /// No name is there twice.
    pub reservations: Vec<Reservation>,
}

/// A host of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    /// How many ranks it takes. With 0 it is drained by hand: nothing is placed there.
    pub slots: usize,
    /// Where it is reached, the best first. Without any, its name is resolved.
    pub addresses: Vec<IpAddr>,
    /// How many cores it has, where the file says it.
    pub cores: Option<usize>,
    pub features: Vec<String>,
}

/// Members that jobs run on together, and what holds for these jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    pub name: String,
    /// Members in the order in which they are filled, each with as many slots as it has for this partition. Those with
    /// 0 slots are here, too.
    pub hosts: Vec<SlotHost>,
    /// What each of its members has.
    pub features: Vec<String>,
    /// Who may use it by name. Without these and without groups, everybody.
    pub users: Option<Vec<String>>,
    /// Who may use it by one of their groups.
    pub groups: Option<Vec<String>>,
    pub limits: PartitionLimits,
    /// The order of devices for a job that says none, as `WEFT_DEVICE` has it.
    pub device: Option<String>,
    /// The priority of a job that says none.
    pub priority: i32,
    /// How processes share processors with others.
    pub policy: SchedulingPolicy,
}

/// What jobs of a partition may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionLimits {
    /// The most ranks of a job.
    pub ranks: Option<usize>,
    /// The longest time that a job may declare.
    pub time: Option<Duration>,
    /// The most processes of this partition on one host.
    pub processes: Option<usize>,
    /// The highest priority that a job may ask for; not lower than the one of jobs that ask for none.
    pub highest: i32,
    /// Whether a host is of one user at a time.
    pub exclusive: bool,
}

/// How the kernel schedules the processes of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SchedulingPolicy {
    /// As all others (`SCHED_OTHER`).
    #[default]
    Other,
    /// Before all others, until they wait (`SCHED_FIFO`).
    Fifo,
    /// In turns: in its turn a job runs before all others, on all its hosts at the same time.
    Gang,
}

impl SchedulingPolicy {
    pub const ALL: [Self; 3] = [Self::Other, Self::Fifo, Self::Gang];

    /// As the file has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Fifo => "fifo",
            Self::Gang => "gang",
        }
    }
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

    /// The member of this name.
    pub fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }

    /// All members as hosts with slots.
    pub fn hosts(&self) -> Vec<SlotHost> {
        self.members.iter().map(Member::host).collect()
    }
}

impl Member {
    /// A member of which no more is known than this.
    pub fn new(host: SlotHost) -> Self {
        let SlotHost { name, slots } = host;
        Self { name, slots, addresses: Vec::new(), cores: None, features: Vec::new() }
    }

    pub fn host(&self) -> SlotHost {
        SlotHost { name: self.name.clone(), slots: self.slots }
    }
}

impl Partition {
    /// One of these hosts, without limits and for everybody.
    pub fn new(name: String, hosts: Vec<SlotHost>) -> Self {
        let limits = PartitionLimits { ranks: None, time: None, processes: None, highest: 0, exclusive: false };
        let policy = SchedulingPolicy::default();
        Self { name, hosts, features: Vec::new(), users: None, groups: None, limits, device: None, priority: 0, policy }
    }

    pub fn slots(&self) -> usize {
        self.hosts.iter().map(|host| host.slots).sum()
    }

    /// How many ranks a job may have.
    pub fn most_ranks(&self) -> usize {
        self.limits.ranks.map_or(self.slots(), |most| most.min(self.slots()))
    }

    /// Those of its hosts where something can be placed.
    pub fn open_hosts(&self) -> Vec<SlotHost> {
        self.hosts.iter().filter(|host| host.slots > 0).cloned().collect()
    }

    /// Whether a user with these groups may use it.
    pub fn admits(&self, user: &str, groups: &[impl AsRef<str>]) -> bool {
        let lists = |list: &Option<Vec<String>>, name: &str| list.iter().flatten().any(|listed| listed == name);
        let for_all = self.users.is_none() && self.groups.is_none();
        for_all || lists(&self.users, user) || groups.iter().any(|group| lists(&self.groups, group.as_ref()))
    }
}

#[cfg(test)]
mod tests;

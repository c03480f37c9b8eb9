//! A cluster as it is at one moment, for those who look at it: `weft ps --cluster`, `weft top`, the page.

use crate::{JobName, RegisteredKind};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterView {
    pub cluster: String,
    /// Of the database.
    pub version: u64,
    /// When this was seen, in seconds since 1970.
    pub time: u64,
    /// The member that orders jobs now.
    pub server: Option<String>,
    pub members: Vec<MemberView>,
    pub partitions: Vec<PartitionView>,
    /// In the order in which they are served.
    pub queue: Vec<QueuedView>,
    pub jobs: Vec<JobView>,
    /// What has registered and is no job.
    #[serde(default)]
    pub processes: Vec<ProcessView>,
    /// Those that are not over.
    #[serde(default)]
    pub reservations: Vec<ReservationView>,
    /// Bytes since the jobs that now run began, where what each rank does was asked for.
    pub traffic: Vec<Flow>,
}

/// Whether a member is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemberStanding {
    Alive,
    /// It is silent: nothing new is placed there.
    Suspect,
    Dead,
    /// It has not been heard of yet.
    #[default]
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemberView {
    pub name: String,
    pub standing: MemberStanding,
    /// How long it has been so, in seconds.
    pub since: u64,
    /// What it takes now; 0 is drained.
    pub slots: usize,
    /// What it takes by the database.
    pub usual_slots: usize,
    /// Slots of jobs.
    pub used: usize,
    /// What it has said last, if anything.
    pub load: Option<LoadView>,
    /// What is wrong there, if something is.
    pub trouble: Option<String>,
}

/// What a daemon says of its host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadView {
    pub cores: usize,
    /// Processes that run or could, averaged over a minute.
    pub load: f64,
    /// The share of the last ten seconds in which somebody waited for a processor, in percent, where the kernel says
    /// it.
    pub pressure: Option<f64>,
    pub memory_bytes: u64,
    pub free_bytes: u64,
    /// The version of Weft, and that of the database.
    pub weft: String,
    pub version: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PartitionView {
    pub name: String,
    pub members: Vec<String>,
    pub slots: usize,
    pub used: usize,
    /// How long a job may take there, where that is bounded.
    #[serde(default)]
    pub seconds: Option<u64>,
}

/// Slots that are kept for users.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReservationView {
    pub name: String,
    pub partition: String,
    /// Members with the slots on each.
    pub hosts: Vec<(String, usize)>,
    pub users: Vec<String>,
    /// Seconds since 1970.
    pub from: u64,
    pub until: u64,
}

/// A job that waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueuedView {
    pub job: JobName,
    pub user: String,
    pub partition: String,
    pub ranks: usize,
    pub program: String,
    /// Seconds since 1970.
    pub since: u64,
    pub reason: String,
}

/// A job that runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobView {
    pub job: JobName,
    #[serde(default)]
    pub kind: RegisteredKind,
    /// The process that has registered it, on the member that its name begins with.
    #[serde(default)]
    pub pid: i32,
    pub user: String,
    /// None for a job that was started beside all partitions.
    pub partition: Option<String>,
    pub program: String,
    pub arguments: Vec<String>,
    pub size: usize,
    /// Members with the ranks on each.
    pub hosts: Vec<(String, usize)>,
    /// Seconds since 1970.
    pub since: u64,
    /// When it is ended at the latest, in seconds since 1970, where it or its partition says so.
    #[serde(default)]
    pub until: Option<u64>,
    pub priority: i32,
    /// Its launcher's name of it, by which `weft ps` calls it on its hosts; empty where that is not known.
    #[serde(default)]
    pub id: String,
    /// What each rank does, where that was asked for.
    pub ranks: Vec<RankView>,
}

/// A process that is no job and lives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessView {
    /// By which it is sent signals, as jobs are.
    pub name: JobName,
    pub kind: RegisteredKind,
    pub member: String,
    pub pid: i32,
    pub user: String,
    pub program: String,
    pub arguments: Vec<String>,
    /// Seconds since 1970.
    pub since: u64,
}

impl ProcessView {
    /// What is told of it, where it is no job.
    pub fn of(told: &JobView) -> Option<Self> {
        let (member, _) = told.job.parts().filter(|_| told.kind != RegisteredKind::Job)?;
        Some(Self {
            name: told.job.clone(),
            kind: told.kind,
            member: member.to_owned(),
            pid: told.pid,
            user: told.user.clone(),
            program: told.program.clone(),
            arguments: told.arguments.clone(),
            since: told.since,
        })
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankView {
    pub rank: u32,
    pub host: String,
    pub pid: u32,
    /// What it waits for, in words; none while it computes.
    pub blocked: Option<String>,
    /// How long that has lasted.
    pub seconds: f64,
    /// Bytes that have left its host.
    #[serde(default)]
    pub sent: u64,
}

/// What one member has sent to another. Ranks count what they send, not to whom: of a job on more than two members it
/// is counted as sent to all others alike.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    pub from: String,
    pub to: String,
    pub bytes: u64,
}

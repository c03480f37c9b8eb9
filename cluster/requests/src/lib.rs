//! What the daemons of a cluster (`weftd`) are asked, what they answer, and how the command `weft` asks them.
//!
//! A client connects to the daemon of its host by a socket without a name in a file system ([`client`]). It writes
//! [`Demand`]s and reads [`ClusterReply`]s, each a line of JSON; the first demand is [`Demand::Begin`]. Who asks is
//! what the kernel says of the other end of the socket, never what a line says. A daemon that cannot answer itself asks
//! another one in the name of the client, by the same two types.
//!
//! Not here: how daemons find, know and trust each other (`weftd`), and what a cluster is (`weft-database`).
//!
//! Test: `cargo test -p weft-requests`.
#![forbid(unsafe_code)]

pub mod client;
mod log;
#[cfg(feature = "made")]
pub mod made;
mod view;

pub use log::LogPart;
pub use view::{
    ClusterView, Flow, JobView, LoadView, MemberStanding, MemberView, PartitionView, ProcessView, QueuedView, RankView,
    ReservationView,
};

use serde::{Deserialize, Serialize};
use weft_records::{JobRecord, ProgramRecord};

/// Of what is said here. A daemon answers only clients of its own, and says which that is.
pub const VERSION: u32 = 3;
/// The longest line.
pub const MOST_LINE_BYTES: usize = 16 << 20;
/// Bytes of a launcher's name of its job.
const MOST_ID_BYTES: usize = 64;

/// A job of a cluster: the member on which its launcher runs, and a number that this member gives once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobName(String);

impl JobName {
    pub fn new(member: &str, number: u64) -> Self {
        Self(format!("{member}.{number}"))
    }

    /// The member that has its launcher, and its number there. `None` for what is no name of a job.
    pub fn parts(&self) -> Option<(&str, u64)> {
        let (member, number) = self.0.rsplit_once('.')?;
        Some((member, number.parse().ok()?)).filter(|(member, _)| !member.is_empty())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for JobName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for JobName {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        let name = Self(given.to_owned());
        if name.parts().is_some() {
            return Ok(name);
        }
        Err(format!("'{given}' is no job: a job is MEMBER.NUMBER, as weft ps --cluster shows it"))
    }
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Demand {
    /// Comes first: the version of what is said here, and that of Weft for messages.
    Begin { version: u32, weft: String },
    /// Room for a job on a partition. Answered by [`ClusterReply::Waiting`] any number of times, then
    /// [`ClusterReply::Placed`].
    Place(Placing),
    /// What needs no room has begun, a job or not, and is to be seen. Answered by [`ClusterReply::Registered`].
    Register(Description),
    /// How to reach a host of a job, once. Answered by [`ClusterReply::Pass`].
    Enter { job: JobName, host: String },
    /// A job has ended, and this is known of it.
    Finish { job: JobName, record: Option<Box<JobRecord>> },
    /// Everything there is to see; with what each rank is doing if that is asked for.
    Look { ranks: bool },
    /// A signal for the launcher of a job.
    Signal { job: JobName, signal: i32 },
    /// What the ranks of a job have written lately, from this position on. Answered by [`ClusterReply::Log`].
    Log { job: JobName, from: u64 },
    /// Slots that a member has from now on: 0 drains it, and none are those of the database.
    Drain { member: String, slots: Option<usize> },
    /// Records of jobs that have ended, the newest first: of those that this host has started, or that any has.
    Finished { most: usize, everywhere: bool },
    /// Where its page is. Answered by [`ClusterReply::Page`].
    Page,
    /// The database that it uses, where its file is broken. Answered by [`ClusterReply::Database`].
    Database,
    /// Whether this is the key of its cluster. Answered by [`ClusterReply::Done`] if it is.
    HasKey { key: String },
    /// The daemon of this host ends. Jobs go on.
    Stop,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ClusterReply {
    /// To [`Demand::Begin`].
    Welcome {
        cluster: String,
        member: String,
        weft: String,
    },
    /// The job waits: so many are before it, for this reason.
    Waiting {
        before: usize,
        reason: String,
    },
    Placed(Grant),
    Registered {
        job: JobName,
    },
    Pass(Pass),
    View(Box<ClusterView>),
    Records(Vec<JobRecord>),
    Log(LogPart),
    /// Where its file is, and the text that is used.
    Database {
        file: std::path::PathBuf,
        text: String,
    },
    /// What a browser is given.
    Page(String),
    Done,
    /// The same to [`Demand::Finish`], where somebody else has ended the job: who, or why.
    Ended(String),
    /// Why not, in one line.
    Refused(String),
}

/// What a job needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Placing {
    /// The default one without a name.
    pub partition: Option<String>,
    /// As many as the partition has slots, if it is not said.
    pub ranks: Option<usize>,
    /// How ranks are spread, as `weft run --map` has it.
    pub map: String,
    /// What it is called, for those who look.
    pub about: Description,
    pub priority: Option<i32>,
    /// Whether it waits where there is no room.
    pub wait: bool,
    /// How long it takes at most: shorter ones may go before it where that delays nobody.
    pub seconds: Option<u64>,
}

/// What has registered with the daemon of its host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RegisteredKind {
    /// A job, of which a record is kept.
    #[default]
    Job,
    /// A program of `weft sock`, which is seen while it lives, as the next kind is.
    Sockets,
    /// The daemon of a virtual machine of PVM, on each of its hosts.
    Pvm,
}

impl std::fmt::Display for RegisteredKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Job => "job",
            Self::Sockets => "sockets",
            Self::Pvm => "pvm",
        })
    }
}

/// A job in words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// The launcher's name of it, `WEFT_JOB` of its ranks.
    pub id: String,
    pub program: String,
    pub arguments: Vec<String>,
    pub ranks: usize,
    #[serde(default)]
    pub kind: RegisteredKind,
    /// When it was asked for, in seconds since 1970.
    pub since: u64,
}

impl Description {
    /// As all may see it: no longer than they can take, without letters that move a cursor, and without ranks where it
    /// is no job.
    pub fn bounded(self) -> Self {
        let plain = |text: &str| text.replace(|letter: char| letter.is_control(), "?");
        let arguments = self.arguments.iter().map(|word| plain(word));
        let ProgramRecord { program, arguments, .. } = ProgramRecord::new(&plain(&self.program), arguments, 0);
        let (id, ranks) = match self.kind {
            RegisteredKind::Job => (plain(&self.id[..self.id.floor_char_boundary(MOST_ID_BYTES)]), self.ranks),
            RegisteredKind::Sockets | RegisteredKind::Pvm => (String::new(), 0),
        };
        Self { id, program, arguments, ranks, ..self }
    }
}

/// Room for a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grant {
    pub job: JobName,
    pub partition: String,
    /// Members with the slots that the job has there, in the order of its ranks.
    pub hosts: Vec<(String, usize)>,
    /// The order of devices where the user says none.
    pub device: Option<String>,
    pub priority: i32,
    /// How long it may take.
    pub seconds: Option<u64>,
}

/// The way into a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pass {
    /// Where its daemon listens.
    pub addresses: Vec<std::net::SocketAddr>,
    /// What is shown there, in hexadecimal digits, and what proves that it is ours.
    pub ticket: String,
    pub secret: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_job_has_a_member_and_a_number() {
        let name = JobName::new("node1.lab", 17);
        assert_eq!(name.to_string().parse(), Ok(name.clone()));
        assert_eq!(name.parts(), Some(("node1.lab", 17)));
        for wrong in ["", "17", ".17", "node1.", "node1.x"] {
            assert!(wrong.parse::<JobName>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_description_has_bounds_and_moves_no_cursor() {
        let about = |kind| Description {
            id: "i".repeat(1000),
            program: "\x1b[2J".repeat(1 << 20),
            arguments: vec!["a\nb".to_owned(), "x".repeat(5000)],
            ranks: 3,
            kind,
            since: 1,
        };
        let job = about(RegisteredKind::Job).bounded();
        assert_eq!((job.id.len(), job.ranks, job.since), (MOST_ID_BYTES, 3, 1));
        assert!(job.program.len() == weft_records::PROGRAM_MAX && job.program.starts_with("?[2J?"));
        assert_eq!(job.arguments, ["a?b"]);
        let program = about(RegisteredKind::Sockets).bounded();
        assert_eq!((program.id.as_str(), program.ranks), ("", 0));
        assert_eq!(job.clone().bounded(), job);
    }

    #[test]
    fn what_is_said_is_read_as_it_was_meant() {
        let demand = Demand::Place(Placing { ranks: Some(4), wait: true, ..Placing::default() });
        let line = serde_json::to_string(&demand).expect("JSON");
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<Demand>(&line).expect("read"), demand);
    }
}

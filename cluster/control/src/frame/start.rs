//! The two long frames: who an agent is, and what it is to start.

use super::FrameError;
use super::bytes::{Coded, FrameBytes, structures};
use crate::job::{Program, StdinTo};
use crate::placement::Bind;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

/// Who an agent is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentHello {
    /// Of the package.
    pub version: String,
    /// Of the executable: two that differ here are different builds.
    pub checksum: u64,
    pub pid: u32,
    /// The name that the host gives itself.
    pub host: String,
    /// Of its interfaces, loopback left out.
    pub addresses: Vec<IpAddr>,
}

/// What the agent of one host is to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostStart {
    pub job: String,
    /// What only its processes know.
    pub secret: u64,
    /// How messages begin.
    pub front: String,
    /// Ranks of the whole job.
    pub size: u32,
    /// The ranks of this host, in the order of its members.
    pub ranks: Vec<u32>,
    /// The names of all hosts, and the number of each rank's.
    pub hosts: Vec<String>,
    pub places: Vec<u32>,
    /// Of the whole job: its ranks are numbered through them.
    pub programs: Vec<Program>,
    /// The launcher's own.
    pub environment: Vec<(OsString, OsString)>,
    pub directory: PathBuf,
    pub bind: Bind,
    pub stdin: StdinTo,
    /// Standard output and standard error, where each rank writes a file of its own: the pattern of its path.
    pub output: [Option<PathBuf>; 2],
    /// The directory where cores of ranks are gathered.
    pub cores: Option<PathBuf>,
}

structures! {
    AgentHello { version, checksum, pid, host, addresses }
    HostStart {
        job, secret, front, size, ranks, hosts, places, programs, environment, directory, bind, stdin, output, cores
    }
    Program { program, arguments, ranks, environment, directory }
}

/// A start is read as a whole, and looked at then.
impl Coded for Box<HostStart> {
    fn put(&self, to: &mut Vec<u8>) {
        HostStart::put(self, to);
    }

    fn take(from: &mut FrameBytes) -> Result<Self, FrameError> {
        let start = HostStart::take(from)?;
        let rising = start.ranks.is_sorted_by(|rank, next| rank < next);
        let sound = rising && start.ranks.last().is_some_and(|last| *last < start.size);
        let sound = sound && crate::job::size(&start.programs) == Ok(start.size as usize);
        let sound = sound && start.places.len() == start.size as usize;
        let sound = sound && start.places.iter().all(|host| (*host as usize) < start.hosts.len());
        if sound { Ok(Box::new(start)) } else { Err(from.wrong()) }
    }
}

impl Coded for Bind {
    fn put(&self, to: &mut Vec<u8>) {
        to.push(match self {
            Self::Auto => 0,
            Self::Core => 1,
            Self::None => 2,
        });
    }

    fn take(from: &mut FrameBytes) -> Result<Self, FrameError> {
        Ok(match from.byte()? {
            0 => Self::Auto,
            1 => Self::Core,
            2 => Self::None,
            _ => return Err(from.wrong()),
        })
    }
}

impl Coded for StdinTo {
    fn put(&self, to: &mut Vec<u8>) {
        let (who, rank) = match self {
            Self::Rank(rank) => (0, *rank),
            Self::All => (1, 0),
            Self::Nobody => (2, 0),
        };
        to.push(who);
        rank.put(to);
    }

    fn take(from: &mut FrameBytes) -> Result<Self, FrameError> {
        Ok(match (from.byte()?, usize::take(from)?) {
            (0, rank) => Self::Rank(rank),
            (1, 0) => Self::All,
            (2, 0) => Self::Nobody,
            _ => return Err(from.wrong()),
        })
    }
}

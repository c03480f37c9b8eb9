//! The two long frames: who an agent is, and what it is to start.

use super::bytes::{Bytes, Put};
use super::{FrameError, kind};
use crate::job::{Program, StdinTo};
use crate::placement::Bind;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

/// Who an agent is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
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
pub struct Start {
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

impl Hello {
    pub(super) fn encode(&self, to: &mut Vec<u8>) {
        to.text(&self.version);
        to.extend(self.checksum.to_le_bytes());
        to.word(self.pid);
        to.text(&self.host);
        to.list(&self.addresses, |to, address| match address {
            IpAddr::V4(address) => to.blob(&address.octets()),
            IpAddr::V6(address) => to.blob(&address.octets()),
        });
    }

    pub(super) fn decode(from: &mut Bytes) -> Result<Self, FrameError> {
        Ok(Self {
            version: from.text()?,
            checksum: u64::from_le_bytes(from.array()?),
            pid: from.word()?,
            host: from.text()?,
            addresses: from.list(address)?,
        })
    }
}

fn address(from: &mut Bytes) -> Result<IpAddr, FrameError> {
    let bytes = from.blob()?;
    let v4 = <[u8; 4]>::try_from(bytes).map(|bytes| Ipv4Addr::from(bytes).into());
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(|bytes| Ipv6Addr::from(bytes).into())).map_err(|_| from.wrong())
}

impl Start {
    pub(super) fn encode(&self, to: &mut Vec<u8>) {
        to.text(&self.job);
        to.longs([self.secret]);
        to.text(&self.front);
        to.word(self.size);
        to.list(&self.ranks, |to, rank| to.word(*rank));
        to.list(&self.hosts, |to, name| to.text(name));
        to.list(&self.places, |to, host| to.word(*host));
        to.list(&self.programs, put_program);
        to.list(&self.environment, |to, (name, value)| {
            to.os(name);
            to.os(value);
        });
        to.os(self.directory.as_os_str());
        to.push(match self.bind {
            Bind::Auto => 0,
            Bind::Core => 1,
            Bind::None => 2,
        });
        let (who, rank) = match self.stdin {
            StdinTo::Rank(rank) => (0, rank as u32),
            StdinTo::All => (1, 0),
            StdinTo::Nobody => (2, 0),
        };
        to.push(who);
        to.word(rank);
        self.output.iter().for_each(|pattern| put_path(to, pattern.as_ref()));
        put_path(to, self.cores.as_ref());
    }

    pub(super) fn decode(from: &mut Bytes) -> Result<Self, FrameError> {
        let start = Self {
            job: from.text()?,
            secret: from.longs::<1>()?[0],
            front: from.text()?,
            size: from.word()?,
            ranks: from.list(Bytes::word)?,
            hosts: from.list(|from| from.text())?,
            places: from.list(Bytes::word)?,
            programs: from.list(program)?,
            environment: from.list(|from| Ok((from.os()?, from.os()?)))?,
            directory: from.os()?.into(),
            bind: match from.byte()? {
                0 => Bind::Auto,
                1 => Bind::Core,
                2 => Bind::None,
                _ => return Err(from.wrong()),
            },
            stdin: match (from.byte()?, from.word()?) {
                (0, rank) => StdinTo::Rank(rank as usize),
                (1, 0) => StdinTo::All,
                (2, 0) => StdinTo::Nobody,
                _ => return Err(from.wrong()),
            },
            output: [path(from)?, path(from)?],
            cores: path(from)?,
        };
        let rising = start.ranks.is_sorted_by(|rank, next| rank < next);
        let sound = rising && start.ranks.last().is_some_and(|last| *last < start.size);
        let sound = sound && crate::job::size(&start.programs) == Ok(start.size as usize);
        let sound = sound && start.places.len() == start.size as usize;
        let sound = sound && start.places.iter().all(|host| (*host as usize) < start.hosts.len());
        if sound { Ok(start) } else { Err(FrameError::Value(kind::START)) }
    }
}

fn put_program(to: &mut Vec<u8>, program: &Program) {
    to.text(&program.program);
    to.list(&program.arguments, |to, argument| to.os(argument));
    to.word(program.ranks as u32);
    to.list(&program.environment, |to, (name, value)| {
        to.text(name);
        to.text(value);
    });
    put_path(to, program.directory.as_ref());
}

fn program(from: &mut Bytes) -> Result<Program, FrameError> {
    Ok(Program {
        program: from.text()?,
        arguments: from.list(Bytes::os)?,
        ranks: from.word()? as usize,
        environment: from.list(|from| Ok((from.text()?, from.text()?)))?,
        directory: path(from)?,
    })
}

fn put_path(to: &mut Vec<u8>, path: Option<&PathBuf>) {
    to.push(path.is_some().into());
    if let Some(path) = path {
        to.os(path.as_os_str());
    }
}

fn path(from: &mut Bytes) -> Result<Option<PathBuf>, FrameError> {
    from.option(|from| Ok(from.os()?.into()))
}

//! From a segment's bytes to what its job does.

use crate::find::FoundJob;
use crate::process::{Cpu, uptime_ns};
use serde::Serialize;
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use weft_wire::interface::InterfaceName;
use weft_wire::segment::{Geometry, Heading, MemberState, PAGE_BYTES, mailbox};
use weft_wire::status::{COUNTER_NAMES, StatusPage};

/// One job, as far as it is on this host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeenJob {
    /// The launcher's name for it, or the first process's id where there was no launcher.
    pub name: String,
    /// When its first rank joined: nanoseconds of the real-time clock, 0 when none has.
    pub started_ns: u64,
    /// Why its ranks cannot be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// The virtual machine of PVM whose tasks its ranks are: its name, empty where it is the one without a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    pub ranks: Vec<SeenRank>,
}

/// How far a rank has come with its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RankStage {
    Absent,
    Joined,
    Left,
}

/// One rank.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeenRank {
    pub rank: u32,
    pub stage: RankStage,
    pub pid: u32,
    pub program: String,
    pub cpu: Cpu,
    /// Which devices lead to whom.
    pub devices: String,
    /// In the words of its interfaces: a task's identifier, open ports.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub known_as: String,
    /// The call by which it has left.
    #[serde(skip)]
    pub left_by: &'static str,
    pub blocked: Option<BlockedRank>,
    /// By name; empty where the rank shows no status page.
    pub counters: BTreeMap<&'static str, u64>,
    #[serde(skip)]
    pub started_ns: u64,
}

/// What a rank is blocked in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlockedRank {
    pub call: String,
    /// A rank of the job; `None`: any or none.
    pub peer: Option<u32>,
    /// `None`: any or none.
    pub tag: Option<i32>,
    /// `None` where the call concerns no single communicator.
    pub communicator: Option<String>,
    pub seconds: f64,
}

/// How often a page is read while its owner changes it.
const ATTEMPTS: usize = 8;

impl SeenJob {
    pub fn read(found: &FoundJob) -> Self {
        let nameless = || found.holders.first().map_or_else(String::new, |pid| format!("pid-{pid}"));
        let mut job = Self { name: nameless(), started_ns: 0, unreadable: None, machine: None, ranks: Vec::new() };
        let mut head = [0; 64];
        let heading = found.file.read_exact_at(&mut head, 0).map(|()| Heading::parse(&head));
        let geometry = match heading {
            Ok(Heading::Segment(geometry)) => geometry,
            Ok(Heading::OtherVersion(version)) => {
                job.unreadable = Some(format!("its shared memory has version {version}: another version of Weft"));
                return job;
            }
            _ => {
                job.unreadable = Some("its shared memory is not understood".into());
                return job;
            }
        };
        let sources = InterfaceName::ALL.map(|interface| PageSource { found, geometry, interface });
        // Of a process with several interfaces the first one counts that has not left.
        let source = |member: u32| {
            let of = |wanted: &[MemberState]| sources.iter().find(|source| wanted.contains(&source.state(member)));
            of(&[MemberState::Joined]).or_else(|| of(&[MemberState::Left])).unwrap_or(&sources[0])
        };
        let pages: Vec<Option<StatusPage>> = (0..geometry.members).map(|member| source(member).page(member)).collect();
        if let Some(name) = pages.iter().flatten().map(|page| &page.job).find(|name| !name.is_empty()) {
            job.name.clone_from(name);
        }
        job.started_ns = pages.iter().flatten().map(|page| page.started_ns).min().unwrap_or(0);
        job.ranks = (0..geometry.members).zip(pages).map(|(member, page)| source(member).rank(member, page)).collect();
        for (member, rank) in (0..geometry.members).zip(&mut job.ranks) {
            let pages = || sources[1..].iter().filter_map(|source| Some((source, source.page(member)?)));
            if rank.blocked.is_none() {
                rank.blocked = pages().find_map(|(source, page)| page.blocked.map(|page| source.blocked(page)));
            }
            let names = pages().map(|(_, page)| page.known_as).filter(|name| !name.is_empty());
            rank.known_as = names.collect::<Vec<_>>().join("; ");
        }
        let machines: Option<Vec<&str>> = job.ranks.iter().map(|rank| Some(rank.task()?.1)).collect();
        // A job with a rank that is no task is shown as what it was started as.
        job.machine = machines.and_then(|all| all.first().map(|machine| (*machine).to_owned()));
        job
    }
}

struct PageSource<'a> {
    found: &'a FoundJob,
    geometry: Geometry,
    /// Whose section this is of.
    interface: InterfaceName,
}

impl PageSource<'_> {
    fn start(&self) -> usize {
        self.geometry.section(self.interface)
    }

    fn word(&self, member: u32, offset: usize) -> u32 {
        let mut word = [0; 4];
        let at = self.start() + self.geometry.mailbox(member) + offset;
        self.found.file.read_exact_at(&mut word, at as u64).map_or(0, |()| u32::from_le_bytes(word))
    }

    fn state(&self, member: u32) -> MemberState {
        MemberState::from_word(self.word(member, mailbox::STATE)).unwrap_or(MemberState::Absent)
    }

    /// The page between two changes of its owner, if it stands still long enough.
    fn page(&self, member: u32) -> Option<StatusPage> {
        let at = (self.start() + self.geometry.status(member)) as u64;
        let read = || {
            let mut bytes = [0; PAGE_BYTES];
            self.found.file.read_exact_at(&mut bytes, at).ok()?;
            StatusPage::parse(&bytes)
        };
        let mut page = read()?;
        for _ in 0..ATTEMPTS {
            let again = read()?;
            if page.is_settled && again.is_settled && page.blocked == again.blocked {
                return Some(again);
            }
            page = again;
        }
        Some(StatusPage { blocked: None, ..page })
    }

    /// Contexts are communicators in MPI alone.
    fn blocked(&self, page: weft_wire::status::Blocked) -> BlockedRank {
        let blocked = BlockedRank::from(page);
        if blocked.call.starts_with("MPI_") { blocked } else { BlockedRank { communicator: None, ..blocked } }
    }

    fn rank(&self, member: u32, page: Option<StatusPage>) -> SeenRank {
        let stage = match self.state(member) {
            MemberState::Joined => RankStage::Joined,
            MemberState::Left => RankStage::Left,
            MemberState::Absent => RankStage::Absent,
        };
        let pid = self.word(member, mailbox::PID);
        let cpu = match self.found.is_own {
            // Its number may be that of another namespace.
            true => Some(Cpu::of(pid)).filter(|cpu| *cpu != Cpu::Gone).unwrap_or(Cpu::Sleeping),
            false if self.found.is_held_by(pid) => Cpu::of(pid),
            false => Cpu::Gone,
        };
        let mut rank = SeenRank {
            rank: member,
            stage,
            pid,
            program: String::new(),
            devices: String::new(),
            cpu,
            known_as: String::new(),
            left_by: self.interface.calls().end,
            blocked: None,
            counters: BTreeMap::new(),
            started_ns: 0,
        };
        if let Some(page) = page {
            // On several hosts the members here are some of the ranks.
            rank.rank = page.rank;
            rank.counters = COUNTER_NAMES.into_iter().zip(page.counters).collect();
            rank.blocked = page.blocked.map(|blocked| self.blocked(blocked));
            rank.program = page.program;
            rank.devices = page.ways;
            rank.started_ns = page.started_ns;
        }
        rank
    }
}

impl From<weft_wire::status::Blocked> for BlockedRank {
    fn from(page: weft_wire::status::Blocked) -> Self {
        let seconds = uptime_ns().saturating_sub(page.since_ns) as f64 / 1e9;
        let communicator = communicator(&page);
        Self { call: page.call, peer: page.peer, tag: page.tag, communicator, seconds }
    }
}

impl BlockedRank {
    /// In words; with `peer`, for whom it waits.
    pub fn text(&self, peer: bool) -> String {
        let mut text = self.call.clone();
        if let Some(rank) = self.peer.filter(|_| peer) {
            let way = if self.call.contains("end") && !self.call.contains("recv") { "to" } else { "from" };
            text += &format!(" {way} rank {rank}");
        }
        if let Some(tag) = self.tag {
            text += &format!(", tag {tag}");
        }
        if let Some(communicator) = &self.communicator {
            text += &format!(", {communicator}");
        }
        text
    }
}

impl SeenRank {
    /// The task of PVM that it is, and the name of its virtual machine, which may have none.
    pub fn task(&self) -> Option<(&str, &str)> {
        let task = self.known_as.split("; ").find_map(|name| name.strip_prefix("task "))?;
        Some(task.split_once(" of machine ").unwrap_or((task, "")))
    }

    /// Whether it takes part, and its process lives.
    pub fn is_alive(&self) -> bool {
        self.stage == RankStage::Joined && !matches!(self.cpu, Cpu::Gone | Cpu::Zombie)
    }
}

/// MPI numbers its communicators in steps of this many contexts, the predefined ones first.
const CONTEXTS_EACH: u32 = 6;
/// Where communicators are made out of groups, without one.
const FROM_GROUPS: u32 = u32::MAX - 1;

fn communicator(page: &weft_wire::status::Blocked) -> Option<String> {
    // Calls that wait for several requests, or for everything, concern no single communicator and say 0.
    let of_none = ["MPI_Wait", "MPI_Finalize", "MPI_Buffer"].iter().any(|name| page.call.starts_with(name));
    if of_none && page.context == 0 && page.peer.is_none() && page.tag.is_none() {
        return None;
    }
    if page.context == FROM_GROUPS {
        return None;
    }
    Some(match page.context / CONTEXTS_EACH {
        0 => "MPI_COMM_WORLD".into(),
        1 => "MPI_COMM_SELF".into(),
        number => format!("communicator {number}"),
    })
}

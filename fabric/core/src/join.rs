//! Start-up: how a process finds its job.
//!
//! 1. `WEFT_SEGMENT` names an inherited descriptor: our launcher made the segment, and no message is needed to join.
//!    `PMI_FD` beside it serves to tell the launcher of start, end and abort; nobody waits for that at the start. Where
//!    the job lies on several hosts, `WEFT_JOB_MAP` says where everybody is, and `WEFT_TCP_LISTENER` is where others
//!    reach us, as `WEFT_UDP_SOCKET` is for datagrams.
//! 2. `PMI_FD` alone: a launcher of somebody else that speaks PMI-1. The ranks [`meet`](meeting): the lowest one makes
//!    the segment and hands it to the others.
//! 3. `PMIX_NAMESPACE` alone: one that speaks PMIx ([`pmix`]), whose library is loaded then. All else is as with PMI-1.
//! 4. None of them: a job of one, unless the environment shows a launcher that wanted more ([`environment`]).
//!
//! That is how the first interface of a process joins, whichever it is. What it has found stands in the process table
//! ([`crate::process`]), from which the others take their places ([`beside`]).
//!
//! Descriptors and the variables that name them are for this process alone: the former are closed on exec, the latter
//! removed, so that a program which a rank starts is a job of one and not a second rank of the same number.

mod beside;
mod environment;
mod kin;
mod line;
mod manager;
mod meeting;
mod owner;
mod pmix;

use crate::devices::Across;
use crate::limits::Limits;
use crate::pace::Bounds;
use crate::process::{self, JobPlace, SharedText};
use environment::{NetworkDescriptors, StartedBy};
use manager::Manager;
pub(crate) use manager::note_lost;
pub use manager::{ManagerError, abort};
pub(crate) use owner::{JobMembership, ManagerAsk};
use pmix::{Pmix, PmixRefusal};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::OnceLock;
use weft_cluster::pmi::PmiRequest;
use weft_cluster::spawn::PARENT_VARIABLE;
use weft_device::shm::{Segment, SegmentError};
use weft_device::sys::{self, Inherited};
use weft_device::xdp::{Lane, LaneSockets};
use weft_protocol::selector::machine::Best;
use weft_wire::interface::InterfaceName;
use weft_wire::job_map::{JobMap, JobMapError};
use weft_wire::segment::MAX_MEMBERS;
use weft_wire::settings::{self, SettingError, Settings};

/// Why a process could not join its job. Ends the process's membership.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error(transparent)]
    Segment(#[from] SegmentError),
    #[error("{name} is '{value}', allowed is {allowed}")]
    Environment { name: &'static str, value: String, allowed: String },
    #[error("{name} is set, but {missing} is not: the launcher sets both, or something between has removed one")]
    Missing { name: &'static str, missing: &'static str },
    #[error(
        "descriptor {number} of {name} cannot be used: {cause}; a program between launcher and rank may have closed it"
    )]
    Descriptor { name: &'static str, number: i32, cause: io::Error },
    #[error("the launcher's map of the job cannot be read: {0}")]
    MapRead(io::Error),
    #[error(transparent)]
    Map(#[from] JobMapError),
    #[error("PMI_SIZE is {size}, but the launcher's map of the job has {ranks} ranks: they are of different jobs")]
    MapSize { size: u32, ranks: usize },
    #[error("the network cannot be used: {0}")]
    Network(io::Error),
    #[error(
        "the job is encrypted (weft run --encrypt, WEFT_ENCRYPT), for which random numbers are needed, and the system gives \
         none: getrandom is refused to this process"
    )]
    NoRandomNumbers,
    #[error(
        "no device leads to rank {rank}: of {order}, which WEFT_DEVICE or weft run --device allows, none does; auto allows \
         every device"
    )]
    NoWay { rank: u32, order: String },
    #[error(
        "the job has {size} ranks here, but the launcher's shared segment has {members} members: they are of different jobs"
    )]
    Size { size: u32, members: u32 },
    #[error("{}", texts(.0))]
    Settings(Vec<SettingError>),
    #[error("WEFT_SINGLE_COPY is on, but the kernel forbids such copies: {0}; auto or off can be used")]
    SingleCopy(io::Error),
    #[error(
        "started by {launcher} ({variable}={value}), which speaks neither PMI-1 nor PMIx: its ranks would run as {value} jobs \
         of one; start the program with weft run, or unset {variable} to run it alone"
    )]
    ForeignLauncher { launcher: &'static str, variable: &'static str, value: String },
    #[error(
        "started by a launcher that speaks PMIx (PMIX_NAMESPACE is set), but its library cannot be loaded: {0}; install it \
         (Debian: libpmix2), name it by {LIBRARY_VARIABLE}, or start the program with weft run", LIBRARY_VARIABLE = pmix::LIBRARY_VARIABLE
    )]
    PmixLibrary(String),
    #[error("the launcher offers PMI at PMI_PORT={0} only; a descriptor in PMI_FD is needed (weft run gives one)")]
    Port(String),
    #[error(transparent)]
    Manager(#[from] ManagerError),
    #[error(
        "rank {rank} is not on the host of rank 0: weft run starts jobs on several hosts, also inside an allocation of Slurm"
    )]
    OtherHost { rank: u32 },
    #[error(
        "rank {rank} cannot reach rank 0 on the same machine: {cause}; are they in different network namespaces \
         (containers) or of different users?"
    )]
    Unreachable { rank: u32, cause: io::Error },
    #[error("cannot hand the shared segment to the other ranks: {0}")]
    HandOver(io::Error),
    #[error("{0}")]
    OtherWeft(String),
    #[error("the interface {interface} {how}; a process has one of each, opened once")]
    Taken { interface: &'static str, how: &'static str },
    #[error("rank {rank} has ended and has not opened the interface {interface}, which all ranks open together")]
    NotOpened { rank: u32, interface: &'static str },
    #[error("no memory for what the interfaces of this process tell each other: {0}")]
    ProcessTable(io::Error),
    #[error("what rank 0 told of the job is not understood: '{0}'; are the ranks of different Weft versions?")]
    Invitation(String),
}

fn texts(errors: &[SettingError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// What start-up has found out.
pub(crate) struct Joined {
    /// The section of the interface.
    pub segment: Segment,
    pub member: u32,
    /// Given to ranks of jobs on several hosts.
    pub across: Option<Across>,
    pub job: String,
    /// What other jobs know it by, the same in all its processes; empty where it has one process alone.
    pub world: String,
    pub limits: Limits,
    pub bounds: Bounds,
    pub settings: Settings,
    /// The interface's part in the process's membership.
    pub membership: Option<JobMembership>,
}

impl Joined {
    pub fn plain(segment: Segment, member: u32) -> Self {
        let settings = Settings::default();
        let (limits, bounds) = (Limits::from(&settings), Bounds::from(&settings));
        let (across, job, world, membership) = Default::default();
        Self { segment, member, across, job, world, limits, bounds, settings, membership }
    }
}

/// What the first interface of the process has found.
struct FoundPlace {
    segment: Segment,
    member: u32,
    across: Option<Across>,
    world: String,
    /// Whom to tell of the end.
    manager: Option<Manager>,
}

impl FoundPlace {
    fn plain(segment: Segment, member: u32) -> Self {
        let (across, world, manager) = Default::default();
        Self { segment, member, across, world, manager }
    }
}

/// `changes`: environment variables of settings with values that go before those of the environment.
pub(crate) fn join(interface: InterfaceName, changes: &[(&'static str, String)]) -> Result<Joined, JoinError> {
    let changed = changes.iter().map(|(name, value)| (name.into(), value.into()));
    let settings = Settings::from_env(std::env::vars_os().chain(changed));
    let start = environment::read(|name| std::env::var(name).ok());
    let is_first = matches!(start, Ok(StartedBy::Launcher { .. } | StartedBy::Manager { .. }));
    let table = if is_first { None } else { process::find().map_err(JoinError::OtherWeft)? };
    let settings = settings.map_err(|errors| {
        leave_it_to_rank_0(start.as_ref().ok());
        JoinError::Settings(errors)
    })?;
    let mut joined = match table {
        Some(table) => beside::join_beside(|interface| table.enrol(interface), interface)?,
        None => join_first(start?, interface)?,
    };
    joined.limits = Limits { machine: machine()?, ..Limits::from(&settings) };
    joined.bounds = Bounds::from(&settings);
    joined.settings = settings;
    joined.across.iter_mut().for_each(|across| across.encrypts = settings.encrypt);
    if interface != InterfaceName::Mpi && !joined.world.is_empty() {
        // Another endpoint than that of the job's processes in MPI.
        joined.world = format!("{}/{}", joined.world, interface.text());
    }
    Ok(joined)
}

/// Whether this process has a place in a job: a launcher has given it one, or an interface of it has joined.
pub fn is_launched() -> bool {
    let is_told = matches!(environment::read(|name| std::env::var(name).ok()), Ok(start) if start != StartedBy::Alone);
    is_told || process::find().is_ok_and(|table| table.is_some())
}

/// Joins the job that the variables tell of, and leaves word for the other interfaces.
fn join_first(start: StartedBy, interface: InterfaceName) -> Result<Joined, JoinError> {
    /// As long as the process lives an interface may open that needs it.
    static SEGMENT: OnceLock<Segment> = OnceLock::new();
    tell_of_unknown_settings(&start);
    let launched = matches!(start, StartedBy::Launcher { .. });
    let found = match start {
        StartedBy::Launcher { segment, rank, size, manager, network } => {
            let manager = manager.map(|descriptor| (descriptor, interface));
            join_launcher(segment, rank, size, manager, network)?
        }
        StartedBy::Manager { descriptor, rank, size } => join_manager(descriptor, rank, size)?,
        StartedBy::Pmix => join_pmix()?,
        StartedBy::Alone => alone()?,
    };
    let FoundPlace { segment, member, across, mut world, manager } = found;
    let job = std::env::var("WEFT_JOB").unwrap_or_default();
    if !job.is_empty() && launched {
        world = job.clone();
    }
    let launched = launched && manager.is_some();
    let parent = std::env::var(PARENT_VARIABLE).ok().filter(|_| launched).unwrap_or_default();
    environment::forget();
    let kept = segment.descriptor().try_clone_to_owned().map(File::from).and_then(|file| file.metadata());
    let kept = kept.map_err(JoinError::ProcessTable)?;
    let (rank, size) = match &across {
        None => (member, segment.members()),
        Some(across) => (across.rank, across.map.ranks.len() as u32),
    };
    let place = JobPlace {
        rank,
        size,
        member,
        launched: u32::from(launched),
        segment: segment.descriptor().as_raw_fd(),
        device: kept.dev(),
        file: kept.ino(),
        job: SharedText::lasting(job.clone().into()),
        world: SharedText::lasting(world.clone().into()),
        parent: SharedText::lasting(parent.into()),
        map: SharedText::lasting(across.as_ref().map(|across| across.map.encode()).unwrap_or_default()),
    };
    let section = segment.section(interface)?;
    let enrolment = process::begin(place, owner::lead(manager), interface).map_err(JoinError::ProcessTable)?;
    if let Err(segment) = SEGMENT.set(segment) {
        // A forked copy that makes a job of its own: the table names the descriptor as long as the process lives.
        std::mem::forget(segment);
    }
    enrolment.come();
    let membership = Some(JobMembership::new(enrolment));
    Ok(Joined { across, job, world, membership, ..Joined::plain(section, member) })
}

/// Settings are mostly wrong for all ranks alike, and rank 0 says so. The others meet it in a barrier, where the end of
/// the job finds them; if rank 0 comes there it has nothing to complain about, and they speak for themselves.
fn leave_it_to_rank_0(start: Option<&StartedBy>) {
    // Our own launcher has looked at the settings, and rank 0 comes to no barrier under it.
    let Some(&StartedBy::Manager { descriptor, rank, .. }) = start else { return };
    let Ok(descriptor) = adopt("PMI_FD", descriptor, Inherited::Socket) else { return };
    let mut manager = Manager::new(descriptor);
    if manager.announce().is_ok() && rank != 0 && manager.ask(PmiRequest::Barrier).is_err() {
        sys::exit_now(1);
    }
}

/// Once for the job: our launcher has told of those that it saw, also to what its ranks start.
fn tell_of_unknown_settings(start: &StartedBy) {
    let first = match start {
        StartedBy::Launcher { .. } => false,
        StartedBy::Manager { rank, .. } => *rank == 0,
        StartedBy::Pmix => std::env::var(pmix::RANK).is_ok_and(|rank| rank == "0"),
        StartedBy::Alone => true,
    };
    if first && std::env::var_os("WEFT_JOB").is_none() {
        settings::unknown(std::env::vars_os()).iter().for_each(|unknown| eprintln!("weft: {}", unknown.warning()));
    }
}

/// What the launcher says of this machine, for all ranks of the job on it.
fn machine() -> Result<Best, JoinError> {
    const NAME: &str = "WEFT_MACHINE";
    let Ok(value) = std::env::var(NAME) else { return Ok(Best::default()) };
    let allowed = || "usual, or what weft tune has found".to_owned();
    let best = if value == "usual" { Some(Best::default()) } else { Best::parse(&value) };
    best.ok_or_else(|| JoinError::Environment { name: NAME, value, allowed: allowed() })
}

fn alone() -> Result<FoundPlace, JoinError> {
    Ok(FoundPlace::plain(Segment::create(1)?, 0))
}

fn adopt(name: &'static str, number: i32, kind: Inherited) -> Result<OwnedFd, JoinError> {
    sys::adopt(number, kind).map_err(|cause| JoinError::Descriptor { name, number, cause })
}

fn join_launcher(
    segment: i32,
    rank: u32,
    size: u32,
    manager: Option<(i32, InterfaceName)>,
    network: Option<NetworkDescriptors>,
) -> Result<FoundPlace, JoinError> {
    let descriptor = match adopt("WEFT_SEGMENT", segment, Inherited::Memory) {
        // The variables of a rank in a program that it started with an environment of its own making.
        Err(_) if kin::is_child_of_rank() => return alone(),
        descriptor => descriptor?,
    };
    // From here on what goes wrong can be told to the launcher.
    let mut manager = match manager {
        Some((fd, interface)) => Some(Manager::of_launcher(adopt("PMI_FD", fd, Inherited::Socket)?, interface)),
        None => None,
    };
    let segment = Segment::open(descriptor)?;
    let across = network.map(|network| read_network(network, rank, size)).transpose()?;
    let (member, expected) = match &across {
        None => (rank, size),
        Some(across) => {
            let place = across.map.ranks[rank as usize];
            (place.member, across.map.ranks_on(place.host).count() as u32)
        }
    };
    let members = segment.members();
    if expected != members {
        return Err(JoinError::Size { size: expected, members });
    }
    if let Some(manager) = &mut manager {
        manager.announce()?;
    }
    Ok(FoundPlace { manager, across, ..FoundPlace::plain(segment, member) })
}

fn read_network(network: NetworkDescriptors, rank: u32, size: u32) -> Result<Across, JoinError> {
    let map = File::from(adopt("WEFT_JOB_MAP", network.map, Inherited::Memory)?);
    let listener = adopt("WEFT_TCP_LISTENER", network.listener, Inherited::Socket)?;
    let datagrams = network.datagrams.map(|number| adopt("WEFT_UDP_SOCKET", number, Inherited::Socket)).transpose()?;
    let lane = network.lane.map(|[memory, receiver, sender]| -> Result<_, JoinError> {
        let memory = adopt("WEFT_XDP_MEMORY", memory, Inherited::Memory)?;
        let receiver = adopt("WEFT_XDP_RECEIVER", receiver, Inherited::Socket)?;
        Ok((memory, LaneSockets { receiver, sender: adopt("WEFT_XDP_SENDER", sender, Inherited::Sender)? }))
    });
    let lane = lane.transpose()?;
    // Inherited, it shares its position with the other ranks of the host.
    let mut bytes = vec![0; map.metadata().map_err(JoinError::MapRead)?.len() as usize];
    map.read_exact_at(&mut bytes, 0).map_err(JoinError::MapRead)?;
    let map = JobMap::decode(&bytes)?;
    match map.ranks.len() == size as usize {
        true => {
            let member = map.ranks[rank as usize].member;
            // Without one datagrams go by the socket.
            let lane = lane.and_then(|(memory, sockets)| Lane::adopt(memory, sockets, member).ok());
            Ok(Across { map, rank, listener, datagrams, lane, faults: None, encrypts: false })
        }
        false => Err(JoinError::MapSize { size, ranks: map.ranks.len() }),
    }
}

fn join_manager(descriptor: i32, rank: u32, size: u32) -> Result<FoundPlace, JoinError> {
    let descriptor = match adopt("PMI_FD", descriptor, Inherited::Socket) {
        Err(_) if kin::is_child_of_rank() => return alone(),
        descriptor => descriptor?,
    };
    let mut manager = Manager::new(descriptor);
    manager.announce()?;
    let (segment, world) = meeting::meet(&mut manager, rank, size)?;
    Ok(FoundPlace { manager: Some(manager), world, ..FoundPlace::plain(segment, rank) })
}

fn join_pmix() -> Result<FoundPlace, JoinError> {
    // The variables stay: other libraries of the process may want them, and we when we come back.
    if kin::is_child_of_same_rank(&[pmix::NAMESPACE, pmix::RANK]) {
        return alone();
    }
    let pmix = Pmix::join().map_err(|refusal| match refusal {
        PmixRefusal::Library(cause) => JoinError::PmixLibrary(cause),
        PmixRefusal::Manager(error) => JoinError::Manager(error),
    })?;
    let (rank, size) = (pmix.rank(), pmix.size());
    if size > MAX_MEMBERS {
        let allowed = format!("a number of ranks from 1 to {MAX_MEMBERS}");
        return Err(JoinError::Environment { name: "pmix.job.size", value: size.to_string(), allowed });
    }
    let mut manager = Manager::of_pmix(pmix);
    let (segment, world) = meeting::meet(&mut manager, rank, size)?;
    Ok(FoundPlace { manager: Some(manager), world, ..FoundPlace::plain(segment, rank) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsRawFd, IntoRawFd};
    use weft_wire::segment::{VERSION, header};

    /// A descriptor as a launcher passes it on.
    fn passed_on(segment: &Segment) -> i32 {
        segment.descriptor().try_clone_to_owned().expect("dup").into_raw_fd()
    }

    #[test]
    fn a_segment_of_another_version_is_named() {
        let segment = Segment::create(2).expect("segment");
        let file = File::from(segment.descriptor().try_clone_to_owned().expect("dup"));
        file.write_all_at(&(VERSION + 1).to_le_bytes(), header::VERSION as u64).expect("write");
        let error = join_launcher(passed_on(&segment), 0, 2, None, None).err().expect("refused").to_string();
        assert!(error.contains(&format!("has version {}", VERSION + 1)) && error.contains("different Weft"), "{error}");
    }

    #[test]
    fn a_segment_of_another_size_is_refused() {
        let segment = Segment::create(2).expect("segment");
        let error = join_launcher(passed_on(&segment), 0, 3, None, None).err().expect("refused").to_string();
        assert!(error.contains("3 ranks here") && error.contains("2 members"), "{error}");
    }

    #[test]
    fn what_was_passed_on_is_not_passed_on_further() {
        let segment = Segment::create(2).expect("segment");
        let number = passed_on(&segment);
        let joined = join_launcher(number, 1, 2, None, None).expect("joined");
        assert_eq!((joined.member, joined.segment.descriptor().as_raw_fd()), (1, number));
        let flags = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).expect("open");
        let flags = flags.lines().find_map(|line| line.strip_prefix("flags:")).expect("flags");
        let flags = i32::from_str_radix(flags.trim(), 8).expect("octal");
        assert_ne!(flags & libc::O_CLOEXEC, 0);
    }

    #[test]
    fn a_descriptor_that_is_not_there_is_named() {
        let error = join_launcher(1 << 20, 0, 2, None, None).err().expect("refused").to_string();
        assert!(error.starts_with("descriptor 1048576 of WEFT_SEGMENT cannot be used: it is not open"), "{error}");
    }
}

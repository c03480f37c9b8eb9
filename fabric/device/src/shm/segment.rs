//! The segment: created once per job and host, joined by every member.

use super::doorbell::Doorbell;
use super::memory::Memory;
use super::views::Views;
use crate::kernel;
use crate::sync::Ordering;
use crate::sys;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use weft_wire::interface::InterfaceName;
use weft_wire::segment::{Geometry, Heading, MAGIC, MAGIC_OF_TWO, MAX_MEMBERS};
use weft_wire::segment::{MemberState, PAGE_BYTES, VERSION, header, mailbox};

/// Why there is no segment. Ends the process's membership.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    #[error("a job has 1 to {MAX_MEMBERS} ranks on a host, not {0}")]
    Members(u32),
    #[error("cannot create shared memory of {bytes} bytes for {members} ranks: {cause}")]
    Create { bytes: usize, members: u32, cause: io::Error },
    #[error("cannot use the shared memory that the launcher handed over: {0}")]
    Open(io::Error),
    #[error("not enough memory for the shared segment of {members} ranks: {cause}")]
    Populate { members: u32, cause: io::Error },
    #[error(
        "the launcher's shared segment has version {theirs}, this library needs {VERSION}: launcher and library are of different Weft versions"
    )]
    Version { theirs: u32 },
    #[error("the descriptor does not hold a Weft segment")]
    Foreign,
    #[error(
        "the job's shared memory has room for one interface only, since its launcher's limit on files (ulimit -f) is low"
    )]
    OneSection,
    #[error("rank {member}, but the shared segment was made for {members} ranks, which count from 0")]
    Member { member: u32, members: u32 },
}

/// The shared memory of a job on this host.
#[derive(Clone)]
pub struct Segment {
    pub(super) views: Views,
}

impl Segment {
    /// A new segment for `members` processes.
    pub fn create(members: u32) -> Result<Self, SegmentError> {
        let geometry = Geometry::new(members).ok_or(SegmentError::Members(members))?;
        let bytes = geometry.bytes();
        let create = |cause| SegmentError::Create { bytes, members, cause };
        let memory = Memory::create_parts(c"weft-segment", bytes, InterfaceName::ALL.len()).map_err(create)?;
        // Header, mailboxes and status pages are touched by everybody: let them exist from the beginning.
        memory.populate(0, geometry.mailbox(members)).map_err(|cause| SegmentError::Populate { members, cause })?;
        let segment = Self { views: Views { memory: Arc::new(memory), geometry } };
        segment.views.header_u64(header::MAGIC).store(MAGIC, Ordering::Relaxed);
        segment.views.header_u32(header::VERSION).store(VERSION, Ordering::Relaxed);
        segment.views.header_u32(header::MEMBERS).store(members, Ordering::Relaxed);
        Ok(segment)
    }

    /// A segment that somebody else has created: the section of the first interface.
    pub fn open(descriptor: OwnedFd) -> Result<Self, SegmentError> {
        Self::open_as(descriptor, InterfaceName::Mpi)
    }

    /// The section of this interface in a segment that somebody else has created.
    pub fn open_as(descriptor: OwnedFd, interface: InterfaceName) -> Result<Self, SegmentError> {
        let bytes = kernel::sealed_bytes(descriptor.as_raw_fd())
            .ok_or_else(|| SegmentError::Open(io::Error::other("the descriptor is not a sealed memfd")))?;
        let (file, mut head) = (File::from(descriptor), [0; 64]);
        let heading = file.read_exact_at(&mut head, 0).map_or(Heading::Foreign, |()| Heading::parse(&head));
        let geometry = match heading {
            Heading::Segment(geometry) => geometry,
            Heading::OtherVersion(theirs) => return Err(SegmentError::Version { theirs }),
            Heading::Foreign => return Err(SegmentError::Foreign),
        };
        if ![geometry.bytes(), geometry.bytes_of_all()].contains(&bytes) {
            return Err(SegmentError::Foreign);
        }
        let start = geometry.section(interface);
        if start >= bytes {
            return Err(SegmentError::OneSection);
        }
        let memory = Memory::open_part(file.into(), start, geometry.bytes()).map_err(SegmentError::Open)?;
        if start > 0 {
            // Nobody has made these exist, or another member has.
            let members = geometry.members;
            let populated = memory.populate(0, geometry.mailbox(members));
            populated.map_err(|cause| SegmentError::Populate { members, cause })?;
        }
        Ok(Self { views: Views { memory: Arc::new(memory), geometry } })
    }

    /// The section of this interface in the same segment.
    pub fn section(&self, interface: InterfaceName) -> Result<Self, SegmentError> {
        match interface {
            InterfaceName::Mpi => Ok(self.clone()),
            _ => Self::open_as(self.descriptor().try_clone_to_owned().map_err(SegmentError::Open)?, interface),
        }
    }

    /// A new segment for two processes of different jobs, and the descriptor that the other one opens it by. Whoever
    /// made it is member 0. `token` is what the other one shall find there.
    ///
    /// # Errors
    /// Too little memory, or no descriptor.
    pub fn create_for_two(token: [u64; 2]) -> io::Result<(Self, OwnedFd)> {
        let geometry = Geometry::of_two();
        let mut memory = Memory::create(c"weft-two", geometry.bytes())?;
        memory.populate(0, geometry.status(0))?;
        memory.populate(geometry.mailbox(1), PAGE_BYTES)?;
        let descriptor = memory.take_descriptor();
        let segment = Self { views: Views { memory: Arc::new(memory), geometry } };
        for (index, word) in token.into_iter().enumerate() {
            segment.views.header_u64(header::TOKEN + 8 * index).store(word, Ordering::Relaxed);
        }
        segment.views.header_u32(header::VERSION).store(VERSION, Ordering::Relaxed);
        segment.views.header_u64(header::MAGIC).store(MAGIC_OF_TWO, Ordering::Relaxed);
        Ok((segment, descriptor))
    }

    /// The segment that process `pid` of this host has made for itself and us, as member 1. No descriptor stays open.
    ///
    /// # Errors
    /// The process cannot be seen from here, or what it shows is no such segment with this token.
    pub fn open_of_two(pid: i32, number: i32, token: [u64; 2]) -> io::Result<Self> {
        let mut memory = Memory::open_of(pid, number)?;
        drop(memory.take_descriptor());
        let views = Views { memory: Arc::new(memory), geometry: Geometry::of_two() };
        let is_ours = views.memory.bytes() == views.geometry.bytes()
            && views.header_u64(header::MAGIC).load(Ordering::Relaxed) == MAGIC_OF_TWO
            && views.header_u32(header::VERSION).load(Ordering::Relaxed) == VERSION
            && (0..2).all(|at| views.header_u64(header::TOKEN + 8 * at).load(Ordering::Relaxed) == token[at]);
        if is_ours { Ok(Self { views }) } else { Err(io::Error::other("it is no segment for the two of us")) }
    }

    pub fn members(&self) -> u32 {
        self.views.geometry.members
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.views.memory.descriptor()
    }

    /// How far a member has come. A claim of the member.
    pub fn state(&self, member: u32) -> MemberState {
        MemberState::from_word(self.views.state(member).load(Ordering::Acquire)).unwrap_or(MemberState::Absent)
    }

    pub fn set_state(&self, member: u32, state: MemberState) {
        self.views.state(member).store(state as u32, Ordering::Release);
    }

    /// Process id of a member, 0 before it has joined. A claim of the member.
    pub fn pid(&self, member: u32) -> i32 {
        self.views.pid(member).load(Ordering::Relaxed) as i32
    }

    /// Says which process the caller is.
    pub fn set_process(&self, member: u32) {
        self.views.namespace(member).store(sys::pid_namespace().unwrap_or(0), Ordering::Relaxed);
        self.views.pid(member).store(std::process::id(), Ordering::Relaxed);
    }

    /// Whether a member will take nothing any more: it has left, or its process has ended. Rests on claims of the
    /// member; false where its process cannot be seen from here.
    pub fn has_ended(&self, member: u32) -> bool {
        match self.state(member) {
            MemberState::Left => true,
            MemberState::Absent => self.has_ended_elsewhere(member),
            MemberState::Joined => {
                let namespace = self.views.namespace(member).load(Ordering::Relaxed);
                sys::pid_namespace() == Some(namespace) && sys::process_has_ended(self.pid(member))
            }
        }
    }

    /// Whether the process of a member that has not joined here has ended, as it was known in another section. One that
    /// lives may still join.
    #[cold]
    fn has_ended_elsewhere(&self, member: u32) -> bool {
        let (memory, geometry) = (&self.views.memory, self.views.geometry);
        if !memory.has_descriptor() {
            return false;
        }
        let Ok(file) = memory.descriptor().try_clone_to_owned().map(File::from) else { return false };
        let word = |section: InterfaceName, at: usize| {
            let (mut word, at) = ([0; 4], geometry.section(section) + geometry.mailbox(member) + at);
            file.read_exact_at(&mut word, at as u64).map_or(0, |()| u32::from_le_bytes(word))
        };
        let here = sys::pid_namespace();
        InterfaceName::ALL.into_iter().any(|section| {
            word(section, mailbox::STATE) != MemberState::Absent as u32
                && here == Some(word(section, mailbox::NAMESPACE))
                && sys::process_has_ended(word(section, mailbox::PID) as i32)
        })
    }

    /// Says which core a member is bound to, if to a single one.
    pub fn set_core(&self, member: u32, core: Option<u32>) {
        self.views.core(member).store(core.map_or(0, |c| c + 1), Ordering::Relaxed);
    }

    /// Members that say they are bound to `core`.
    pub fn bound_to(&self, core: u32) -> usize {
        (0..self.members()).filter(|m| self.views.core(*m).load(Ordering::Relaxed) == core + 1).count()
    }

    /// Members that do not sleep, as far as their doorbells say.
    pub fn awake(&self) -> usize {
        (0..self.members()).filter(|member| !self.views.mailbox(*member, true).is_asleep()).count()
    }

    /// The member's doorbell, for its owner.
    pub fn doorbell(&self, member: u32) -> Doorbell {
        let mailbox = self.views.mailbox(member, true);
        Doorbell { word: mailbox.doorbell, bell: mailbox.bell }
    }

    /// The `count` collective blocks from `first` on.
    pub fn block(&self, first: usize, count: usize) -> super::block::Block {
        self.views.block(first, count)
    }

    pub fn blocks(&self) -> usize {
        self.views.geometry.blocks()
    }

    /// The status page of `member`: address of one page, valid as long as this segment.
    pub fn status_page(&self, member: u32) -> *mut u8 {
        self.views.memory.at(self.views.geometry.status(member), PAGE_BYTES)
    }
}

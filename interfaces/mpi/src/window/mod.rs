//! Windows: one-sided communication (MPI 5.0, chapter 12).
//!
//! How a target is reached is decided for each one when the window is made ([`TargetWay`]):
//! - *mapped*: memory that the library made, for the window or by `MPI_Alloc_mem`, is mapped by all members on the host
//!   (and one's own memory always is): operations are loads and stores of the origin.
//! - *attach*: other memory of this host is copied by cross-memory attach.
//! - *message*: members on other hosts, and those whose memory the kernel does not let us copy, are sent requests,
//!   which their progress performs (`serve`).
//!
//! Whichever way is taken, the accumulate family holds one lock of the target (`words`), so that it is atomic between
//! all ways; what the target does for others takes the same lock.
//!
//! - `create`: making and freeing; `epoch`: synchronisation; `transfer`: put and get; `accumulate`: the others.
//! - `remote`: copies by the kernel; `message`, `serve`: what members send each other, as origin and as target.
//!
//! Invariants: requests of one origin are performed in the order in which they were sent, so that the answer to one
//! says that all before it are done. What a request names is checked before it is touched. Nothing here waits but in
//! `Monitor::wait`, and never with a lock of a window held.

pub mod abi;
mod accumulate;
mod apply;
mod create;
mod elements;
mod epoch;
mod message;
mod remote;
mod serve;
mod transfer;
mod words;

use crate::attribute::Attributes;
use crate::comm::Comm;
use crate::errhandler::handler::Handler;
use crate::error::{Class, Error, RANKS, Result};
use crate::handle::{HandleKind, HandleTable};
use crate::info::Info;
use epoch::Epochs;
use message::Service;
use std::sync::Arc;
use std::time::Duration;
use weft_fabric::Peer;
use weft_fabric::region::{Attach, Region};
use weft_fabric::shared::Block;
use words::WindowWords;

/// The windows of this process.
pub struct Windows {
    pub table: HandleTable<Box<Window>>,
    /// Their handles.
    live: Vec<usize>,
    /// Threads that wait for a lock in shared memory.
    waiting: u32,
    /// Counts sleeps: whoever waits for a lock looks after its holder when it has changed.
    sleeps: u64,
    /// Progress passes serve them.
    are_served: bool,
}

/// How long a thread sleeps that waits for a lock which members on this host share: its holder may have ended.
const LOOK_AFTER_HOLDERS: Duration = Duration::from_millis(100);
/// How long a target sleeps on which a member of another host waits for a lock: who gives it back need not know of it.
const LOOK_AT_LOCKS: Duration = Duration::from_millis(1);

impl Default for Windows {
    fn default() -> Self {
        Self { table: HandleTable::new(HandleKind::Win), live: Vec::new(), waiting: 0, sleeps: 0, are_served: false }
    }
}

impl Windows {
    fn longest_sleep(&self) -> Option<Duration> {
        let is_pending = |handle: &usize| self.table.find(*handle).is_some_and(|window| window.service.is_pending());
        if self.live.iter().any(is_pending) {
            return Some(LOOK_AT_LOCKS);
        }
        (self.waiting > 0 || self.live.iter().any(|handle| self.waits(*handle))).then_some(LOOK_AFTER_HOLDERS)
    }

    /// Windows that come from a session, each with the context of its communicator.
    pub fn of_session(&self, session: usize) -> Vec<(u32, usize)> {
        let theirs = self.table.iter().filter(|(_, window)| window.comm.session == Some(session));
        theirs.map(|(handle, window)| (window.comm.context, handle)).collect()
    }

    fn waits(&self, handle: usize) -> bool {
        self.table.find(handle).is_some_and(|window| window.service.is_awaiting())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Flavor {
    Create = crate::abi::WIN_FLAVOR_CREATE,
    Allocate = crate::abi::WIN_FLAVOR_ALLOCATE,
    Dynamic = crate::abi::WIN_FLAVOR_DYNAMIC,
    Shared = crate::abi::WIN_FLAVOR_SHARED,
}

/// How the memory of a target is reached.
#[derive(Clone, Copy, Debug)]
enum TargetWay {
    /// It begins at this address of ours.
    Mapped(*mut u8),
    Attach(Attach),
    Message,
}

/// A member as seen from here.
struct TargetMember {
    peer: Peer,
    way: TargetWay,
    /// Where its memory begins in its own process; 0 in a dynamic window, whose displacements are addresses.
    base: u64,
    /// Bytes.
    size: u64,
    unit: i64,
    /// Its place among the words that the members of this host share; `None` on other hosts.
    place: Option<u32>,
}

/// What holds the memory that the library made.
enum WindowMemory {
    /// The program's own.
    None,
    Region(Region),
    /// Of this process alone, where nothing could be shared.
    Private(Region),
    /// Collective blocks of the segment, of this host's first member: where the kernel hands no region round.
    Block {
        block: Block,
        first: usize,
        count: usize,
    },
}

/// Values that `MPI_Win_get_attr` gives out addresses of.
struct Places {
    size: isize,
    unit: i32,
    flavor: i32,
    model: i32,
}

/// A window. Lives in a box, so that the addresses of its places stay.
pub struct Window {
    handle: usize,
    /// A communicator of its own.
    comm: Arc<Comm>,
    flavor: Flavor,
    base: *mut u8,
    targets: Vec<TargetMember>,
    /// Ranks of this host, ascending.
    host: Vec<u32>,
    words: WindowWords,
    memory: WindowMemory,
    /// What the program's memory of other members lies in, as far as it came from `MPI_Alloc_mem`.
    #[expect(dead_code, reason = "kept so that it stays mapped")]
    opened: Vec<Region>,
    /// Memory that a dynamic window may touch: address and bytes.
    attached: Vec<(usize, usize)>,
    epochs: Epochs,
    service: Service,
    places: Box<Places>,
    pub name: String,
    pub errhandler: Arc<Handler>,
    pub attributes: Attributes,
    info: Info,
}

// SAFETY: the addresses are of memory that the program has given for use from any thread (its window), or that this
// window keeps; the window itself is used by one thread at a time.
unsafe impl Send for Window {}

impl Window {
    /// What `MPI_Win_get_attr` answers for a predefined key: the base, or the address of a value.
    pub fn predefined_attribute(&self, keyval: i32) -> Option<usize> {
        let places = &*self.places;
        Some(match keyval {
            crate::abi::WIN_BASE => self.base as usize,
            crate::abi::WIN_SIZE => &raw const places.size as usize,
            crate::abi::WIN_DISP_UNIT => &raw const places.unit as usize,
            crate::abi::WIN_CREATE_FLAVOR => &raw const places.flavor as usize,
            crate::abi::WIN_MODEL => &raw const places.model as usize,
            _ => return None,
        })
    }

    /// Where the memory of a rank begins in this process, if loads and stores reach it.
    fn mapped(&self, rank: usize) -> Option<*mut u8> {
        match self.targets[rank].way {
            TargetWay::Mapped(base) if self.targets[rank].size > 0 => Some(base),
            _ => None,
        }
    }

    fn me(&self) -> usize {
        self.comm.rank as usize
    }

    fn display_name(&self) -> String {
        if self.name.is_empty() { format!("window {:#x}", self.handle) } else { format!("window {}", self.name) }
    }

    /// A rank of the window.
    ///
    /// # Errors
    /// It is outside; `MPI_PROC_NULL` is the caller's business.
    #[inline]
    fn rank(&self, rank: i32) -> Result<usize> {
        if (rank as u32 as usize) < self.targets.len() { Ok(rank as usize) } else { Err(self.outside(rank)) }
    }

    #[cold]
    fn outside(&self, rank: i32) -> Error {
        Error::outside(Class::Rank, format!("rank {rank}"), self.display_name(), RANKS, self.targets.len())
    }

    /// Refuses bytes outside a target's memory, where that can be seen from here: `low..high` are offsets from its
    /// base.
    #[inline]
    fn check_range(&self, rank: usize, low: i128, high: i128) -> Result<()> {
        let target = &self.targets[rank];
        let is_inside = match self.flavor {
            Flavor::Dynamic if rank == self.me() => self.has_attached(low, high),
            Flavor::Dynamic => low >= 0 && high <= i128::from(u64::MAX),
            _ => low >= 0 && high <= i128::from(target.size),
        };
        if is_inside || low >= high { Ok(()) } else { Err(self.out_of_range(rank, low, high)) }
    }

    /// Whether the bytes lie in memory that this process has attached. Neighbouring pieces count as one.
    fn has_attached(&self, low: i128, high: i128) -> bool {
        let mut reached = low;
        while reached < high {
            let covers = |&&(at, bytes): &&(usize, usize)| (at as i128..(at + bytes) as i128).contains(&reached);
            match self.attached.iter().find(covers) {
                Some(&(at, bytes)) => reached = (at + bytes) as i128,
                None => return false,
            }
        }
        true
    }

    #[cold]
    fn out_of_range(&self, rank: usize, low: i128, high: i128) -> Error {
        let name = self.display_name();
        let detail = match self.flavor {
            Flavor::Dynamic => {
                format!("addresses {low:#x} to {:#x} of rank {rank} are not all attached to {name}", high - 1)
            }
            _ => format!(
                "bytes {low} to {} of rank {rank}, which has {} bytes in {name}",
                high - 1,
                self.targets[rank].size
            ),
        };
        Error::new(Class::RmaRange, detail)
    }
}

//! Synchronisation (MPI 5.0, section 12.5): which epochs are open, and how they begin and end.

mod active;
mod dynamic;
mod passive;

pub use active::*;
pub use dynamic::*;
pub use passive::*;

use super::Window;
use super::words::{self, WhichLock};
use crate::error::{Class, Error, Result};
use crate::failure::lost_class;
use crate::world::{WORLD, World};
use weft_fabric::{Endpoint, Waiting};

/// What this process may access.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Access {
    None,
    /// A fence was called, and nothing since.
    Ready,
    Fence,
    /// The ranks that were named.
    Start(Vec<u32>),
    /// Some ranks are locked.
    Locks,
    LockAll {
        unchecked: bool,
    },
}

/// How this process holds the lock of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeldLock {
    No,
    Together,
    Alone,
    /// Without asking: the program says that nobody else wants it.
    Unchecked,
}

pub struct Epochs {
    access: Access,
    locks: Vec<HeldLock>,
    /// How many of them are held.
    held: usize,
    /// The ranks to which this process has exposed its memory.
    exposure: Option<Vec<u32>>,
}

impl Epochs {
    pub fn new(members: usize) -> Self {
        Self { access: Access::None, locks: vec![HeldLock::No; members], held: 0, exposure: None }
    }
}

fn wrong(detail: impl Into<String>) -> Error {
    Error::new(Class::RmaSync, detail)
}

fn check_assertion(assert: i32, allowed: &[i32]) -> Result<()> {
    let known = allowed.iter().fold(0, |all, bit| all | bit);
    let refused =
        || Error::new(Class::Assert, format!("assert {assert:#x} has bits other than those allowed ({known:#x})"));
    if assert & !known == 0 { Ok(()) } else { Err(refused()) }
}

impl Window {
    /// Refuses an access to a rank that no epoch allows.
    #[inline]
    pub(super) fn check_access(&mut self, rank: usize) -> Result<()> {
        let allows = match &self.epochs.access {
            Access::Fence | Access::LockAll { .. } => true,
            Access::Locks => self.epochs.locks[rank] != HeldLock::No,
            Access::Start(ranks) => ranks.contains(&(rank as u32)),
            Access::Ready => {
                self.epochs.access = Access::Fence;
                true
            }
            Access::None => false,
        };
        if allows { Ok(()) } else { Err(self.no_access(rank)) }
    }

    /// Whether targets take part in ending what this process accesses: by a fence, or by waiting for those who started.
    pub(super) fn targets_take_part(&self) -> bool {
        matches!(self.epochs.access, Access::Fence | Access::Start(_))
    }

    #[cold]
    fn no_access(&self, rank: usize) -> Error {
        let name = self.display_name();
        let why = match &self.epochs.access {
            Access::Locks => "it is not locked",
            Access::Start(_) => "it is not in the group that MPI_Win_start was given",
            _ => "no fence, start or lock has opened an epoch",
        };
        wrong(format!("rank {rank} of {name} cannot be accessed: {why}"))
    }

    /// Refuses what needs an epoch of locks.
    fn check_passive(&self, rank: Option<usize>) -> Result<()> {
        let allows = match (&self.epochs.access, rank) {
            (Access::LockAll { .. }, _) => true,
            (Access::Locks, Some(rank)) => self.epochs.locks[rank] != HeldLock::No,
            (Access::Locks, None) => true,
            _ => false,
        };
        if allows { Ok(()) } else { Err(self.not_locked(rank)) }
    }

    #[cold]
    fn not_locked(&self, rank: Option<usize>) -> Error {
        let name = self.display_name();
        wrong(match rank {
            Some(rank) => format!("rank {rank} of {name} is not locked"),
            None => format!("no rank of {name} is locked"),
        })
    }

    /// Whether an epoch is open that has to end first; `Ready` is none.
    pub(super) fn open_epoch(&self) -> Option<&'static str> {
        let exposed = || self.epochs.exposure.is_some().then_some("an exposure epoch begun by MPI_Win_post is open");
        self.open_access().or_else(exposed)
    }

    /// The same of accesses only: others may access this process's memory meanwhile (MPI 5.0, section 12.5).
    fn open_access(&self) -> Option<&'static str> {
        match self.epochs.access {
            Access::Start(_) => Some("an access epoch begun by MPI_Win_start is open"),
            Access::Locks | Access::LockAll { .. } => Some("ranks are locked"),
            _ => None,
        }
    }

    fn refuse_within(&self, epoch: Option<&str>) -> Result<()> {
        epoch.map_or(Ok(()), |why| Err(wrong(format!("{}: {why}", self.display_name()))))
    }

    /// An epoch may begin here: none is open, or only a fence that nothing has used.
    fn check_beginning(&self) -> Result<()> {
        if self.epochs.access == Access::Fence {
            return self.refuse_within(Some("an epoch begun by MPI_Win_fence is open"));
        }
        self.refuse_within(self.open_access())
    }

    fn waiting(&self, call: &'static str, rank: Option<usize>) -> Waiting {
        let peer = rank.map(|rank| self.targets[rank].peer);
        Waiting { call, peer, tag: None, context: self.comm.context }
    }

    /// Gives a lock back that members of this host share, and wakes those who wait for it.
    pub(super) fn release_word(&self, endpoint: &mut Endpoint, place: u32, which: WhichLock, alone: bool) {
        if words::unlock(self.words.word(place, which), alone) {
            self.wake_host(endpoint);
        }
    }

    #[cold]
    fn wake_host(&self, endpoint: &mut Endpoint) {
        let others = self.host.iter().filter(|&&rank| rank as usize != self.me());
        others.for_each(|&rank| endpoint.wake(self.targets[rank as usize].peer));
    }

    /// The error of an access to a rank that has ended.
    #[cold]
    pub(super) fn ended(&self, rank: usize) -> Error {
        Error::new(lost_class(), format!("rank {rank} of {} has ended", self.display_name()))
    }

    /// Whoever holds a lock of this host and has ended, so that it will never be given back.
    pub(super) fn ended_holder(&self, endpoint: &Endpoint, rank: usize, which: WhichLock) -> Option<Error> {
        let place = self.targets[rank].place?;
        let word = self.words.word(place, which);
        let suspects = match words::holder(word) {
            Some(holder) => vec![holder],
            // The accumulate family holds its lock alone, so by now it is given back.
            None if which == WhichLock::Accumulate || !words::is_held(word) => return None,
            None => self.host.clone(),
        };
        let ended = suspects
            .into_iter()
            .find(|&rank| self.targets.get(rank as usize).is_some_and(|target| endpoint.has_ended(target.peer)))?;
        Some(Error::new(lost_class(), self.not_given_back(rank, Some(ended))))
    }

    /// What is said of a lock on a rank that may have been held by one who has ended.
    #[cold]
    fn not_given_back(&self, rank: usize, ended: Option<u32>) -> String {
        let who = ended.map_or("a rank".to_owned(), |ended| format!("rank {ended}"));
        let name = self.display_name();
        format!("{who} of {name} has ended, and a lock on rank {rank}, which it may have held, is not given back")
    }
}

/// The window with this handle.
pub(super) fn find(world: &mut World, handle: usize) -> Result<(&mut Window, &mut Endpoint)> {
    let World { windows, endpoint, .. } = world;
    Ok((&mut **windows.table.get_mut(handle)?, endpoint))
}

/// Waits, counted as one who looks after holders of locks. `done` is told when it is time to look.
pub(super) fn wait_in_window<R>(
    call: &'static str,
    handle: usize,
    rank: Option<usize>,
    mut done: impl FnMut(&mut World, bool) -> Option<Result<R>>,
) -> Result<R> {
    let (waiting, mut seen) = {
        let mut world = WORLD.enter();
        let waiting = find(&mut world, handle)?.0.waiting(call, rank);
        world.windows.waiting += 1;
        (waiting, world.windows.sleeps)
    };
    let answer = WORLD.wait_for_memory(waiting, |world| {
        let looks = world.windows.sleeps != seen;
        seen = world.windows.sleeps;
        if world.windows.table.find(handle).is_none() {
            return Some(Err(Error::new(Class::Win, "the window was freed meanwhile")));
        }
        done(world, looks)
    });
    WORLD.enter().windows.waiting -= 1;
    answer
}

/// Waits until `ready` says so of the window; a member of `ranks` that ends meanwhile is an error.
fn await_members(
    call: &'static str,
    handle: usize,
    ranks: &[usize],
    ready: impl Fn(&Window, usize) -> bool,
) -> Result<()> {
    let mut next = 0;
    wait_in_window(call, handle, ranks.first().copied(), |world, looks| {
        let (window, endpoint) = find(world, handle).ok()?;
        while next < ranks.len() && ready(window, ranks[next]) {
            next += 1;
        }
        let Some(&rank) = ranks.get(next) else { return Some(Ok(())) };
        let ended = looks && endpoint.has_ended(window.targets[rank].peer) && !ready(window, rank);
        ended.then(|| Err(window.ended(rank)))
    })
}

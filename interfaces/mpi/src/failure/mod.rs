//! What goes on when processes are lost: user-level failure mitigation (the MPI Forum's ULFM proposal), and what the rest
//! of the interface owes to those who live.
//!
//! - `round`: agreements under way, and the letters by which they and revocations travel.
//! - `shrink`: communicators of those who live.
//! - `abi`: the bodies of the calls.
//!
//! The launcher tells who is lost (`Endpoint::look_for_lost`), in jobs that go on without. From then on operations that
//! need the process end with an error. A communicator with a lost member has no collective operations any more: their
//! context is closed, here and, as the launcher tells everybody, in all members, so that nobody waits in one for somebody
//! who has left it with an error. Receives from anybody stall until the loss is acknowledged.
//!
//! A communicator that is revoked is closed as a whole. Who hears of it first tells all other members, so that they hear
//! of it even if the first one dies in the middle.

pub mod abi;
mod round;
mod shrink;

pub(crate) use round::finish;
pub(crate) use shrink::advance as advance_constructions;

use crate::comm::{COLLECTIVE, CONSTRUCTION, CONTEXTS_EACH, Comm};
use crate::error::{Class, Error, Result};
use crate::world::{WORLD, World};
use round::{Letters, Name, Round};
use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weft_fabric::consensus::Value;
use weft_fabric::{Endpoint, Fault, Peer, Selector};

/// The longest sleep in a job that goes on when processes are lost: what the launcher says wakes nobody.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);
/// Unmoved passes of a program that tests between two looks.
const PASSES_PER_LOOK: u32 = 64;

/// Whether the job goes on when processes are lost.
static GOES_ON: AtomicBool = AtomicBool::new(false);

/// The process has joined its job.
pub(crate) fn note_joined(endpoint: &Endpoint) {
    GOES_ON.store(endpoint.keeps_going(), Ordering::Relaxed);
}

/// The class of an error for want of a process that is gone.
pub(crate) fn lost_class() -> Class {
    if GOES_ON.load(Ordering::Relaxed) { Class::ProcFailed } else { Class::ProcAborted }
}

/// What the process knows of failures.
#[derive(Default)]
pub struct Failures {
    /// Processes that are lost, in the order in which we learnt of it.
    lost: Vec<Peer>,
    /// Contexts of communicators that are revoked. A context is never used again.
    revoked: HashSet<u32>,
    /// Communicators of which nobody has told that they are revoked while we had not made them yet.
    news: bool,
    /// Contexts on which receives from anybody stall.
    stalled: Vec<u32>,
    rounds: Vec<Round>,
    /// Agreements that are over, the last one first: others may still ask for them.
    decided: VecDeque<(Name, Value)>,
    letters: Letters,
    shrinking: Vec<shrink::Pending>,
    unseen: u32,
}

/// What failures mean for one communicator.
#[derive(Default)]
pub struct CommState {
    revoked: AtomicBool,
    /// How many of its lost members the program has acknowledged.
    acknowledged: std::sync::atomic::AtomicU32,
    /// How many of the process's losses it has been told of.
    told: std::sync::atomic::AtomicU32,
    /// Agreements that were begun on it.
    agreements: std::sync::atomic::AtomicU32,
}

impl CommState {
    #[inline(always)]
    pub fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::Relaxed)
    }
}

/// The error of a call on a communicator that is revoked.
#[cold]
pub fn revoked(comm: &Comm) -> Error {
    Error::new(Class::Revoked, format!("{} is revoked", comm.display_name())).on(comm.handle)
}

/// The error of an operation that needs a process where messages to it, or from it, have no memory.
#[cold]
pub fn cut_off(peer: Peer) -> Error {
    let detail = format!("there is no shared memory for messages to or from the process with world rank {}", peer.0);
    Error::new(cut_off_class(), detail)
}

/// A job that goes on takes it for lost, as the device does.
fn cut_off_class() -> Class {
    if GOES_ON.load(Ordering::Relaxed) { Class::ProcFailed } else { Class::NoMem }
}

/// The error of an operation whose context is closed in this way.
#[cold]
pub fn closed(fault: Fault) -> Error {
    match fault {
        Fault::Withdrawn => Error::new(Class::Revoked, "the communicator is revoked"),
        Fault::NoMemory => {
            let detail = "there is no shared memory for messages between processes of the communicator";
            Error::new(cut_off_class(), detail)
        }
        _ => Error::new(lost_class(), "a process of the communicator is lost"),
    }
}

impl Comm {
    /// # Errors
    /// The communicator is revoked.
    #[inline]
    pub fn check_not_revoked(&self) -> Result<()> {
        if self.failure.is_revoked() { Err(revoked(self)) } else { Ok(()) }
    }
}

impl Failures {
    /// Whether a receive or probe from anybody cannot go on, because a process is lost and that is not acknowledged.
    #[inline]
    pub fn stalls(&self, with: Selector) -> bool {
        !self.stalled.is_empty() && with.peer.is_none() && self.stalled.contains(&with.context)
    }

    /// Whether any process is lost.
    #[inline]
    pub fn has_losses(&self) -> bool {
        !self.lost.is_empty()
    }

    /// The lost members of a communicator, in the order in which we learnt of it.
    fn lost_of(&self, comm: &Comm) -> Vec<Peer> {
        let is_in = |peer: &Peer| {
            comm.local.rank_of(*peer).is_some() || comm.remote.as_ref().is_some_and(|far| far.rank_of(*peer).is_some())
        };
        self.lost.iter().copied().filter(is_in).collect()
    }

    /// Acknowledges up to `most` lost members; how many are acknowledged now.
    fn acknowledge(&mut self, comm: &Comm, most: usize) -> usize {
        let lost = self.lost_of(comm).len();
        let before = comm.failure.acknowledged.load(Ordering::Relaxed) as usize;
        let now = before.max(most.min(lost));
        comm.failure.acknowledged.store(now as u32, Ordering::Relaxed);
        if now == lost {
            self.stalled.retain(|context| *context != comm.context);
        }
        now
    }

    fn acknowledged_of(&self, comm: &Comm) -> Vec<Peer> {
        let mut lost = self.lost_of(comm);
        lost.truncate(comm.failure.acknowledged.load(Ordering::Relaxed) as usize);
        lost
    }

    /// Whether anything goes on that wants a look in every pass.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.rounds.is_empty()
    }

    pub fn longest_sleep(&self, endpoint: &Endpoint) -> Option<Duration> {
        (endpoint.keeps_going() || !self.is_quiet()).then_some(LONGEST_SLEEP)
    }
}

/// Called where a pass moved nothing; true if anything changed.
pub(crate) fn idle(world: &mut World, sleeps: bool) -> bool {
    world.failures.unseen += 1;
    if !sleeps && world.failures.unseen < PASSES_PER_LOOK {
        return false;
    }
    world.failures.unseen = 0;
    look(world)
}

/// Learns who is lost and what is revoked; true if anything changed.
pub(crate) fn look(world: &mut World) -> bool {
    let mut lost = world.endpoint.look_for_lost();
    lost.retain(|peer| !world.failures.lost.contains(peer));
    lost.iter().for_each(|peer| round::handle_lost(world, *peer));
    let changed = !lost.is_empty();
    world.failures.lost.extend(lost);
    tell_all(world);
    let heard = round::advance(world);
    changed | heard
}

/// Tells communicators, also new ones, what they do not know yet.
fn tell_all(world: &mut World) {
    let losses = world.failures.lost.len() as u32;
    if losses == 0 && !world.failures.news {
        return;
    }
    for comm in world.comms.every().cloned().collect::<Vec<_>>() {
        if world.failures.revoked.contains(&comm.context) {
            revoke(world, &comm);
        }
        if comm.failure.told.swap(losses, Ordering::Relaxed) < losses {
            tell(world, &comm);
        }
    }
}

/// The communicator may have lost a member.
fn tell(world: &mut World, comm: &Comm) {
    let lost = world.failures.lost_of(comm).len();
    if lost == 0 {
        return;
    }
    for context in [COLLECTIVE, CONSTRUCTION].map(|kind| comm.context + kind) {
        if world.endpoint.closing(context).is_none() {
            world.endpoint.close_context(context, Fault::PeerLost);
        }
    }
    let acknowledged = comm.failure.acknowledged.load(Ordering::Relaxed) as usize;
    if acknowledged < lost && !world.failures.stalled.contains(&comm.context) {
        world.failures.stalled.push(comm.context);
    }
}

/// Revokes a communicator here, and tells all other members, the first time.
fn revoke(world: &mut World, comm: &Comm) {
    if comm.failure.revoked.swap(true, Ordering::Relaxed) {
        return;
    }
    world.failures.revoked.insert(comm.context);
    close(world, comm.context);
    round::announce_revocation(world, comm);
}

/// Closes a communicator that is revoked, for good: its context is never used again, and others may have sent before they
/// hear of it.
fn close(world: &mut World, context: u32) {
    (0..CONTEXTS_EACH).for_each(|kind| world.endpoint.close_context(context + kind, Fault::Withdrawn));
}

/// Where the job goes on without the members of a communicator, tells them to end; false where the job is to end.
pub(crate) fn end_members(handle: usize, code: i32) -> bool {
    // A handler of a signal may have interrupted this very thread where it holds the monitor: elsewhere nothing is asked.
    if !GOES_ON.load(Ordering::Relaxed) {
        return false;
    }
    let mut world = WORLD.enter();
    let Ok(comm) = world.comm(handle).cloned() else { return false };
    let goes_on = world.endpoint.keeps_going() && comm.union().len() < world.endpoint.world_size() as usize;
    if goes_on {
        round::announce_end(&mut world, &comm, code);
    }
    goes_on
}

/// Nobody in this process has the communicator any more.
pub(crate) fn forget(world: &mut World, comm: &Comm) {
    world.failures.stalled.retain(|context| *context != comm.context);
}

//! The three ways to run what was prepared: to the end, beside the program, or again and again.

use super::Team;
use super::active::outcome;
use super::team::team_of;
use crate::comm::{COLLECTIVE, Comm};
use crate::error::{Error, Result};
use crate::request::{Request, SENT};
use crate::world::{WORLD, World};
use std::sync::Arc;
use weft_collective::algorithm::levels::Hosts;
use weft_collective::run::{CollectiveJob, CollectiveRun, Folding, RankRoute, RunTurn};
use weft_collective::schedule::{Chosen, Schedule};
use weft_fabric::settings::Algorithms;
use weft_fabric::{Peer, Waiting};

/// A checked call: its schedule and its buffers.
pub struct PreparedCall {
    /// What is wrong with this rank's part although it can be performed; the others, who wait for it, cannot know.
    pub error: Option<Error>,
    /// This rank's part has another length than the others expect, so what it sends shows that.
    pub misfit: bool,
    pub schedule: Schedule,
    pub input: *const u8,
    pub output: *mut u8,
    pub folding: Option<Folding>,
}

impl Default for PreparedCall {
    fn default() -> Self {
        let (input, output) = (std::ptr::null(), std::ptr::null_mut());
        Self { error: None, misfit: false, schedule: Schedule::default(), input, output, folding: None }
    }
}

/// What the checking of arguments looks at.
pub struct Scene<'a> {
    pub world: &'a World,
    pub comm: &'a Arc<Comm>,
}

impl<'a> Scene<'a> {
    fn new(world: &'a World, comm: &'a Arc<Comm>) -> Self {
        Self { world, comm }
    }

    /// To be filled.
    pub fn schedule(&self) -> Schedule {
        let mut empty = self.world.collectives.empty_schedule();
        empty.algorithms = self.world.endpoint.settings().algorithms;
        empty.tells_choices = crate::tool::wants_collectives();
        empty
    }

    /// How the ranks lie on hosts, where operations are best done in two levels.
    pub fn hosts(&self) -> Option<&Hosts> {
        let (comm, endpoint) = (self.comm, &self.world.endpoint);
        if comm.is_inter() {
            return None;
        }
        comm.collective.hosts(comm.rank, || {
            let foreign = comm.local.peers().any(|peer| endpoint.is_foreign(peer));
            // Two jobs number hosts each for itself, so between them nobody is taken to share one.
            let host = |peer: Peer| if foreign { peer.0 } else { endpoint.host_of(peer) };
            comm.local.peers().map(host).collect()
        })
    }
}

impl RankRoute for Comm {
    fn peer(&self, rank: u32) -> Peer {
        match &self.remote {
            Some(remote) if rank >= self.size() => remote.peer(rank - self.size()),
            _ => self.local.peer(rank),
        }
    }
}

/// Tells tools which algorithms were chosen, with the world held.
fn tell(comm: &Comm, schedule: &Schedule) {
    for Chosen { operation, algorithm, ranks, bytes } in &schedule.chosen {
        crate::tool::tell_collective(operation, Some(algorithm), comm.context, *ranks, *bytes);
    }
}

/// With the world held.
fn job(comm: &Arc<Comm>, tag: i32, prepared: PreparedCall) -> CollectiveJob {
    tell(comm, &prepared.schedule);
    CollectiveJob {
        schedule: prepared.schedule,
        route: comm.clone(),
        context: comm.context + COLLECTIVE,
        tag,
        source: comm.rank,
        input: prepared.input,
        output: prepared.output,
        folding: prepared.folding,
        misfit: prepared.misfit,
    }
}

/// A blocking collective by messages.
///
/// # Safety
/// The buffers that `prepare` finds stay valid during the call.
// Kept apart from the short way through shared memory, which would save registers for it.
#[inline(never)]
pub unsafe fn blocking(
    call: &'static str,
    comm: usize,
    prepare: impl FnOnce(&Scene) -> Result<PreparedCall>,
) -> Result<()> {
    let (job, own) = {
        let mut guard = WORLD.enter();
        let world = &mut *guard;
        let comm = world.comm(comm)?;
        comm.check_not_revoked()?;
        let mut prepared = prepare(&Scene::new(world, comm))?;
        let own = prepared.error.take();
        // A call that is refused is not counted: it may be repeated with better arguments, for which the others wait.
        let job = job(comm, comm.collective.next_tag(), prepared);
        if job.schedule.steps.is_empty() {
            world.collectives.recycle(job.schedule);
            return own.map_or(Ok(()), Err);
        }
        (job, own)
    };
    // SAFETY: the caller's promise.
    unsafe { complete(call, job, own) }
}

/// A call inside one group whose arguments are checked, before it is known which way it goes.
pub trait CheckedCall {
    /// Takes part in it on the shared memory of the group. False: what is left of it goes by messages.
    ///
    /// # Safety
    /// The buffers are as the arguments say.
    ///
    /// # Errors
    /// A member brings another length than is expected of it, or is lost.
    unsafe fn share(&mut self, team: &Team) -> Result<bool>;

    /// The same by messages, or what [`Self::share`] has left.
    fn prepare(self, scene: &Scene) -> PreparedCall;

    fn prepared(&mut self) -> &mut PreparedCall;

    /// Whether an algorithm is prescribed, and the operation thus goes by messages.
    fn is_prescribed(algorithms: &Algorithms) -> bool;
}

/// A blocking collective of a group, on shared memory where that serves, else by messages. One between two groups goes
/// by `messages` from its beginning.
///
/// # Safety
/// The buffers that `check` finds stay valid during the call.
pub unsafe fn planned<P: CheckedCall>(
    call: &'static str,
    handle: usize,
    check: impl FnOnce(&Scene) -> Result<P>,
    messages: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let (comm, mut plan, prescribed) = {
        let world = WORLD.enter();
        let comm = world.comm(handle)?;
        if comm.is_inter() {
            drop(world);
            return messages();
        }
        comm.check_not_revoked()?;
        let prescribed = P::is_prescribed(&world.endpoint.settings().algorithms);
        (comm.clone(), check(&Scene::new(&world, comm))?, prescribed)
    };
    let team = if prescribed { None } else { team_of(&comm, call)? };
    if let Some(team) = team {
        // SAFETY: the caller's promise.
        let done = unsafe { plan.share(team) };
        if !matches!(done, Ok(false)) {
            comm.collective.next_tag();
            let schedule = std::mem::take(&mut plan.prepared().schedule);
            if schedule.has_memory() {
                WORLD.enter().collectives.recycle(schedule);
            }
            // What is wrong with our own arguments may be why we differ from the others.
            return plan.prepared().error.take().map_or(done.map(drop), Err);
        }
    }
    // SAFETY: the caller's promise.
    unsafe { blocking(call, handle, |scene| Ok(plan.prepare(scene))) }
}

/// As [`planned`], where shared memory has left it to messages.
///
/// # Safety
/// As [`planned`].
pub unsafe fn rest_by_messages<P: CheckedCall>(
    call: &'static str,
    handle: usize,
    check: impl FnOnce(&Scene) -> Result<P>,
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { blocking(call, handle, |scene| Ok(check(scene)?.prepare(scene))) }
}

/// Runs a job to its end.
///
/// # Safety
/// As [`CollectiveRun::new`].
unsafe fn complete(call: &'static str, job: CollectiveJob, own: Option<Error>) -> Result<()> {
    let waiting = Waiting { call, peer: None, tag: None, context: job.context };
    // SAFETY: the caller's promise.
    let mut run = unsafe { CollectiveRun::new(job) };
    loop {
        let turn = WORLD.wait(waiting, |world| match run.advance(&mut world.endpoint) {
            RunTurn::Blocked => None,
            RunTurn::Done => {
                world.collectives.recycle(run.take_schedule());
                Some(RunTurn::Done)
            }
            turn => Some(turn),
        });
        match turn {
            RunTurn::Outside(fold) => fold.perform(),
            RunTurn::Done | RunTurn::Blocked => return outcome(run.failure(), own),
        }
    }
}

/// A nonblocking collective.
///
/// # Safety
/// The buffers that `prepare` finds stay valid until the request is complete; `request` may be written.
pub unsafe fn nonblocking(
    handle: usize,
    request: *mut usize,
    prepare: impl FnOnce(&Scene) -> Result<PreparedCall>,
) -> Result<()> {
    let mut guard = WORLD.enter();
    let world = &mut *guard;
    let comm = world.comm(handle)?;
    comm.check_not_revoked()?;
    let mut prepared = prepare(&Scene::new(world, comm))?;
    let tag = comm.collective.next_tag();
    if prepared.schedule.steps.is_empty() && prepared.error.is_none() {
        tell(comm, &prepared.schedule);
        world.collectives.recycle(prepared.schedule);
        // SAFETY: the caller's promise.
        unsafe { *request = SENT };
        return Ok(());
    }
    let own = prepared.error.take();
    let job = job(comm, tag, prepared);
    // SAFETY: the caller's promise.
    let run = unsafe { CollectiveRun::new(job) };
    let new = match world.collectives.start(run, own, &mut world.endpoint) {
        Some(id) => world.requests.insert(Request::collective(id, handle)),
        None => SENT,
    };
    // SAFETY: the caller's promise.
    unsafe { *request = new };
    Ok(())
}

/// A persistent collective, to be started with `MPI_Start`.
///
/// # Safety
/// The buffers that `prepare` finds stay valid as long as the request lives; `request` may be written.
pub unsafe fn persistent(
    handle: usize,
    request: *mut usize,
    prepare: impl FnOnce(&Scene) -> Result<PreparedCall>,
) -> Result<()> {
    let mut guard = WORLD.enter();
    let world = &mut *guard;
    let comm = world.comm(handle)?.clone();
    comm.check_not_revoked()?;
    let mut prepared = prepare(&Scene::new(world, &comm))?;
    let own = prepared.error.take();
    let job = job(&comm, comm.collective.next_persistent_tag(), prepared);
    // SAFETY: the caller's promise.
    let run = unsafe { CollectiveRun::new(job) };
    let id = world.collectives.keep(run, own);
    let new = world.requests.insert(Request::persistent_collective(id, handle));
    // SAFETY: the caller's promise.
    unsafe { *request = new };
    Ok(())
}

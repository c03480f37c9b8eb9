//! The three ways to run what was prepared: to the end, beside the program, or again and again.

use super::algorithm::levels::Hosts;
use super::inquiry::{self, Name, Patience};
use super::run::{Folding, Job, Route, Run, Turn};
use super::schedule::Schedule;
use crate::comm::{COLLECTIVE, Comm};
use crate::error::{Error, Result};
use crate::request::Request;
use crate::world::{WORLD, World};
use std::sync::Arc;
use weft_fabric::{Peer, Waiting};

/// A checked call: its schedule and its buffers.
pub struct Prepared {
    /// What is wrong with this rank's part although it can be performed; the others, who wait for it, cannot know.
    pub error: Option<Error>,
    /// This rank's part has another length than the others expect, so what it sends shows that.
    pub misfit: bool,
    pub schedule: Schedule,
    pub input: *const u8,
    pub output: *mut u8,
    pub folding: Option<Folding>,
}

impl Default for Prepared {
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

impl Scene<'_> {
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

impl Route for Comm {
    fn peer(&self, rank: u32) -> Peer {
        match &self.remote {
            Some(remote) if rank >= self.size() => remote.peer(rank - self.size()),
            _ => self.local.peer(rank),
        }
    }

    fn ranks(&self) -> u32 {
        self.size() + self.remote.as_ref().map_or(0, |remote| remote.size())
    }
}

fn job(comm: &Arc<Comm>, tag: i32, prepared: Prepared) -> Job {
    Job {
        schedule: prepared.schedule,
        route: comm.clone(),
        context: comm.context + COLLECTIVE,
        tag,
        source: comm.rank,
        input: prepared.input,
        output: prepared.output,
        folding: prepared.folding,
        error: prepared.error,
        misfit: prepared.misfit,
    }
}

/// A blocking collective.
///
/// # Safety
/// The buffers that `prepare` finds stay valid during the call.
pub unsafe fn blocking(
    call: &'static str,
    comm: usize,
    prepare: impl FnOnce(&Scene) -> Result<Prepared>,
) -> Result<()> {
    let job = {
        let mut guard = WORLD.enter();
        let world = &mut *guard;
        let comm = world.comm(comm)?;
        comm.check_not_revoked()?;
        let prepared = prepare(&Scene { world, comm })?;
        // A call that is refused is not counted: it may be repeated with better arguments, for which the others wait.
        let job = job(comm, comm.collective.next_tag(), prepared);
        if job.schedule.steps.is_empty() {
            return job.error.map_or(Ok(()), Err);
        }
        world.collectives.letters.begin(Name::of(&job));
        job
    };
    // SAFETY: the caller's promise.
    unsafe { complete(call, job) }
}

/// Runs a job to its end.
///
/// # Safety
/// As [`Run::new`].
unsafe fn complete(call: &'static str, job: Job) -> Result<()> {
    let waiting = Waiting { call, peer: None, tag: None, context: job.context };
    // SAFETY: the caller's promise.
    let mut run = unsafe { Run::new(job) };
    let mut patience = Patience::default();
    loop {
        let turn = WORLD.wait(waiting, |world| {
            loop {
                match run.advance(&mut world.endpoint) {
                    Turn::Blocked if inquiry::attend(world, &mut run, &mut patience) => {}
                    Turn::Blocked => return None,
                    Turn::Done => {
                        inquiry::end(world, &run);
                        return Some(Turn::Done);
                    }
                    turn => return Some(turn),
                }
            }
        });
        match turn {
            Turn::Outside(fold) => fold.perform(),
            Turn::Done | Turn::Blocked => return run.result(),
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
    prepare: impl FnOnce(&Scene) -> Result<Prepared>,
) -> Result<()> {
    let mut guard = WORLD.enter();
    let world = &mut *guard;
    let comm = world.comm(handle)?.clone();
    comm.check_not_revoked()?;
    let prepared = prepare(&Scene { world, comm: &comm })?;
    let job = job(&comm, comm.collective.next_tag(), prepared);
    // SAFETY: the caller's promise.
    let run = unsafe { Run::new(job) };
    let id = world.collectives.start(run, &mut world.endpoint);
    let new = world.requests.insert(Request::collective(id, handle));
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
    prepare: impl FnOnce(&Scene) -> Result<Prepared>,
) -> Result<()> {
    let mut guard = WORLD.enter();
    let world = &mut *guard;
    let comm = world.comm(handle)?.clone();
    comm.check_not_revoked()?;
    let prepared = prepare(&Scene { world, comm: &comm })?;
    let job = job(&comm, comm.collective.next_persistent_tag(), prepared);
    // SAFETY: the caller's promise.
    let run = unsafe { Run::new(job) };
    let id = world.collectives.keep(run);
    let new = world.requests.insert(Request::persistent_collective(id, handle));
    // SAFETY: the caller's promise.
    unsafe { *request = new };
    Ok(())
}

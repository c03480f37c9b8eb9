//! Fences, and post, start, complete and wait: the target takes part.

use super::passive::flush_ranks;
use super::{Access, HeldLock, await_members, check_assertion, find, wrong};
use crate::abi::{MODE_NOCHECK, MODE_NOPRECEDE, MODE_NOPUT, MODE_NOSTORE, MODE_NOSUCCEED};
use crate::error::{Class, Error, Result};
use crate::group::Group;
use crate::window::Window;
use crate::window::message::{WindowHead, WindowMessageKind};
use crate::world::{WORLD, look};
use std::sync::atomic::{Ordering, fence as memory_fence};
use weft_fabric::Peer;

pub fn fence(handle: usize, assert: i32) -> Result<()> {
    check_assertion(assert, &[MODE_NOSTORE, MODE_NOPUT, MODE_NOPRECEDE, MODE_NOSUCCEED])?;
    let (members, comm, refused) = {
        let mut guard = WORLD.enter();
        let (window, _) = find(&mut guard, handle)?;
        (window.targets.len(), window.comm.handle, window.refuse_within(window.open_epoch()))
    };
    if refused.is_err() {
        // The others are not left waiting for one that is wrong.
        return barrier(comm).and(refused);
    }
    let flushed = flush_ranks("MPI_Win_fence", handle, 0..members);
    barrier(comm)?;
    let mut guard = WORLD.enter();
    let (window, _) = find(&mut guard, handle)?;
    window.epochs.access = if assert & MODE_NOSUCCEED != 0 { Access::None } else { Access::Ready };
    flushed
}

/// All members meet; what each did before is seen by all after.
fn barrier(comm: usize) -> Result<()> {
    memory_fence(Ordering::SeqCst);
    // SAFETY: the window keeps its communicator.
    let met = unsafe { crate::coll::abi::barrier(comm) };
    memory_fence(Ordering::SeqCst);
    met.map_err(|error| Error { on: None, ..error })
}

/// The ranks of the members of `group` in the window.
fn ranks_of(window: &Window, group: &Group) -> Result<Vec<u32>> {
    let rank = |peer: Peer| {
        window.comm.local.rank_of(peer).ok_or_else(|| {
            let detail =
                format!("group holds process {} of the world, which is not in {}", peer.0, window.display_name());
            Error::new(Class::Group, detail)
        })
    };
    group.peers().map(rank).collect()
}

/// The group with this handle, as ranks of the window.
fn group(handle: usize, group: usize) -> Result<Vec<u32>> {
    let mut guard = WORLD.enter();
    let group = guard.groups.get(group)?.clone();
    ranks_of(find(&mut guard, handle)?.0, &group)
}

pub fn post(handle: usize, group_handle: usize, assert: i32) -> Result<()> {
    check_assertion(assert, &[MODE_NOCHECK, MODE_NOSTORE, MODE_NOPUT])?;
    find(&mut WORLD.enter(), handle)?;
    let ranks = group(handle, group_handle)?;
    let mut guard = WORLD.enter();
    let (window, endpoint) = find(&mut guard, handle)?;
    if window.epochs.exposure.is_some() {
        return window.refuse_within(Some("an exposure epoch begun by MPI_Win_post is open"));
    }
    let own = window.comm.rank as usize;
    if matches!(window.epochs.access, Access::LockAll { .. }) || window.epochs.locks[own] != HeldLock::No {
        return window.refuse_within(Some("this process's own memory is locked"));
    }
    if window.epochs.access == Access::Fence {
        return window.refuse_within(Some("an epoch begun by MPI_Win_fence is open"));
    }
    memory_fence(Ordering::SeqCst);
    ranks.iter().for_each(|&rank| window.tell(endpoint, rank as usize, WindowHead::new(WindowMessageKind::Post)));
    window.epochs.exposure = Some(ranks);
    Ok(())
}

pub fn start(handle: usize, group_handle: usize, assert: i32) -> Result<()> {
    check_assertion(assert, &[MODE_NOCHECK])?;
    find(&mut WORLD.enter(), handle)?;
    let ranks = group(handle, group_handle)?;
    {
        let mut guard = WORLD.enter();
        let (window, _) = find(&mut guard, handle)?;
        let is_begun = match window.epochs.access {
            Access::Start(_) | Access::Locks | Access::LockAll { .. } => window.open_epoch(),
            Access::Fence => Some("an epoch begun by MPI_Win_fence is open"),
            _ => None,
        };
        window.refuse_within(is_begun)?;
    }
    let places: Vec<usize> = ranks.iter().map(|&rank| rank as usize).collect();
    await_members("MPI_Win_start", handle, &places, |window, rank| window.service.others[rank].posts > 0)?;
    let mut guard = WORLD.enter();
    let (window, _) = find(&mut guard, handle)?;
    places.iter().for_each(|&rank| window.service.others[rank].posts -= 1);
    window.epochs.access = Access::Start(ranks);
    Ok(())
}

pub fn complete(handle: usize) -> Result<()> {
    let ranks = {
        let mut guard = WORLD.enter();
        let (window, _) = find(&mut guard, handle)?;
        let Access::Start(ranks) = &window.epochs.access else {
            return Err(wrong(format!("MPI_Win_start was not called on {}", window.display_name())));
        };
        ranks.clone()
    };
    let flushed = flush_ranks("MPI_Win_complete", handle, ranks.iter().map(|&rank| rank as usize));
    let mut guard = WORLD.enter();
    let (window, endpoint) = find(&mut guard, handle)?;
    window.epochs.access = Access::None;
    memory_fence(Ordering::SeqCst);
    ranks.iter().for_each(|&rank| window.tell(endpoint, rank as usize, WindowHead::new(WindowMessageKind::Complete)));
    endpoint.push_out();
    flushed
}

impl Window {
    /// Ends the exposure epoch if all origins have completed theirs.
    fn end_exposure(&mut self) -> bool {
        let others = &mut self.service.others;
        let Some(ranks) = &self.epochs.exposure else { return false };
        if ranks.iter().any(|&rank| others[rank as usize].completes == 0) {
            return false;
        }
        ranks.iter().for_each(|&rank| others[rank as usize].completes -= 1);
        self.epochs.exposure = None;
        memory_fence(Ordering::SeqCst);
        true
    }

    fn exposed_to(&self) -> Result<Vec<usize>> {
        match &self.epochs.exposure {
            Some(ranks) => Ok(ranks.iter().map(|&rank| rank as usize).collect()),
            None => Err(wrong(format!("MPI_Win_post was not called on {}", self.display_name()))),
        }
    }
}

pub fn wait(handle: usize) -> Result<()> {
    let ranks = find(&mut WORLD.enter(), handle)?.0.exposed_to()?;
    await_members("MPI_Win_wait", handle, &ranks, |window, rank| window.service.others[rank].completes > 0)?;
    find(&mut WORLD.enter(), handle)?.0.end_exposure();
    Ok(())
}

pub fn test(handle: usize) -> Result<bool> {
    find(&mut WORLD.enter(), handle)?.0.exposed_to()?;
    let ended = look(|world| find(world, handle).ok()?.0.end_exposure().then_some(()));
    Ok(ended.is_some())
}

/// A program looks in a loop at its memory, where the progress of this process may have to put what it waits for.
pub fn sync(handle: usize) -> Result<()> {
    find(&mut WORLD.enter(), handle)?;
    look(|_| None::<()>);
    memory_fence(Ordering::SeqCst);
    Ok(())
}

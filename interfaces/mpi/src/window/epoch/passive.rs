//! Locks and flushes: the target takes no part.

use super::{Access, HeldLock, await_members, check_assertion, find, wait_in_window, wrong};
use crate::abi::MODE_NOCHECK;
use crate::error::{Error, Result};
use crate::window::Window;
use crate::window::message::{WindowHead, WindowMessageKind};
use crate::window::words::{self, WhichLock};
use crate::world::WORLD;
use std::sync::atomic::{Ordering, fence as memory_fence};

/// Takes the lock of a rank.
fn take(call: &'static str, handle: usize, rank: usize, alone: bool) -> Result<()> {
    {
        let mut guard = WORLD.enter();
        let (window, endpoint) = find(&mut guard, handle)?;
        let me = window.comm.rank;
        match window.targets[rank].place {
            Some(place) if words::try_lock(window.words.word(place, WhichLock::Program), alone, me) => return Ok(()),
            Some(_) => {}
            None => {
                window.service.others[rank].locks_asked += 1;
                let head = WindowHead { position: u64::from(alone), ..WindowHead::new(WindowMessageKind::Lock) };
                window.tell(endpoint, rank, head);
            }
        }
    }
    let is_remote = find(&mut WORLD.enter(), handle)?.0.targets[rank].place.is_none();
    if is_remote {
        let is_granted = |window: &Window, rank: usize| {
            let other = &window.service.others[rank];
            other.granted == other.locks_asked
        };
        await_members(call, handle, &[rank], is_granted)?;
        let mut guard = WORLD.enter();
        let (window, _) = find(&mut guard, handle)?;
        return match window.service.others[rank].refused.take() {
            Some(class) => Err(Error::new(class, window.not_given_back(rank, None))),
            None => Ok(()),
        };
    }
    wait_in_window(call, handle, Some(rank), |world, looks| {
        let (window, endpoint) = find(world, handle).ok()?;
        let place = window.targets[rank].place?;
        if words::try_lock(window.words.word(place, WhichLock::Program), alone, window.comm.rank) {
            return Some(Ok(()));
        }
        looks.then(|| window.ended_holder(endpoint, rank, WhichLock::Program)).flatten().map(Err)
    })
}

/// Completes all that was sent to these ranks.
pub(super) fn flush_ranks(call: &'static str, handle: usize, ranks: impl Iterator<Item = usize>) -> Result<()> {
    let mut asked = Vec::new();
    {
        let mut guard = WORLD.enter();
        let (window, endpoint) = find(&mut guard, handle)?;
        for rank in ranks {
            if window.service.others[rank].is_quiet() {
                continue;
            }
            if window.service.others[rank].dirty {
                window.ask(endpoint, rank, WindowMessageKind::Flush);
            }
            asked.push(rank);
        }
    }
    // What was put is visible before anything that follows is read.
    memory_fence(Ordering::SeqCst);
    if asked.is_empty() { Ok(()) } else { await_answers(call, handle, &asked) }
}

#[cold]
fn await_answers(call: &'static str, handle: usize, ranks: &[usize]) -> Result<()> {
    let is_answered = |window: &Window, rank: usize| window.service.others[rank].is_answered();
    await_members(call, handle, ranks, is_answered)?;
    let mut guard = WORLD.enter();
    let (window, _) = find(&mut guard, handle)?;
    let name = window.display_name();
    let mut refused = Ok(());
    for &rank in ranks {
        if let Some(class) = window.service.others[rank].fault.take() {
            let detail = format!("rank {rank} of {name} refused an access: {}", class.text());
            refused = refused.and(Err(Error::new(class, detail)));
        }
    }
    refused
}

fn members(handle: usize) -> Result<usize> {
    Ok(find(&mut WORLD.enter(), handle)?.0.targets.len())
}

/// Gives the lock of a rank back, when all that was done under it is done.
fn give_back(call: &'static str, handle: usize, rank: usize, alone: bool) -> Result<()> {
    let is_remote = {
        let mut guard = WORLD.enter();
        let (window, endpoint) = find(&mut guard, handle)?;
        match window.targets[rank].place {
            Some(place) if window.service.others[rank].is_quiet() => {
                window.release_word(endpoint, place, WhichLock::Program, alone);
                return Ok(());
            }
            Some(_) => false,
            None => {
                window.ask(endpoint, rank, WindowMessageKind::Unlock);
                true
            }
        }
    };
    if is_remote {
        return await_answers(call, handle, &[rank]);
    }
    let flushed = flush_ranks(call, handle, std::iter::once(rank));
    let mut guard = WORLD.enter();
    let (window, endpoint) = find(&mut guard, handle)?;
    if let Some(place) = window.targets[rank].place {
        window.release_word(endpoint, place, WhichLock::Program, alone);
    }
    flushed
}

pub fn lock(handle: usize, alone: bool, rank: i32, assert: i32) -> Result<()> {
    const CALL: &str = "MPI_Win_lock";
    check_assertion(assert, &[MODE_NOCHECK])?;
    let unchecked = assert & MODE_NOCHECK != 0;
    let rank = {
        let mut guard = WORLD.enter();
        let (window, _) = find(&mut guard, handle)?;
        if rank == crate::abi::PROC_NULL {
            return Ok(());
        }
        let rank = window.rank(rank)?;
        if rank == window.comm.rank as usize && window.epochs.exposure.is_some() {
            return window.refuse_within(window.open_epoch());
        }
        if window.epochs.access != Access::Locks {
            window.check_beginning()?;
        } else if window.epochs.locks[rank] != HeldLock::No {
            return Err(wrong(format!("rank {rank} of {} is locked already", window.display_name())));
        }
        rank
    };
    if !unchecked {
        take(CALL, handle, rank, alone)?;
    }
    let mut guard = WORLD.enter();
    let (window, _) = find(&mut guard, handle)?;
    window.epochs.access = Access::Locks;
    window.epochs.held += 1;
    window.epochs.locks[rank] = match (unchecked, alone) {
        (true, _) => HeldLock::Unchecked,
        (_, true) => HeldLock::Alone,
        (_, false) => HeldLock::Together,
    };
    Ok(())
}

pub fn unlock(handle: usize, rank: i32) -> Result<()> {
    const CALL: &str = "MPI_Win_unlock";
    let (rank, held) = {
        let mut guard = WORLD.enter();
        let (window, _) = find(&mut guard, handle)?;
        if rank == crate::abi::PROC_NULL {
            return Ok(());
        }
        let rank = window.rank(rank)?;
        let held = match window.epochs.access {
            Access::Locks => window.epochs.locks[rank],
            _ => HeldLock::No,
        };
        if held == HeldLock::No {
            return Err(wrong(format!("rank {rank} of {} is not locked", window.display_name())));
        }
        window.epochs.locks[rank] = HeldLock::No;
        window.epochs.held -= 1;
        if window.epochs.held == 0 {
            window.epochs.access = Access::None;
        }
        (rank, held)
    };
    match held {
        HeldLock::Unchecked => flush_ranks(CALL, handle, std::iter::once(rank)),
        _ => give_back(CALL, handle, rank, held == HeldLock::Alone),
    }
}

pub fn lock_all(handle: usize, assert: i32) -> Result<()> {
    const CALL: &str = "MPI_Win_lock_all";
    check_assertion(assert, &[MODE_NOCHECK])?;
    let unchecked = assert & MODE_NOCHECK != 0;
    {
        let mut guard = WORLD.enter();
        let (window, _) = find(&mut guard, handle)?;
        window.check_beginning()?;
        // This process's own memory is one of those.
        window.refuse_within(window.open_epoch())?;
    }
    if !unchecked {
        for rank in 0..members(handle)? {
            if let Err(error) = take(CALL, handle, rank, false) {
                for taken in 0..rank {
                    // What is wrong is said already.
                    let _ = give_back(CALL, handle, taken, false);
                }
                return Err(error);
            }
        }
    }
    find(&mut WORLD.enter(), handle)?.0.epochs.access = Access::LockAll { unchecked };
    Ok(())
}

pub fn unlock_all(handle: usize) -> Result<()> {
    const CALL: &str = "MPI_Win_unlock_all";
    let unchecked = {
        let mut guard = WORLD.enter();
        let (window, _) = find(&mut guard, handle)?;
        let Access::LockAll { unchecked } = window.epochs.access else {
            return Err(wrong(format!("MPI_Win_lock_all was not called on {}", window.display_name())));
        };
        window.epochs.access = Access::None;
        unchecked
    };
    let members = members(handle)?;
    let flushed = flush_ranks(CALL, handle, 0..members);
    if !unchecked {
        // All of them, whatever became of one: nobody could give the others back later.
        return (0..members).fold(flushed, |so_far, rank| so_far.and(give_back(CALL, handle, rank, false)));
    }
    flushed
}

/// Completes operations on one rank, or on all.
pub fn flush(call: &'static str, handle: usize, rank: Option<i32>) -> Result<()> {
    let ranks = {
        let mut guard = WORLD.enter();
        let (window, _) = find(&mut guard, handle)?;
        match rank {
            Some(crate::abi::PROC_NULL) => return Ok(()),
            Some(rank) => {
                let rank = window.rank(rank)?;
                window.check_passive(Some(rank))?;
                rank..rank + 1
            }
            None => {
                window.check_passive(None)?;
                0..window.targets.len()
            }
        }
    };
    flush_ranks(call, handle, ranks)
}

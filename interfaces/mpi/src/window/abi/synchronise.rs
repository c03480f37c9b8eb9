//! Synchronisation (MPI 5.0, section 12.5).

use crate::abi::{LOCK_EXCLUSIVE, LOCK_SHARED};
use crate::error::{Class, Error, Result};
use crate::window::epoch;

pub unsafe fn fence(assert: i32, win: usize) -> Result<()> {
    epoch::fence(win, assert)
}

pub unsafe fn post(group: usize, assert: i32, win: usize) -> Result<()> {
    epoch::post(win, group, assert)
}

pub unsafe fn start(group: usize, assert: i32, win: usize) -> Result<()> {
    epoch::start(win, group, assert)
}

pub unsafe fn complete(win: usize) -> Result<()> {
    epoch::complete(win)
}

pub unsafe fn wait(win: usize) -> Result<()> {
    epoch::wait(win)
}

pub fn test(win: usize) -> Result<i32> {
    Ok(epoch::test(win)? as i32)
}

pub unsafe fn lock(kind: i32, rank: i32, assert: i32, win: usize) -> Result<()> {
    let alone = match kind {
        LOCK_EXCLUSIVE => true,
        LOCK_SHARED => false,
        _ => {
            let detail = format!("lock_type {kind} is neither MPI_LOCK_SHARED nor MPI_LOCK_EXCLUSIVE");
            return Err(Error::new(Class::Locktype, detail));
        }
    };
    epoch::lock(win, alone, rank, assert)
}

pub unsafe fn unlock(rank: i32, win: usize) -> Result<()> {
    epoch::unlock(win, rank)
}

pub unsafe fn lock_all(assert: i32, win: usize) -> Result<()> {
    epoch::lock_all(win, assert)
}

pub unsafe fn unlock_all(win: usize) -> Result<()> {
    epoch::unlock_all(win)
}

pub unsafe fn flush(rank: i32, win: usize) -> Result<()> {
    epoch::flush("MPI_Win_flush", win, Some(rank))
}

pub unsafe fn flush_all(win: usize) -> Result<()> {
    epoch::flush("MPI_Win_flush_all", win, None)
}

pub unsafe fn flush_local(rank: i32, win: usize) -> Result<()> {
    epoch::flush("MPI_Win_flush_local", win, Some(rank))
}

pub unsafe fn flush_local_all(win: usize) -> Result<()> {
    epoch::flush("MPI_Win_flush_local_all", win, None)
}

pub unsafe fn sync(win: usize) -> Result<()> {
    epoch::sync(win)
}

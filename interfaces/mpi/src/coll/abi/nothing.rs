//! Calls in which this member has no byte, answered before anything is prepared. What is doubtful, of a derived
//! datatype or in place is left to the general way, which comes to the same end.

use super::shared::{team, vector};
use crate::abi::{Described, IN_PLACE};
use crate::datatype::Datatype;
use crate::error::Result;
use crate::request::SENT;
use crate::tool::wants_collectives;
use crate::world::WORLD;
use std::ffi::c_void;
use weft_fabric::settings::Algorithms;

fn is_fit(datatype: usize) -> bool {
    Datatype::predefined(datatype).is_some_and(|datatype| datatype.check_communication().is_ok())
}

/// Whether a call with one side is surely one of nothing.
#[inline]
pub(super) fn is_empty(data: Described) -> bool {
    data.count == 0 && data.buffer as usize != IN_PLACE && is_fit(data.datatype)
}

/// The same of a call that gives and takes.
#[inline]
pub(super) fn are_empty(given: Described, taken: Described) -> bool {
    is_empty(given)
        && taken.count == 0
        && taken.buffer as usize != IN_PLACE
        && (taken.datatype == given.datatype || is_fit(taken.datatype))
}

/// Whether a reduction is surely one of nothing, by an operation that goes with the datatype.
#[inline]
pub(super) fn folds_nothing(sent: *const c_void, received: Described, op: usize) -> bool {
    // Only what goes by shared memory in the general way, too: each way counts in its own terms.
    let fits = |op| Datatype::predefined(received.datatype).is_some_and(|datatype| vector(op, datatype, 0).is_some());
    is_empty(Described { buffer: sent, ..received })
        && received.buffer as usize != IN_PLACE
        && WORLD.enter().ops.get(op).is_ok_and(fits)
}

fn is_rank(root: Option<i32>, size: u32) -> bool {
    root.is_none_or(|root| u32::try_from(root).is_ok_and(|root| root < size))
}

/// Takes part in a blocking call in which we have nothing, where it is one on shared memory; it is counted where
/// `counts`. False: the general way has to do it.
#[inline]
pub(super) fn is_over(
    call: &'static str,
    comm: usize,
    root: Option<i32>,
    counts: bool,
    is_prescribed: impl FnOnce(&Algorithms) -> bool,
) -> Result<bool> {
    if wants_collectives() {
        return Ok(false);
    }
    let Some((comm, team)) = team(comm, call, is_prescribed)? else { return Ok(false) };
    if !is_rank(root, team.size) {
        return Ok(false);
    }
    if counts {
        comm.collective.next_tag();
    }
    team.bring_nothing();
    Ok(true)
}

/// The same for a nonblocking call, whose schedule would have no step.
///
/// # Safety
/// `request` may be written.
#[inline]
pub(super) unsafe fn is_complete(comm: usize, root: Option<i32>, request: *mut usize) -> Result<bool> {
    let world = WORLD.enter();
    let Ok(comm) = world.comm(comm) else { return Ok(false) };
    if wants_collectives() || comm.is_inter() || !is_rank(root, comm.size()) {
        return Ok(false);
    }
    comm.check_not_revoked()?;
    comm.collective.next_tag();
    // SAFETY: the caller's promise.
    unsafe { *request = SENT };
    Ok(true)
}

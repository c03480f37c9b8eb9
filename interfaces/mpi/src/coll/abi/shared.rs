//! The blocking calls: shared memory where it serves, else messages.

use super as messages;
use super::nothing::{folds_nothing, is_empty, is_over};
use crate::abi::Counts;
use crate::abi::{BYTE, IN_PLACE};
use crate::coll::shared::{Alike, BUFFER_BYTES, Differs, Team, Vector};
use crate::comm::Comm;
use crate::datatype::Datatype;
use crate::error::{Error, Result};
use crate::op::{Op, Predefined};
use crate::world::WORLD;
use std::ffi::c_void;
use std::ops::Deref;
use std::sync::Arc;
use weft_fabric::settings::Algorithms;

/// An address for elements of any type where there are none.
const NOWHERE: usize = 64;
/// More than this is for messages to refuse.
const MOST_BYTES: u64 = i64::MAX as u64;
/// Longest broadcast that goes through shared memory among more than two.
const LONG_BCAST_BYTES: usize = 4 << 20;

/// The team of a communicator, if it has one. A handle that is not valid has none: messages say what is wrong.
/// Nor is there one for an operation whose algorithm is prescribed, which is one of messages.
pub(super) fn team(
    handle: usize,
    call: &'static str,
    is_prescribed: impl FnOnce(&Algorithms) -> bool,
) -> Result<Option<(&'static Comm, &'static Team)>> {
    let comm: *const Comm = {
        let world = WORLD.enter();
        match world.comm(handle) {
            Ok(comm) if !is_prescribed(&world.endpoint.settings().algorithms) => Arc::as_ptr(comm),
            _ => return Ok(None),
        }
    };
    // SAFETY: the communicator lives during the call: it is a member's own call on it, and freeing it meanwhile is
    // against the standard. The team lives as long as the communicator, and nobody keeps it beyond the call.
    let comm = unsafe { &*comm };
    comm.check_not_revoked()?;
    Ok(comm.collective.team.team(comm, call)?.map(|team| (comm, team)))
}

pub unsafe fn barrier(comm: usize) -> Result<()> {
    match team(comm, "MPI_Barrier", |_| false)? {
        Some((_, team)) => team.barrier().map_err(|differs| differs.error(0)),
        // SAFETY: the caller's promise.
        None => unsafe { messages::barrier_by_messages(comm) },
    }
}

/// A datatype during a call. Predefined ones are not counted, which would cost more than a short collective's copy.
pub(super) enum Held {
    Predefined(&'static Datatype),
    Derived(Datatype),
}

impl Deref for Held {
    type Target = Datatype;
    fn deref(&self) -> &Datatype {
        match self {
            Self::Predefined(datatype) => datatype,
            Self::Derived(datatype) => datatype,
        }
    }
}

pub(super) fn datatype(handle: usize) -> Option<Held> {
    let held = match Datatype::predefined(handle) {
        Some(datatype) => Held::Predefined(datatype),
        None => Held::Derived(WORLD.enter().types.get(handle).ok()?.clone()),
    };
    held.check_communication().is_ok().then_some(held)
}

pub unsafe fn bcast(buffer: *mut c_void, count: i64, handle: usize, root: i32, comm: usize) -> Result<()> {
    if is_empty((buffer, count, handle)) && is_over("MPI_Bcast", comm, Some(root), true, |named| named.bcast.is_some())?
    {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe {
        match shared_bcast(buffer, count, handle, root, comm)? {
            true => Ok(()),
            false => messages::bcast_by_messages(buffer, count, handle, root, comm),
        }
    }
}

unsafe fn shared_bcast(buffer: *mut c_void, count: i64, handle: usize, root: i32, comm: usize) -> Result<bool> {
    let Some(datatype) = datatype(handle) else { return Ok(false) };
    let bytes = datatype.packed_size(count).unwrap_or(u64::MAX);
    let doubtful = buffer as usize == IN_PLACE || (buffer.is_null() && bytes > 0 && datatype.named().is_some());
    if count < 0 || bytes > MOST_BYTES || doubtful {
        return Ok(false);
    }
    let handle = comm;
    let Some((comm, team)) = team(comm, "MPI_Bcast", |named| named.bcast.is_some())? else { return Ok(false) };
    let Ok(root) = u32::try_from(root) else { return Ok(false) };
    if root >= team.size {
        return Ok(false);
    }
    let bytes = bytes as usize;
    // Between two, a message is copied once.
    let most = if team.size > 2 { LONG_BCAST_BYTES } else { BUFFER_BYTES };
    let here = bytes <= most;
    let alike = match datatype.contiguous_span(count) {
        _ if !here => team.announce_bcast(root, bytes),
        // SAFETY: the span lies in the program's buffer.
        Some((offset, _)) => unsafe { team.bcast(root, buffer.cast::<u8>().wrapping_offset(offset as isize), bytes) },
        // SAFETY: the caller's promise.
        None => unsafe { packed_bcast(team, buffer, count, &datatype, root, bytes) },
    };
    match alike {
        Ok(()) => {
            // A member that brings nothing does not see that the root sends messages, so every call counts one.
            if here {
                comm.collective.next_tag();
            }
            Ok(here)
        }
        Err(differs) => Err(refuse_bcast(differs, bytes, team.size, comm, handle)),
    }
}

/// The error of a broadcast whose members differ. A root that has one other member sends messages without looking at its
/// length, and waits until they are taken.
#[cold]
fn refuse_bcast(differs: Differs, mine: usize, members: u32, comm: &Comm, handle: usize) -> Error {
    let Differs::Length { member, bytes: sent } = differs else { return differs.error(mine) };
    let sent = sent.and_then(|bytes| usize::try_from(bytes).ok());
    let mut room = Vec::<u8>::new();
    if let Some(sent) = sent.filter(|bytes| *bytes > BUFFER_BYTES && members == 2)
        && room.try_reserve_exact(sent).is_ok()
    {
        // SAFETY: there is room for the message; what it holds is not read.
        let taken =
            unsafe { messages::bcast_by_messages(room.as_mut_ptr().cast(), sent as i64, BYTE, member as i32, handle) };
        if let Err(error) = taken {
            return error;
        }
    } else {
        comm.collective.next_tag();
    }
    differs.error(mine)
}

/// A broadcast of `bytes` that do not lie in one piece.
///
/// # Safety
/// The program's buffer holds `count` elements.
unsafe fn packed_bcast(
    team: &Team,
    buffer: *mut c_void,
    count: i64,
    datatype: &Datatype,
    root: u32,
    bytes: usize,
) -> Alike {
    let mut packed = vec![0u8; bytes];
    // SAFETY: the caller's promise; `packed` holds the bytes of the elements.
    unsafe {
        if team.me == root {
            datatype.pack(buffer.cast(), count, 0, &mut packed);
        }
        team.bcast(root, packed.as_mut_ptr(), bytes)?;
        if team.me != root {
            datatype.unpack(buffer.cast(), count, 0, &packed);
        }
    }
    Ok(())
}

/// What a reduction folds (nothing, if that is asked for), if shared memory can do it: a predefined operation on a predefined type.
pub(super) fn vector(op: &Op, datatype: &Datatype, count: i64) -> Option<Vector> {
    let size = usize::try_from(datatype.size()).ok()?;
    let count = usize::try_from(count).ok()?;
    // More bytes than there can be are for messages to refuse.
    count.checked_mul(size)?;
    let fits = size > 0 && datatype.named().is_some() && datatype.extent() == datatype.size();
    match op {
        Op::Predefined(Predefined::Replace | Predefined::NoOp) | Op::User { .. } => None,
        Op::Predefined(op) => op.kernel(datatype).ok().filter(|_| fits).map(|kernel| Vector { kernel, count, size }),
    }
}

fn operation(handle: usize) -> Option<Op> {
    WORLD.enter().ops.get(handle).ok().copied()
}

/// Where the contribution stands, and the result; `None` when the buffers are not what the standard allows.
fn buffers(sent: *const c_void, received: *mut c_void, bytes: usize) -> Option<(*const u8, *mut u8)> {
    if bytes == 0 {
        return Some((std::ptr::without_provenance(NOWHERE), std::ptr::without_provenance_mut(NOWHERE)));
    }
    let input = if sent as usize == IN_PLACE { received.cast_const() } else { sent };
    let doubtful =
        input.is_null() || received.is_null() || sent == received.cast_const() || received as usize == IN_PLACE;
    (!doubtful).then_some((input.cast(), received.cast()))
}

pub unsafe fn allreduce(
    sent: *const c_void,
    received: *mut c_void,
    count: i64,
    handle: usize,
    op: usize,
    comm: usize,
) -> Result<()> {
    let is_nothing = folds_nothing(sent, received, count, handle, op);
    if is_nothing && is_over("MPI_Allreduce", comm, None, false, |named| named.allreduce.is_some())? {
        return Ok(());
    }
    if let (Some(datatype), Some(op)) = (datatype(handle), operation(op))
        && let Some(vector) = vector(&op, &datatype, count)
        && let Some((input, output)) = buffers(sent, received, vector.bytes())
        && let Some((_, team)) = team(comm, "MPI_Allreduce", |named| named.allreduce.is_some())?
    {
        // SAFETY: the program's buffers hold `count` elements.
        let alike = unsafe { team.allreduce(vector, input, output) };
        return alike.map_err(|differs| differs.error(vector.bytes()));
    }
    // SAFETY: the caller's promise.
    unsafe { messages::allreduce_by_messages(sent, received, count, handle, op, comm) }
}

pub unsafe fn reduce(
    sent: *const c_void,
    received: *mut c_void,
    count: i64,
    handle: usize,
    op: usize,
    root: i32,
    comm: usize,
) -> Result<()> {
    let is_nothing = folds_nothing(sent, received, count, handle, op);
    if is_nothing && is_over("MPI_Reduce", comm, Some(root), false, |named| named.reduce.is_some())? {
        return Ok(());
    }
    if let (Some(datatype), Some(function)) = (datatype(handle), operation(op))
        && let Some(vector) = vector(&function, &datatype, count)
        && let Some((_, team)) = team(comm, "MPI_Reduce", |named| named.reduce.is_some())?
        && let Some(root) = u32::try_from(root).ok().filter(|root| *root < team.size)
    {
        let bytes = vector.bytes();
        // The others bring no output; one that is surely not their input stands for it.
        let output = if team.me == root { received } else { std::ptr::without_provenance_mut(NOWHERE) };
        let place = buffers(sent, output, bytes).filter(|_| team.me == root || bytes == 0 || sent as usize != IN_PLACE);
        if let Some((input, output)) = place {
            // Between two, a message is copied once.
            let here = team.size > 2 || bytes <= BUFFER_BYTES;
            let alike = match here {
                // SAFETY: the program's buffers hold `count` elements; the output counts at the root only.
                true => unsafe { team.reduce(root, vector, input, output) },
                false => team.announce("MPI_Reduce", bytes, |_| bytes),
            };
            alike.map_err(|differs| differs.error(bytes))?;
            if here {
                return Ok(());
            }
        }
    }
    // SAFETY: the caller's promise.
    unsafe { messages::reduce_by_messages(sent, received, count, handle, op, root, comm) }
}

/// A reduce-scatter on shared memory of a vector of which each member gets `share` elements; `None` where it goes by
/// messages.
///
/// # Safety
/// The program's buffers are as the arguments say.
unsafe fn shared_reduce_scatter(
    call: &'static str,
    (sent, received): (*const c_void, *mut c_void),
    share: impl Fn(u32) -> i64,
    (handle, op): (usize, usize),
    comm: usize,
) -> Result<Option<()>> {
    let (Some(datatype), Some(op)) = (datatype(handle), operation(op)) else { return Ok(None) };
    let Some((_, team)) = team(comm, call, |named| named.reduce_scatter.is_some())? else { return Ok(None) };
    let sum = |total: i64, member| total.checked_add(share(member)).filter(|_| share(member) >= 0);
    let Some(total) = (0..team.size).try_fold(0, sum) else { return Ok(None) };
    let Some(vector) = vector(&op, &datatype, total) else { return Ok(None) };
    // Who has no share needs no place for it.
    let nowhere = NOWHERE as *mut c_void;
    let received = if share(team.me) == 0 && sent as usize != IN_PLACE { nowhere } else { received };
    let Some((input, output)) = buffers(sent, received, vector.bytes()) else { return Ok(None) };
    // SAFETY: the caller's promise.
    let alike = unsafe { team.reduce_scatter(vector, |member| share(member) as usize, input, output) };
    alike.map(Some).map_err(|differs| differs.error(vector.bytes()))
}

pub unsafe fn reduce_scatter(
    sent: *const c_void,
    received: *mut c_void,
    counts: Counts,
    handle: usize,
    op: usize,
    comm: usize,
) -> Result<()> {
    // SAFETY: the caller's promise; the array has a count for each member, as the standard demands.
    unsafe {
        let (buffers, share) = ((sent, received), |member: u32| counts.get(member as usize));
        let shared = match counts.is_null() {
            true => None,
            false => shared_reduce_scatter("MPI_Reduce_scatter", buffers, share, (handle, op), comm)?,
        };
        match shared {
            Some(()) => Ok(()),
            None => messages::reduce_scatter_by_messages(sent, received, counts, handle, op, comm),
        }
    }
}

pub unsafe fn reduce_scatter_block(
    sent: *const c_void,
    received: *mut c_void,
    count: i64,
    handle: usize,
    op: usize,
    comm: usize,
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        let call = "MPI_Reduce_scatter_block";
        match shared_reduce_scatter(call, (sent, received), |_| count, (handle, op), comm)? {
            Some(()) => Ok(()),
            None => messages::reduce_scatter_block_by_messages(sent, received, count, handle, op, comm),
        }
    }
}

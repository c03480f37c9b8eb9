//! The blocking barrier, broadcast and reductions: on shared memory where that serves, else by messages.

use crate::abi::{BYTE, Described, IN_PLACE};
use crate::coll::Team;
use crate::coll::call::blocking;
use crate::coll::prepare::movement;
use crate::coll::prepare::reduction::{Folded, Shares};
use crate::coll::team::{Refuses, team_of};
use crate::comm::Comm;
use crate::datatype::Datatype;
use crate::error::{Error, Result};
use crate::op::{Op, PredefinedOperation};
use crate::world::WORLD;
use std::ffi::c_void;
use std::ops::Deref;
use std::sync::Arc;
use weft_collective::shared::{Alike, BUFFER_BYTES, Differs, Vector};
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
    Ok(team_of(comm, call)?.map(|team| (comm, team)))
}

/// # Safety
/// The program's buffers are as the arguments say, here and below.
pub unsafe fn barrier(call: &'static str, comm: usize, messages: impl FnOnce() -> Result<()>) -> Result<()> {
    let Some((_, team)) = team(comm, call, |_| false)? else { return messages() };
    team.barrier().map_err(|differs| differs.error(0))
}

/// A datatype during a call. Predefined ones are not counted, which would cost more than a short collective's copy.
pub(super) enum HeldDatatype {
    Predefined(&'static Datatype),
    Derived(Datatype),
}

impl Deref for HeldDatatype {
    type Target = Datatype;
    fn deref(&self) -> &Datatype {
        match self {
            Self::Predefined(datatype) => datatype,
            Self::Derived(datatype) => datatype,
        }
    }
}

pub(super) fn datatype(handle: usize) -> Option<HeldDatatype> {
    let held = match Datatype::predefined(handle) {
        Some(datatype) => HeldDatatype::Predefined(datatype),
        None => HeldDatatype::Derived(WORLD.enter().types.get(handle).ok()?.clone()),
    };
    held.check_communication().is_ok().then_some(held)
}

pub unsafe fn bcast(
    call: &'static str,
    comm: usize,
    data: Described,
    root: i32,
    messages: impl FnOnce() -> Result<()>,
) -> Result<()> {
    // SAFETY: the caller's promise.
    if unsafe { shared_bcast(call, comm, data, root)? } { Ok(()) } else { messages() }
}

/// # Safety
/// As [`bcast`].
unsafe fn shared_bcast(call: &'static str, comm: usize, data: Described, root: i32) -> Result<bool> {
    let Described { buffer, count, datatype: handle } = data;
    let buffer = buffer.cast_mut();
    let Some(datatype) = datatype(handle) else { return Ok(false) };
    let bytes = datatype.packed_size(count).unwrap_or(u64::MAX);
    let doubtful = buffer as usize == IN_PLACE || (buffer.is_null() && bytes > 0 && datatype.named().is_some());
    if count < 0 || bytes > MOST_BYTES || doubtful {
        return Ok(false);
    }
    let handle = comm;
    let Some((comm, team)) = team(comm, call, |named| named.bcast.is_some())? else { return Ok(false) };
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

/// The error of a broadcast whose members differ. A root that has one other member sends messages without looking at
/// its length, and waits until they are taken.
#[cold]
fn refuse_bcast(differs: Differs, mine: usize, members: u32, comm: &Comm, handle: usize) -> Error {
    let Differs::Length { member, bytes: sent } = differs else { return differs.error(mine) };
    let sent = sent.and_then(|bytes| usize::try_from(bytes).ok());
    let mut room = Vec::<u8>::new();
    if let Some(sent) = sent.filter(|bytes| *bytes > BUFFER_BYTES && members == 2)
        && room.try_reserve_exact(sent).is_ok()
    {
        let data = Described { buffer: room.as_ptr().cast(), count: sent as i64, datatype: BYTE };
        // SAFETY: there is room for the message; what it holds is not read.
        let taken = unsafe { blocking("MPI_Bcast", handle, |scene| movement::bcast(scene, data, member as i32)) };
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

/// What a reduction folds (nothing, if that is asked for), if shared memory can do it: a predefined operation on a
/// predefined type.
pub(super) fn vector(op: &Op, datatype: &Datatype, count: i64) -> Option<Vector> {
    let size = usize::try_from(datatype.size()).ok()?;
    let count = usize::try_from(count).ok()?;
    // More bytes than there can be are for messages to refuse.
    count.checked_mul(size)?;
    let fits = size > 0 && datatype.named().is_some() && datatype.extent() == datatype.size();
    match op {
        Op::Predefined(PredefinedOperation::Replace | PredefinedOperation::NoOp) | Op::User { .. } => None,
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

// Its arguments would go round twice otherwise.
#[inline(always)]
pub unsafe fn allreduce(
    call: &'static str,
    comm: usize,
    folded: Folded,
    messages: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let Folded { sent, received: Described { buffer: received, count, datatype: handle }, op } = folded;
    if let (Some(datatype), Some(op)) = (datatype(handle), operation(op))
        && let Some(vector) = vector(&op, &datatype, count)
        && let Some((input, output)) = buffers(sent, received.cast_mut(), vector.bytes())
        && let Some((_, team)) = team(comm, call, |named| named.allreduce.is_some())?
    {
        // SAFETY: the program's buffers hold `count` elements.
        let alike = unsafe { team.allreduce(vector, input, output) };
        return alike.map_err(|differs| differs.error(vector.bytes()));
    }
    messages()
}

pub unsafe fn reduce(
    call: &'static str,
    comm: usize,
    folded: Folded,
    root: i32,
    messages: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let Folded { sent, received: Described { buffer: received, count, datatype: handle }, op } = folded;
    let (Some(datatype), Some(op)) = (datatype(handle), operation(op)) else { return messages() };
    let Some(vector) = vector(&op, &datatype, count) else { return messages() };
    let Some((_, team)) = team(comm, call, |named| named.reduce.is_some())? else { return messages() };
    let Some(root) = u32::try_from(root).ok().filter(|root| *root < team.size) else { return messages() };
    let bytes = vector.bytes();
    // The others bring no output; one that is surely not their input stands for it.
    let output = if team.me == root { received.cast_mut() } else { std::ptr::without_provenance_mut(NOWHERE) };
    let place = buffers(sent, output, bytes).filter(|_| team.me == root || bytes == 0 || sent as usize != IN_PLACE);
    let Some((input, output)) = place else { return messages() };
    // Between two, a message is copied once.
    let here = team.size > 2 || bytes <= BUFFER_BYTES;
    let alike = match here {
        // SAFETY: the program's buffers hold `count` elements; the output counts at the root only.
        true => unsafe { team.reduce(root, vector, input, output) },
        false => team.announce(call, bytes, |_| bytes),
    };
    alike.map_err(|differs| differs.error(bytes))?;
    if here { Ok(()) } else { messages() }
}

/// Of a vector of which each member gets its share.
pub unsafe fn reduce_scatter(
    call: &'static str,
    comm: usize,
    folded: Folded,
    shares: Shares,
    messages: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let share = |member: u32| match shares {
        Shares::Equal(count) => count,
        // SAFETY: the array has a count for each member, as the standard demands.
        Shares::Listed(counts) => unsafe { counts.get(member as usize) },
    };
    if matches!(shares, Shares::Listed(counts) if counts.is_null()) {
        return messages();
    }
    let Folded { sent, received: Described { buffer: received, datatype: handle, .. }, op } = folded;
    let (Some(datatype), Some(op)) = (datatype(handle), operation(op)) else { return messages() };
    let Some((_, team)) = team(comm, call, |named| named.reduce_scatter.is_some())? else { return messages() };
    let sum = |total: i64, member| total.checked_add(share(member)).filter(|_| share(member) >= 0);
    let Some(total) = (0..team.size).try_fold(0, sum) else { return messages() };
    let Some(vector) = vector(&op, &datatype, total) else { return messages() };
    // Who has no share needs no place for it.
    let nowhere = NOWHERE as *mut c_void;
    let received = if share(team.me) == 0 && sent as usize != IN_PLACE { nowhere } else { received.cast_mut() };
    let Some((input, output)) = buffers(sent, received, vector.bytes()) else { return messages() };
    // SAFETY: the caller's promise.
    let alike = unsafe { team.reduce_scatter(vector, |member| share(member) as usize, input, output) };
    alike.map_err(|differs| differs.error(vector.bytes()))
}

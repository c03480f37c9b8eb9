//! The blocking calls: shared memory where it serves, else messages.

use super as messages;
use crate::abi::{BYTE, IN_PLACE};
use crate::coll::shared::{Alike, BUFFER_BYTES, Differs, Team, Vector};
use crate::datatype::Datatype;
use crate::error::{Error, Result};
use crate::op::{Op, Predefined};
use crate::world::WORLD;
use std::ffi::c_void;
use std::ops::Deref;
use std::sync::Arc;

/// An address for elements of any type where there are none.
const NOWHERE: usize = 64;
/// More than this is for messages to refuse.
const MOST_BYTES: u64 = i64::MAX as u64;

/// The team of a communicator, if it has one. A handle that is not valid has none: messages say what is wrong.
fn team(handle: usize, call: &'static str) -> Result<Option<&'static Team>> {
    let comm: *const crate::comm::Comm = match WORLD.enter().comm(handle) {
        Ok(comm) => Arc::as_ptr(comm),
        Err(_) => return Ok(None),
    };
    // SAFETY: the communicator lives during the call: it is a member's own call on it, and freeing it meanwhile is
    // against the standard. The team lives as long as the communicator, and nobody keeps it beyond the call.
    let comm = unsafe { &*comm };
    comm.check_not_revoked()?;
    comm.collective.team.team(comm, call)
}

pub unsafe fn barrier(comm: usize) -> Result<()> {
    match team(comm, "MPI_Barrier")? {
        Some(team) => team.barrier().map_err(|differs| differs.error(0)),
        // SAFETY: the caller's promise.
        None => unsafe { messages::barrier_by_messages(comm) },
    }
}

/// A datatype during a call. Predefined ones are not counted, which would cost more than a short collective's copy.
enum Held {
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

fn datatype(handle: usize) -> Option<Held> {
    let held = match Datatype::predefined(handle) {
        Some(datatype) => Held::Predefined(datatype),
        None => Held::Derived(WORLD.enter().types.get(handle).ok()?.clone()),
    };
    held.check_communication().is_ok().then_some(held)
}

pub unsafe fn bcast(buffer: *mut c_void, count: i64, handle: usize, root: i32, comm: usize) -> Result<()> {
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
    let Some(team) = team(comm, "MPI_Bcast")? else { return Ok(false) };
    let Ok(root) = u32::try_from(root) else { return Ok(false) };
    if root >= team.size {
        return Ok(false);
    }
    let (bytes, here) = (bytes as usize, bytes <= BUFFER_BYTES as u64);
    let alike = match datatype.contiguous_span(count) {
        _ if !here => team.announce_bcast(root, bytes),
        // SAFETY: the span lies in the program's buffer.
        Some((offset, _)) => unsafe { team.bcast(root, buffer.cast::<u8>().wrapping_offset(offset as isize), bytes) },
        // SAFETY: the caller's promise.
        None => unsafe { packed_bcast(team, buffer, count, &datatype, root, bytes) },
    };
    match alike {
        Ok(()) => Ok(here),
        Err(differs) => Err(refuse_bcast(differs, bytes, comm)),
    }
}

/// The error of a broadcast whose root brings another length. Where the root sends messages it waits until they are
/// taken, and other ranks wait for what we pass on.
#[cold]
fn refuse_bcast(differs: Differs, mine: usize, comm: usize) -> Error {
    let Differs::Length { member, bytes: sent } = differs else { return differs.error(mine) };
    let sent = sent.and_then(|bytes| usize::try_from(bytes).ok()).filter(|bytes| *bytes > BUFFER_BYTES);
    let mut room = Vec::<u8>::new();
    if let Some(sent) = sent
        && room.try_reserve_exact(sent).is_ok()
    {
        // SAFETY: there is room for the message; what it holds is not read.
        let taken =
            unsafe { messages::bcast_by_messages(room.as_mut_ptr().cast(), sent as i64, BYTE, member as i32, comm) };
        if let Err(error) = taken {
            return error;
        }
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
fn vector(op: &Op, datatype: &Datatype, count: i64) -> Option<Vector> {
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
    if let (Some(datatype), Some(op)) = (datatype(handle), operation(op))
        && let Some(vector) = vector(&op, &datatype, count)
        && let Some((input, output)) = buffers(sent, received, vector.bytes())
        && let Some(team) = team(comm, "MPI_Allreduce")?
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
    if let (Some(datatype), Some(function)) = (datatype(handle), operation(op))
        && let Some(vector) = vector(&function, &datatype, count)
        && let Some(team) = team(comm, "MPI_Reduce")?
        && let Some(root) = u32::try_from(root).ok().filter(|root| *root < team.size)
    {
        let bytes = vector.bytes();
        // The others bring no output; one that is surely not their input stands for it.
        let output = if team.me == root { received } else { std::ptr::without_provenance_mut(NOWHERE) };
        let place = buffers(sent, output, bytes).filter(|_| team.me == root || bytes == 0 || sent as usize != IN_PLACE);
        if let Some((input, output)) = place {
            let here = bytes <= BUFFER_BYTES;
            let alike = match here {
                // SAFETY: the program's buffers hold `count` elements; the output counts at the root only.
                true => unsafe { team.reduce(root, vector, input, output) },
                false => team.announce_reduce(root, bytes),
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

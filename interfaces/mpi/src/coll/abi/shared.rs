//! The blocking calls: shared memory where it serves, else messages.

use super as messages;
use crate::abi::IN_PLACE;
use crate::coll::shared::{BUFFER_BYTES, Team, Vector};
use crate::datatype::Datatype;
use crate::error::Result;
use crate::op::{Op, Predefined};
use crate::world::WORLD;
use std::ffi::c_void;
use std::ops::Deref;
use std::sync::Arc;

/// The team of a communicator, if it has one. A handle that is not valid has none: messages say what is wrong.
fn team(handle: usize, call: &'static str) -> Result<Option<&'static Team>> {
    let comm: *const crate::comm::Comm = match WORLD.enter().comm(handle) {
        Ok(comm) => Arc::as_ptr(comm),
        Err(_) => return Ok(None),
    };
    // SAFETY: the communicator lives during the call: it is a member's own call on it, and freeing it meanwhile is
    // against the standard. The team lives as long as the communicator, and nobody keeps it beyond the call.
    let comm = unsafe { &*comm };
    comm.collective.team.team(comm, call)
}

pub(crate) unsafe fn barrier(comm: usize) -> Result<()> {
    match team(comm, "MPI_Barrier")? {
        Some(team) => {
            team.barrier();
            Ok(())
        }
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

pub(crate) unsafe fn bcast(buffer: *mut c_void, count: i64, handle: usize, root: i32, comm: usize) -> Result<()> {
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
    let doubtful = buffer as usize == IN_PLACE || (buffer.is_null() && datatype.named().is_some());
    if count < 0 || bytes == 0 || bytes > BUFFER_BYTES as u64 || doubtful {
        return Ok(false);
    }
    let Some(team) = team(comm, "MPI_Bcast")? else { return Ok(false) };
    let Ok(root) = u32::try_from(root) else { return Ok(false) };
    if root >= team.size {
        return Ok(false);
    }
    let bytes = bytes as usize;
    match datatype.contiguous_span(count) {
        // SAFETY: the span lies in the program's buffer.
        Some((offset, _)) => unsafe { team.bcast(root, buffer.cast::<u8>().wrapping_offset(offset as isize), bytes) },
        None => {
            let mut packed = vec![0u8; bytes];
            // SAFETY: the program's buffer holds `count` elements; `packed` holds their bytes.
            unsafe {
                if team.me == root {
                    datatype.pack(buffer.cast(), count, 0, &mut packed);
                }
                team.bcast(root, packed.as_mut_ptr(), bytes);
                if team.me != root {
                    datatype.unpack(buffer.cast(), count, 0, &packed);
                }
            }
        }
    }
    Ok(true)
}

/// What a reduction folds, if shared memory can do it: a predefined operation on a predefined type.
fn vector<'a>(op: &'a Op, datatype: &'a Datatype, count: i64) -> Option<Vector<'a>> {
    let size = usize::try_from(datatype.size()).ok()?;
    let count = usize::try_from(count).ok()?;
    // More bytes than there can be are for messages to refuse.
    count.checked_mul(size)?;
    let fits = size > 0 && count > 0 && datatype.named().is_some() && datatype.extent() == datatype.size();
    let folds = matches!(op, Op::Predefined(op) if !matches!(op, Predefined::Replace | Predefined::NoOp));
    (fits && folds && op.check(datatype).is_ok()).then_some(Vector { op, datatype, count, size })
}

fn operation(handle: usize) -> Option<Op> {
    WORLD.enter().ops.get(handle).ok().copied()
}

/// Where the contribution stands, and the result; `None` when the buffers are not what the standard allows.
fn buffers(sent: *const c_void, received: *mut c_void) -> Option<(*const u8, *mut u8)> {
    let input = if sent as usize == IN_PLACE { received.cast_const() } else { sent };
    let doubtful =
        input.is_null() || received.is_null() || sent == received.cast_const() || received as usize == IN_PLACE;
    (!doubtful).then_some((input.cast(), received.cast()))
}

pub(crate) unsafe fn allreduce(
    sent: *const c_void,
    received: *mut c_void,
    count: i64,
    handle: usize,
    op: usize,
    comm: usize,
) -> Result<()> {
    if let (Some(datatype), Some(op), Some((input, output))) =
        (datatype(handle), operation(op), buffers(sent, received))
        && let Some(vector) = vector(&op, &datatype, count)
        && let Some(team) = team(comm, "MPI_Allreduce")?
    {
        // SAFETY: the program's buffers hold `count` elements.
        unsafe { team.allreduce(vector, input, output) };
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe { messages::allreduce_by_messages(sent, received, count, handle, op, comm) }
}

pub(crate) unsafe fn reduce(
    sent: *const c_void,
    received: *mut c_void,
    count: i64,
    handle: usize,
    op: usize,
    root: i32,
    comm: usize,
) -> Result<()> {
    if let (Some(datatype), Some(function)) = (datatype(handle), operation(op))
        && let Some(vector) = vector(&function, &datatype, count).filter(|v| v.bytes() <= BUFFER_BYTES)
        && let Some(team) = team(comm, "MPI_Reduce")?
        && let Some(root) = u32::try_from(root).ok().filter(|root| *root < team.size)
    {
        let place = if team.me == root { buffers(sent, received) } else { Some((sent.cast(), std::ptr::null_mut())) };
        if let Some((input, output)) = place.filter(|(input, _)| !input.is_null() && *input as usize != IN_PLACE) {
            // SAFETY: the program's buffers hold `count` elements; the output counts at the root only.
            unsafe { team.reduce(root, vector, input, output) };
            return Ok(());
        }
    }
    // SAFETY: the caller's promise.
    unsafe { messages::reduce_by_messages(sent, received, count, handle, op, root, comm) }
}

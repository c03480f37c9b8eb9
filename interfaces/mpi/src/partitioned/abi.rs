//! Bodies of the calls of partitioned communication.

use super::{Introduction, OperationId, PartitionedOperation, PartitionedSide, Partner, Receive, Send};
use crate::abi::{Described, slice_of};
use crate::comm::Comm;
use crate::error::{Class, Error, Result};
use crate::point::Buffer;
use crate::request::Request;
use crate::world::{WORLD, World, look};
use std::ffi::c_void;

/// The buffer of an operation, the number of its partitions, and the bytes of each.
fn described(
    world: &World,
    (buffer, partitions, count, datatype): (*const c_void, i32, i64, usize),
    has_partner: bool,
) -> Result<(Buffer, u32, usize)> {
    let negative = |what: &str, value: i64| Error::new(Class::Count, format!("{what} {value} is negative"));
    let number = u32::try_from(partitions)
        .map_err(|_| Error::new(Class::Arg, format!("partitions {partitions} is negative")))?;
    if count < 0 {
        return Err(negative("count", count));
    }
    let too_many = || {
        Error::new(Class::Count, format!("{partitions} partitions of {count} elements are more than 2^63-1 elements"))
    };
    let elements = count.checked_mul(i64::from(partitions)).ok_or_else(too_many)?;
    let what = Described { buffer, count: elements, datatype };
    let buffer = Buffer::with_partner(&world.types, what, "datatype", has_partner)?;
    let bytes = if number == 0 { 0 } else { buffer.bytes() / number as usize };
    Ok((buffer, number, bytes))
}

/// The partner of an operation; `None` for `MPI_PROC_NULL`. There are no wildcards (MPI 5.0, section 4.2.1).
///
/// # Errors
/// A rank outside the communicator, a negative tag.
fn partner(world: &World, comm: &Comm, rank: i32, tag: i32) -> Result<Option<Partner>> {
    let route = crate::point::destination(&world.comms, comm.handle, rank, tag)?;
    Ok(route.map(|route| Partner { peer: route.to, context: comm.context, source: route.envelope.source, tag }))
}

pub fn psend_init(
    buf: *const c_void,
    partitions: i32,
    count: i64,
    datatype: usize,
    dest: i32,
    tag: i32,
    comm: usize,
    info: usize,
) -> Result<usize> {
    crate::info::copy_of(info)?;
    let mut guard = WORLD.enter();
    let world = &mut *guard;
    let partner = partner(world, &world.comm(comm)?.clone(), dest, tag)?;
    let what = (buf, partitions, count, datatype);
    let (buffer, partitions, bytes) = described(world, what, partner.is_some())?;
    let first_tag = world.partitioned.claim_tags(partitions).ok_or_else(|| {
        let detail =
            format!("partitions {partitions}: the partitioned sends that are not freed leave too few tags in a row");
        Error::new(Class::Other, detail)
    })?;
    let mut send = Send::new(partner, Introduction { first_tag, partitions, bytes }, Some(buffer))?;
    send.introduce(&mut world.endpoint);
    Ok(insert(world, PartitionedSide::Send(send), comm))
}

pub fn precv_init(
    buf: *mut c_void,
    partitions: i32,
    count: i64,
    datatype: usize,
    source: i32,
    tag: i32,
    comm: usize,
    info: usize,
) -> Result<usize> {
    crate::info::copy_of(info)?;
    let mut guard = WORLD.enter();
    let world = &mut *guard;
    let partner = partner(world, &world.comm(comm)?.clone(), source, tag)?;
    let what = (buf.cast_const(), partitions, count, datatype);
    let (buffer, partitions, bytes) = described(world, what, partner.is_some())?;
    let receive = Receive::new(partner, source, Some(buffer), partitions, bytes, &mut world.endpoint);
    Ok(insert(world, PartitionedSide::Receive(receive), comm))
}

fn insert(world: &mut World, side: PartitionedSide, comm: usize) -> usize {
    let id = world.partitioned.insert(side, comm);
    // The introduction may be under way.
    world.partitioned.note_moving(id);
    world.requests.insert(Request::partitioned(id, comm))
}

/// The partitioned operation of a request.
fn operation(world: &World, handle: usize) -> Result<OperationId> {
    match world.requests.get(handle)? {
        Request::Partitioned(partitioned) => Ok(partitioned.id),
        _ => Err(other_kind(handle, "partitioned")),
    }
}

fn other_kind(handle: usize, kind: &str) -> Error {
    Error::new(Class::Request, format!("request ({handle:#x}) is no {kind} operation"))
}

/// Hands over the partitions: all or, if one of them cannot be, none.
fn hand_over(handle: usize, places: impl Iterator<Item = i32> + Clone) -> Result<()> {
    let mut guard = WORLD.enter();
    let world = &mut *guard;
    let id = operation(world, handle)?;
    let World { partitioned, endpoint, .. } = world;
    let operation = partitioned.get(id);
    let comm = operation.comm;
    let send = active_send(operation, handle).map_err(|error| error.on(comm))?;
    let result = places.clone().try_for_each(|partition| send.check(partition).map(drop)).and_then(|()| {
        places.clone().try_for_each(|partition| {
            // SAFETY: the program leaves the partition alone until the request is complete.
            send.check(partition).and_then(|place| unsafe { send.hand_over(place, endpoint) })
        })
    });
    partitioned.note_moving(id);
    result.map_err(|error| error.on(comm))
}

/// The active send of a request.
fn active_send(operation: &mut PartitionedOperation, handle: usize) -> Result<&mut Send> {
    match &mut operation.side {
        PartitionedSide::Receive(_) => Err(other_kind(handle, "partitioned send")),
        PartitionedSide::Send(_) if !operation.started => {
            let detail = format!("request ({handle:#x}) is not active; partitions can be ready after MPI_Start");
            Err(Error::new(Class::Request, detail))
        }
        PartitionedSide::Send(send) => Ok(send),
    }
}

pub unsafe fn pready(partition: i32, request: usize) -> Result<()> {
    hand_over(request, std::iter::once(partition))
}

pub unsafe fn pready_range(low: i32, high: i32, request: usize) -> Result<()> {
    if low > high {
        let detail = format!("partition_low {low} is above partition_high {high}");
        return Err(Error::new(Class::Arg, detail));
    }
    hand_over(request, low..=high)
}

pub unsafe fn pready_list(length: i32, partitions: *const i32, request: usize) -> Result<()> {
    // SAFETY: the program's array of `length` partitions.
    let partitions = unsafe { slice_of(partitions, length, "length")? };
    let mut sorted = partitions.to_vec();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        let detail = format!("array_of_partitions holds {} twice; each partition can be ready once", twice[0]);
        return Err(Error::new(Class::Arg, detail));
    }
    hand_over(request, partitions.iter().copied())
}

/// A partition of a receive that is not active has arrived, as waiting for such a request is waiting for nothing.
pub fn parrived(request: usize, partition: i32) -> Result<i32> {
    let arrived = look(|world| match has_arrived(world, request, partition) {
        Ok(false) => None,
        answer => Some(answer),
    });
    Ok(arrived.unwrap_or(Ok(false))? as i32)
}

fn has_arrived(world: &World, handle: usize, partition: i32) -> Result<bool> {
    let operation = world.partitioned.look_at(operation(world, handle)?);
    let arrived = match &operation.side {
        PartitionedSide::Send(_) => Err(other_kind(handle, "partitioned receive")),
        PartitionedSide::Receive(receive) => {
            receive.has_arrived(partition).map(|arrived| arrived || !operation.started)
        }
    };
    arrived.map_err(|error| error.on(operation.comm))
}

//! Bodies of the functions of failure mitigation.

use super::round::decided;
use super::shrink::{Shrink, Store, agree_beside, agreed, begin_agreement, shrink_beside};
use crate::comm::agree::wait;
use crate::comm::{Comm, abi::of};
use crate::error::{Class, Error, Result};
use crate::group::{Group, abi as groups};
use crate::world::{WORLD, World, look};
use std::sync::Arc;
use weft_fabric::Peer;

/// Learns what is new. A program that asks until somebody is lost or has revoked waits, although no call of it does:
/// what it has sent goes on, since that may be what the other one waits for.
fn learn() {
    look(|world| super::look(world).then_some(()));
}

/// The communicator becomes useless, here and in the end in all members.
pub unsafe fn comm_revoke(comm: usize) -> Result<()> {
    let comm = of(comm)?;
    super::spread::revoke(&mut WORLD.enter(), &comm);
    Ok(())
}

pub fn comm_is_revoked(comm: usize) -> Result<i32> {
    let comm = of(comm)?;
    learn();
    Ok(comm.failure.is_revoked() as i32)
}

/// All losses that are known now.
pub unsafe fn comm_failure_ack(comm: usize) -> Result<()> {
    let comm = of(comm)?;
    learn();
    WORLD.enter().failures.acknowledge(&comm, usize::MAX);
    Ok(())
}

pub fn comm_failure_get_acked(comm: usize) -> Result<usize> {
    let comm = of(comm)?;
    let mut world = WORLD.enter();
    let lost = world.failures.acknowledged_of(&comm);
    Ok(insert(&mut world, lost))
}

pub fn comm_get_failed(comm: usize) -> Result<usize> {
    let comm = of(comm)?;
    learn();
    let mut world = WORLD.enter();
    let lost = world.failures.lost_of(&comm);
    Ok(insert(&mut world, lost))
}

fn insert(world: &mut World, lost: Vec<Peer>) -> usize {
    let lost = Arc::new(Group::new(lost, world.endpoint.me()));
    groups::insert(world, lost)
}

/// The first `wanted` of the group that [`comm_get_failed`] gives.
pub fn comm_ack_failed(comm: usize, wanted: i32) -> Result<i32> {
    let comm = of(comm)?;
    let negative = |_| Error::new(Class::Arg, format!("num_to_ack {wanted} is negative"));
    let wanted = usize::try_from(wanted).map_err(negative)?;
    learn();
    let now = WORLD.enter().failures.acknowledge(&comm, wanted);
    Ok(now as i32)
}

pub unsafe fn comm_agree(comm: usize, flag: *mut i32) -> Result<()> {
    let comm = of(comm)?;
    // SAFETY: the program's flag.
    let mine = unsafe { *flag };
    let name = begin_agreement(&mut WORLD.enter(), &comm, mine);
    let value = wait("MPIX_Comm_agree", comm.context, |world| decided(world, name));
    let (result, error) = agreed(&value);
    // SAFETY: as above.
    unsafe { *flag = result };
    error.map_or(Ok(()), Err)
}

pub unsafe fn comm_iagree(comm: usize, flag: *mut i32) -> Result<usize> {
    let comm = of(comm)?;
    // SAFETY: the program's flag, which is its own again when the request is complete.
    Ok(agree_beside(&mut WORLD.enter(), &comm, unsafe { *flag }, store_in(flag as usize)))
}

/// Stores the result of [`comm_iagree`] at this address, which the program keeps until the request is complete.
fn store_in(flag: usize) -> Store {
    // SAFETY: the program's flag, as said.
    Box::new(move |result| unsafe { *(flag as *mut i32) = result })
}

pub fn comm_shrink(comm: usize) -> Result<usize> {
    let parent: Arc<Comm> = of(comm)?;
    let mut shrink = Shrink::new(&mut WORLD.enter(), &parent);
    let shrunk = wait("MPIX_Comm_shrink", parent.context, |world| shrink.poll(world));
    let handle = shrink.finish(&mut WORLD.enter(), &shrunk);
    Ok(handle)
}

/// The handles of the communicator and of the request.
pub fn comm_ishrink(comm: usize) -> Result<(usize, usize)> {
    let parent = of(comm)?;
    Ok(shrink_beside(&mut WORLD.enter(), &parent))
}

//! What communicators, and their other members, are told of losses, revocations and ends.

use super::GOES_ON;
use super::letters::{AgreementName, END};
use crate::comm::{COLLECTIVE, CONSTRUCTION, CONTEXTS_EACH, Comm};
use crate::world::{WORLD, World};
use std::sync::atomic::Ordering;
use weft_fabric::Fault;

/// Tells communicators, also new ones, what they do not know yet.
pub(super) fn tell_all(world: &mut World) {
    let losses = world.failures.lost.len() as u32;
    if losses == 0 && !world.failures.news {
        return;
    }
    for comm in world.comms.every().cloned().collect::<Vec<_>>() {
        if world.failures.revoked.contains(&comm.context) {
            revoke(world, &comm);
        }
        if comm.failure.told.swap(losses, Ordering::Relaxed) < losses {
            tell(world, &comm);
        }
    }
}

/// The communicator may have lost a member.
fn tell(world: &mut World, comm: &Comm) {
    let lost = world.failures.lost_of(comm).len();
    if lost == 0 {
        return;
    }
    for context in [COLLECTIVE, CONSTRUCTION].map(|kind| comm.context + kind) {
        if world.endpoint.closing(context).is_none() {
            world.endpoint.close_context(context, Fault::PeerLost);
        }
    }
    let acknowledged = comm.failure.acknowledged.load(Ordering::Relaxed) as usize;
    if acknowledged < lost && !world.failures.stalled.contains(&comm.context) {
        world.failures.stalled.push(comm.context);
    }
}

/// Revokes a communicator here, and tells all other members, the first time.
pub(super) fn revoke(world: &mut World, comm: &Comm) {
    if comm.failure.revoked.swap(true, Ordering::Relaxed) {
        return;
    }
    world.failures.revoked.insert(comm.context);
    close(world, comm.context);
    announce_revocation(world, comm);
}

/// Closes a communicator that is revoked, for good: its context is never used again, and others may have sent before
/// they hear of it.
pub(super) fn close(world: &mut World, context: u32) {
    (0..CONTEXTS_EACH).for_each(|kind| world.endpoint.close_context(context + kind, Fault::Withdrawn));
}

/// Where the job goes on without the members of a communicator, tells them to end; false where the job is to end.
pub(crate) fn end_members(handle: usize, code: i32) -> bool {
    // A handler of a signal may have interrupted this very thread where it holds the monitor: elsewhere nothing is
    // asked.
    if !GOES_ON.load(Ordering::Relaxed) {
        return false;
    }
    let mut world = WORLD.enter();
    let Ok(comm) = world.comm(handle).cloned() else { return false };
    let goes_on = world.endpoint.keeps_going() && comm.union().len() < world.endpoint.world_size() as usize;
    if goes_on {
        announce_end(&mut world, &comm, code);
    }
    goes_on
}

/// Nobody in this process has the communicator any more.
pub(crate) fn forget(world: &mut World, comm: &Comm) {
    world.failures.stalled.retain(|context| *context != comm.context);
}

/// Tells all other members of a communicator that it is revoked.
fn announce_revocation(world: &mut World, comm: &Comm) {
    let name = AgreementName { context: comm.context, number: 0 };
    let me = world.endpoint.me();
    for to in comm.union().into_iter().filter(|peer| *peer != me) {
        world.failures.letters.post(&mut world.endpoint, to, Box::new([name.word()]));
    }
}

/// Tells all other members of a communicator to end, as far as the letters leave at once.
fn announce_end(world: &mut World, comm: &Comm, code: i32) {
    let name = AgreementName { context: comm.context, number: END };
    let me = world.endpoint.me();
    for to in comm.union().into_iter().filter(|peer| *peer != me) {
        world.failures.letters.post(&mut world.endpoint, to, Box::new([name.word(), u64::from(code as u32)]));
    }
    world.endpoint.push_out();
    while world.endpoint.progress() {}
}

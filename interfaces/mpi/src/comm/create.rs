//! New communicators out of old ones (MPI 5.0, sections 7.4.2 and 7.6.2).

use super::agree::{Agreed, Circle, agree};
use super::{Comm, CommDraft, TAGGED_CONSTRUCTION};
use crate::error::{Class, Error, Result};
use crate::group::Group;
use crate::topology::Topology;
use crate::world::{WORLD, World};
use std::sync::Arc;
use weft_fabric::Peer;

/// Gives a new communicator its handle.
pub fn insert(world: &mut World, draft: CommDraft, context: u32) -> usize {
    let handle = world.comms.reserve();
    world.point.note_session(handle, draft.session);
    world.comms.fill(handle, Arc::new(draft.finish(context, handle)));
    handle
}

/// The circle of all processes of the communicator, and the calling process.
pub fn everyone(comm: &Comm) -> (Circle, Peer) {
    let me = WORLD.enter().endpoint.me();
    (Circle::of(comm, me), me)
}

/// What each process said, beside the process.
fn pairs(circle: &Circle, agreed: Agreed) -> (u32, Vec<(Peer, [u64; 3])>) {
    (agreed.context, circle.members.iter().copied().zip(agreed.said).collect())
}

/// Finishes a communicator of `local` (and `remote`), unless the calling process is not in it or a group is empty.
/// `None` is `MPI_COMM_NULL`.
fn settle(parent: &Comm, me: Peer, local: Vec<Peer>, remote: Option<Vec<Peer>>, context: u32) -> Option<usize> {
    let mut world = WORLD.enter();
    let empty = remote.as_ref().is_some_and(Vec::is_empty);
    if empty || !local.contains(&me) {
        world.contexts.release(context);
        return None;
    }
    let local = Arc::new(Group::new(local, me));
    let remote = remote.map(|remote| Arc::new(Group::new(remote, me)));
    let draft = CommDraft { remote, ..CommDraft::from_parent(local, parent) };
    Some(insert(&mut world, draft, context))
}

/// `MPI_Comm_create`: the processes of `group`, a subset of the local group.
pub fn subset(call: &'static str, parent: &Comm, group: &Group) -> Result<Option<usize>> {
    check_subset(parent, group)?;
    let (circle, me) = everyone(parent);
    let place = group.rank_of(me).map_or(0, |rank| u64::from(rank) + 1);
    let agreed = agree(call, circle.clone(), [place, 0, 0])?;
    let (context, said) = pairs(&circle, agreed);
    let remote = parent.remote.as_ref().map(|remote| {
        let mut members: Vec<_> =
            said.iter().filter(|(peer, says)| remote.rank_of(*peer).is_some() && says[0] > 0).collect();
        members.sort_by_key(|(_, says)| says[0]);
        members.into_iter().map(|&(peer, _)| peer).collect()
    });
    Ok(settle(parent, me, group.peers().collect(), remote, context))
}

fn check_subset(parent: &Comm, group: &Group) -> Result<()> {
    match group.peers().find(|&peer| parent.local.rank_of(peer).is_none()) {
        None => Ok(()),
        Some(peer) => {
            let detail =
                format!("group holds process {} of the world, which is not in {}", peer.0, parent.display_name());
            Err(Error::new(Class::Group, detail))
        }
    }
}

/// `MPI_Comm_create_group`: only the processes of `group` take part.
pub fn from_group(call: &'static str, parent: &Comm, group: &Group, tag: i32) -> Result<Option<usize>> {
    check_subset(parent, group)?;
    let me = WORLD.enter().endpoint.me();
    let Some(rank) = group.mine() else { return Ok(None) };
    let members: Vec<Peer> = group.peers().collect();
    let circle =
        Circle { members: members.clone(), me: rank as usize, context: parent.context + TAGGED_CONSTRUCTION, tag };
    let agreed = agree(call, circle, [0; 3])?;
    Ok(settle(parent, me, members, None, agreed.context))
}

/// `MPI_Comm_split`: processes of one color, ordered by key and old rank; `None` takes part and gets nothing.
pub fn split(call: &'static str, parent: &Comm, color: Option<u32>, key: i32) -> Result<Option<usize>> {
    let (circle, me) = everyone(parent);
    let wanted = color.map_or(0, |color| u64::from(color) + 1);
    let agreed = agree(call, circle.clone(), [wanted, key as u32 as u64, 0])?;
    let (context, said) = pairs(&circle, agreed);
    let side = |group: &Group| {
        let same = said.iter().filter(|(peer, says)| says[0] == wanted && group.rank_of(*peer).is_some());
        let mut members: Vec<_> =
            same.map(|&(peer, says)| (says[1] as u32 as i32, group.rank_of(peer), peer)).collect();
        members.sort_unstable();
        members.into_iter().map(|(_, _, peer)| peer).collect::<Vec<_>>()
    };
    if color.is_none() {
        WORLD.enter().contexts.release(context);
        return Ok(None);
    }
    let remote = parent.remote.as_ref().map(|remote| side(remote));
    Ok(settle(parent, me, side(&parent.local), remote, context))
}

/// The lowest rank of the local group whose process shares memory with this one: the color of `MPI_COMM_TYPE_SHARED`.
/// Both groups of an intercommunicator have to agree, so there it is the number of the host.
pub fn shared_memory_color(comm: &Comm) -> u32 {
    let world = WORLD.enter();
    if comm.is_inter() {
        let host = world.endpoint.host_of(world.endpoint.me());
        let of_two_jobs = comm.union().into_iter().any(|peer| world.endpoint.is_foreign(peer));
        // The numbers of hosts are those of one job. Processes of two share no memory, and groups that both have to
        // have members of a color get none.
        return if of_two_jobs && !comm.local_first { u32::MAX - 1 - host } else { host };
    }
    let mut peers = comm.local.peers();
    peers.position(|peer| world.endpoint.is_local(peer)).unwrap_or(comm.rank as usize) as u32
}

/// A communicator of the first `size` processes with a topology; `None` for the others.
pub fn with_topology(call: &'static str, parent: &Comm, size: u32, topology: Topology) -> Result<Option<usize>> {
    let (circle, me) = everyone(parent);
    let agreed = agree(call, circle, [0; 3])?;
    let mut world = WORLD.enter();
    if parent.rank >= size {
        world.contexts.release(agreed.context);
        return Ok(None);
    }
    let group = Group::new(parent.local.peers().take(size as usize).collect(), me);
    let draft = CommDraft { topology: Some(topology), ..CommDraft::from_parent(Arc::new(group), parent) };
    Ok(Some(insert(&mut world, draft, agreed.context)))
}

/// What a duplicate takes over besides attributes.
pub fn duplicate(parent: &Comm) -> CommDraft {
    let mut draft = CommDraft::from_parent(parent.local.clone(), parent);
    draft.remote = parent.remote.clone();
    draft.topology = parent.topology.clone();
    draft.info = parent.state().info.clone();
    draft
}

/// `MPI_Intercomm_merge`: one group; the processes that said `high` come last.
pub fn merge(call: &'static str, parent: &Comm, high: bool) -> Result<usize> {
    let Some(remote) = &parent.remote else {
        return Err(Error::new(Class::Comm, "intercomm is an intracommunicator"));
    };
    let (circle, me) = everyone(parent);
    let agreed = agree(call, circle.clone(), [high as u64, 0, 0])?;
    let (context, said) = pairs(&circle, agreed);
    let says_high = |group: &Group| {
        let first = said.iter().find(|(peer, _)| group.rank_of(*peer) == Some(0));
        first.is_some_and(|(_, says)| says[0] != 0)
    };
    let members = match (says_high(&parent.local), says_high(remote)) {
        (false, true) => parent.local.peers().chain(remote.peers()).collect(),
        (true, false) => remote.peers().chain(parent.local.peers()).collect(),
        _ => parent.union(),
    };
    let merged = settle(parent, me, members, None, context);
    Ok(merged.expect("every process of the intercommunicator is in it"))
}

//! Communicators out of groups, without one to make them from (MPI 5.0, sections 7.4.2 and 7.6.2).
//!
//! The members speak on a context of their own, under a tag made of the program's string. Its whole sum travels with
//! the agreement, so that two strings of one tag are not taken for each other silently.

use super::agree::{Circle, agree};
use super::bridge::{self, Bridge};
use super::{Comm, CommDraft, FROM_GROUPS, create};
use crate::errhandler::handler::Handler;
use crate::error::{Class, Error, Result};
use crate::group::Group;
use crate::info::Info;
use crate::world::WORLD;
use std::sync::Arc;
use weft_fabric::Peer;

/// FNV-1a of the kind of construction and the program's string.
fn sum(kind: u8, tag: &str) -> u64 {
    let bytes = std::iter::once(kind).chain(tag.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

fn tag_of(sum: u64) -> i32 {
    ((sum ^ sum >> 32) & 0x7fff_ffff) as i32
}

/// The members agree on a context. The calling process has to be one of them.
fn context(call: &'static str, group: &Group, sum: u64) -> Result<u32> {
    let outside = || Error::new(Class::Group, "the calling process is not in the group");
    let me = group.mine().ok_or_else(outside)? as usize;
    let circle = Circle { members: group.peers().collect(), me, context: FROM_GROUPS, tag: tag_of(sum) };
    let agreed = agree(call, circle, [sum, 0, 0])?;
    if agreed.said.iter().all(|says| says[0] == sum) {
        return Ok(agreed.context);
    }
    WORLD.enter().contexts.release(agreed.context);
    Err(Error::new(Class::NotSame, "the members of the group did not pass the same stringtag"))
}

/// `MPI_Comm_create_from_group`.
pub fn intra(call: &'static str, group: Arc<Group>, tag: &str, info: Info, errhandler: &Arc<Handler>) -> Result<usize> {
    let context = context(call, &group, sum(0, tag))?;
    let draft = CommDraft { info, errhandler: errhandler.clone(), ..CommDraft::new(group) };
    Ok(create::insert(&mut WORLD.enter(), draft, context))
}

/// `MPI_Intercomm_create_from_groups`; `to` is the other leader, in the leader only.
pub fn inter(
    call: &'static str,
    group: Arc<Group>,
    leader: u32,
    to: Option<Peer>,
    tag: &str,
    info: Info,
    errhandler: &Arc<Handler>,
) -> Result<usize> {
    let context = context(call, &group, sum(1, tag))?;
    // A communicator of the local group, for as long as the other one is being made.
    let draft = CommDraft { info, errhandler: errhandler.clone(), ..CommDraft::new(group) };
    let local: Comm = draft.finish(context, 0);
    let bridge = to.map(|to| Bridge::to(to, FROM_GROUPS, tag_of(sum(2, tag))));
    let made = bridge::create(&local, leader, bridge);
    WORLD.enter().contexts.release(context);
    made.map_err(|error| if error.class == Class::Comm { Error::new(Class::Group, error.detail) } else { error })
}

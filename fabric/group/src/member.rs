//! The numbers of members and of groups, as they travel. A process that becomes a member again is another member.

use std::sync::Arc;
use weft_fabric::ordered::{GroupMember, HostNumber};
use weft_fabric::{Endpoint, Peer};

/// Bits of a member's process; its turn is above.
const PEER_BITS: u32 = 20;
const PEER: u32 = (1 << PEER_BITS) - 1;
/// Bits of a group's number in a tag; the turn of the receiver is above.
const GROUP_BITS: u32 = 19;
const GROUP: u32 = (1 << GROUP_BITS) - 1;
/// Turns, after which they begin again.
const TURNS: u32 = 1 << 11;

pub const MEMBER_BYTES: usize = 4;
pub const HIGHEST_GROUP: u32 = GROUP;

/// The member that a process is when it joins a group for that time.
pub fn member(of: Peer, turn: u32) -> GroupMember {
    GroupMember(of.0 & PEER | (turn % TURNS) << PEER_BITS)
}

#[inline]
pub fn peer(member: GroupMember) -> Peer {
    Peer(member.0 & PEER)
}

/// Which host each member is on; none where all processes of the job are on one.
pub fn hosts(endpoint: &Endpoint) -> Option<HostNumber> {
    let all: Vec<u32> = (0..endpoint.world_size()).map(|process| endpoint.host_of(Peer(process))).collect();
    let one = all.iter().all(|host| *host == all[0]);
    // The job's own processes are numbered from 0 on.
    let host_of = move |member| all.get(peer(member).0 as usize).copied().unwrap_or(u32::MAX);
    (!one).then(|| Arc::new(host_of) as HostNumber)
}

/// The tag of words to a member of a group.
#[inline]
pub fn tag(group: u32, to: GroupMember) -> i32 {
    (group & GROUP | (to.0 >> PEER_BITS) << GROUP_BITS) as i32
}

/// The group that a tag names, and whether it is for that member.
#[inline]
pub fn is_for(tag: i32, group: u32, member: GroupMember) -> bool {
    tag == self::tag(group, member)
}

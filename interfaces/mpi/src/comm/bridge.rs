//! `MPI_Intercomm_create`: two groups meet through their leaders (MPI 5.0, section 7.6.2).
//!
//! Where all of both are of one job, they tell each other ranks of that job; otherwise cards ([`super::cards`]).

use super::agree::{higher, open, proposal, tell, wait};
use super::create::insert;
use super::exchange::lost;
use super::{Comm, CommDraft, TAGGED_CONSTRUCTION, cards};
use crate::error::{Class, Error, Result};
use crate::failure::lost_class;
use crate::group::Group;
use crate::world::WORLD;
use std::cell::Cell;
use std::sync::Arc;
use weft_fabric::{Envelope, Peer, RequestId, Selector, SendMode};

const CALL: &str = "MPI_Intercomm_create";
/// Most members of the other group: what its leader says is a claim.
const MOST_MEMBERS: usize = 1 << 16;

/// A leader's way to the other leader.
pub struct Bridge {
    to: Peer,
    context: u32,
    tag: i32,
    /// The other one waits for nothing more: it is lost, has given up, or has found the same error.
    is_over: Cell<bool>,
}

/// An error that all of both groups find alike, so that nobody waits for anybody.
fn known_to_all(bridge: Option<&Bridge>, error: Error) -> Error {
    bridge.iter().for_each(|bridge| bridge.is_over.set(true));
    error
}

impl Bridge {
    pub fn new(peer_comm: &Comm, remote_leader: i32, tag: i32) -> Result<Self> {
        let to = peer_comm.peer(remote_leader)?;
        Ok(Self::to(to, peer_comm.context + TAGGED_CONSTRUCTION, tag))
    }

    pub fn to(to: Peer, context: u32, tag: i32) -> Self {
        Self { to, context, tag, is_over: Cell::new(false) }
    }

    /// Sends `mine` to the other leader and fills `theirs` with what it sent.
    fn swap(&self, mine: &[u64], theirs: &mut [u64]) -> Result<()> {
        let selector = Selector { context: self.context, peer: Some(self.to), tag: Some(self.tag) };
        let envelope = Envelope { context: self.context, tag: self.tag, source: 0 };
        let requests = {
            let mut world = WORLD.enter();
            // SAFETY: both buffers are borrowed until both requests are complete.
            unsafe {
                let receive = world.endpoint.post_receive(selector, theirs.as_mut_ptr().cast(), size_of_val(theirs));
                let (data, length) = (mine.as_ptr().cast(), size_of_val(mine));
                [receive, world.endpoint.post_send(self.to, envelope, data, length, SendMode::Standard)]
            }
        };
        let [receive, send] = requests;
        let outcome = wait(CALL, self.context, |world| world.endpoint.take_outcome(receive));
        let gives_up = outcome.fault.is_none() && outcome.length != size_of_val(theirs) as u64;
        if gives_up {
            WORLD.enter().endpoint.cancel_send(send);
        }
        let sent = finish(self.context, &[send]);
        let swapped = match outcome.fault {
            Some(_) => Err(lost(outcome.peer, outcome.fault)),
            None if gives_up => Err(Error::new(lost_class(), "the other group has lost a process, or cannot go on")),
            None => sent,
        };
        self.is_over.set(swapped.is_err());
        swapped
    }

    /// Tells the other leader, who waits for more, that none comes: by a message that is shorter than any.
    fn give_up(&self) {
        let envelope = Envelope { context: self.context, tag: self.tag, source: 0 };
        let endpoint = &mut WORLD.enter().endpoint;
        let nothing = std::ptr::NonNull::dangling().as_ptr();
        // SAFETY: a buffer without bytes is valid wherever it is.
        let send = unsafe { endpoint.post_send(self.to, envelope, nothing, 0, SendMode::Standard) };
        endpoint.release(send);
    }
}

/// Waits for the requests; the first fault is the error.
fn finish(context: u32, requests: &[RequestId]) -> Result<()> {
    let mut result = Ok(());
    for &request in requests {
        let outcome = wait(CALL, context, |world| world.endpoint.take_outcome(request));
        if outcome.fault.is_some() {
            result = result.and(Err(lost(outcome.peer, outcome.fault)));
        }
    }
    result
}

/// What the two groups know of each other at last.
struct Other {
    members: Vec<Peer>,
}

/// Makes the intercommunicator; `bridge` only in the leader, whose rank is `leader`.
pub fn create(local: &Comm, leader: u32, bridge: Option<Bridge>) -> Result<usize> {
    let made = make(local, leader, bridge.as_ref());
    if let Some(bridge) = bridge.filter(|bridge| made.is_err() && !bridge.is_over.get()) {
        bridge.give_up();
    }
    made
}

fn make(local: &Comm, leader: u32, bridge: Option<&Bridge>) -> Result<usize> {
    let me = WORLD.enter().endpoint.me();
    let other = introduce(local, leader, bridge)?;
    if other.members.iter().any(|&peer| local.local.rank_of(peer).is_some()) {
        let error = Error::new(Class::Comm, "the local and the remote group have processes in common");
        return Err(known_to_all(bridge, error));
    }
    let context = agree_context(local, leader, bridge)?;
    let remote = Some(Arc::new(Group::new(other.members, me)));
    let local_first = {
        let endpoint = &WORLD.enter().endpoint;
        let first = |group: &Group| endpoint.identity(group.peer(0));
        remote.as_deref().is_none_or(|remote| first(&local.local) < first(remote))
    };
    let draft = CommDraft { remote, local_first, ..CommDraft::from_parent(local.local.clone(), local) };
    Ok(insert(&mut WORLD.enter(), draft, context))
}

/// The leaders tell each other who is in their groups, and then tell the groups.
fn introduce(local: &Comm, leader: u32, bridge: Option<&Bridge>) -> Result<Other> {
    let (world, is_one_job) = {
        let endpoint = &WORLD.enter().endpoint;
        let foreign = local.local.peers().any(|peer| endpoint.is_foreign(peer));
        (endpoint.identity(endpoint.me()).world, !foreign)
    };
    let mine = [u64::from(local.size()), world, u64::from(is_one_job)];
    let theirs = swap(local, leader, bridge, &mine, 3)?;
    // All members see what the leaders have seen, since they may be of several jobs themselves.
    let needs_cards = u64::from(!is_one_job || theirs[1] != mine[1] || theirs[2] == 0);
    let needs_cards = told(local, leader, needs_cards)? != 0;
    let size = usize::try_from(theirs[0]).ok().filter(|size| *size <= MOST_MEMBERS);
    let size = size.ok_or_else(|| Error::new(Class::Other, "the other leader names more members than there can be"))?;
    if needs_cards {
        return Ok(Other { members: introduce_by_cards(local, leader, bridge, size)? });
    }
    let mine: Vec<u64> = local.local.peers().map(|peer| u64::from(peer.0)).collect();
    let members = swap(local, leader, bridge, &mine, size)?;
    Ok(Other { members: members.into_iter().map(|peer| Peer(peer as u32)).collect() })
}

/// As [`introduce`] where the members are of several jobs.
fn introduce_by_cards(local: &Comm, leader: u32, bridge: Option<&Bridge>, size: usize) -> Result<Vec<Peer>> {
    let mine = cards::of_members(CALL, local)?;
    let theirs = swap(local, leader, bridge, &mine, size * cards::WORDS)?;
    let all = cards::check(&mine).and_then(|()| cards::check(&theirs));
    all.map_err(|error| known_to_all(bridge, error))?;
    let adopted = cards::adopt(&theirs);
    // What one member finds the others do not know.
    match highest(local, leader, bridge, u64::from(adopted.is_err()))? {
        0 => adopted,
        _ => {
            let others = || Error::new(Class::Other, "a process cannot reach one of the other group");
            Err(known_to_all(bridge, adopted.err().unwrap_or_else(others)))
        }
    }
}

/// The highest value in both groups, known to all.
fn highest(local: &Comm, leader: u32, bridge: Option<&Bridge>, mine: u64) -> Result<u64> {
    let said = tell(CALL, local, [mine, 0, 0, 0])?;
    let here = said.iter().map(|block| block[0]).fold(mine, higher);
    Ok(higher(here, swap(local, leader, bridge, &[here], 1)?[0]))
}

/// The leaders swap `mine` for `words` of the other one, which all of the group get. A leader that has lost the other
/// one tells its group, which waits for it.
fn swap(local: &Comm, leader: u32, bridge: Option<&Bridge>, mine: &[u64], words: usize) -> Result<Vec<u64>> {
    // The first one says the class of what went wrong.
    let mut theirs = vec![0; words + 1];
    let swapped = bridge.map_or(Ok(()), |bridge| bridge.swap(mine, &mut theirs[1..]));
    theirs[0] = swapped.as_ref().err().map_or(0, |error| error.class as u64);
    hand_round(local, leader, &mut theirs)?;
    swapped?;
    match i32::try_from(theirs[0]).ok().and_then(Class::from_number) {
        None | Some(Class::Success) => Ok(theirs.split_off(1)),
        Some(class) => Err(Error::new(class, format!("rank {leader} has lost the leader of the other group"))),
    }
}

/// The leader's value.
fn told(local: &Comm, leader: u32, mine: u64) -> Result<u64> {
    Ok(tell(CALL, local, [mine, 0, 0, 0])?[leader as usize][0])
}

/// As [`super::agree::Agreement`], over both groups.
fn agree_context(local: &Comm, leader: u32, bridge: Option<&Bridge>) -> Result<u32> {
    for attempt in 0u32.. {
        let skip = (local.context / super::CONTEXTS_EACH) % (1 << attempt.min(10));
        let mine = proposal(&mut WORLD.enter(), skip);
        let (context, threads) =
            open(highest(local, leader, bridge, mine)?).map_err(|error| known_to_all(bridge, error))?;
        let claimed = WORLD.enter().contexts.claim(context);
        if !threads || highest(local, leader, bridge, !claimed as u64)? == 0 {
            return Ok(context);
        }
        if claimed {
            WORLD.enter().contexts.release(context);
        }
    }
    unreachable!("the attempts do not end")
}

/// A binomial broadcast from the leader.
fn hand_round(local: &Comm, leader: u32, data: &mut [u64]) -> Result<()> {
    let (n, length) = (local.size(), size_of_val(data));
    let place = (local.rank + n - leader) % n;
    let peer = |place: u32| local.local.peer((place + leader) % n);
    let context = local.context + super::CONSTRUCTION;
    let envelope = Envelope { context, tag: local.next_construction(), source: local.rank };
    if place != 0 {
        let from = Selector { context, peer: Some(peer(place & (place - 1))), tag: Some(envelope.tag) };
        // SAFETY: `data` is borrowed until the request is complete.
        let request = unsafe { WORLD.enter().endpoint.post_receive(from, data.as_mut_ptr().cast(), length) };
        finish(context, &[request])?;
    }
    let lowest_bit = if place == 0 { n.next_power_of_two() } else { place & place.wrapping_neg() };
    let steps = (0..32).map(|bit| 1u32 << bit).take_while(|&step| step < lowest_bit && place + step < n);
    let send = |step| {
        let (to, data) = (peer(place + step), data.as_ptr().cast());
        // SAFETY: `data` is borrowed, and not written, until the request is complete.
        unsafe { WORLD.enter().endpoint.post_send(to, envelope, data, length, SendMode::Standard) }
    };
    let requests: Vec<RequestId> = steps.map(send).collect();
    finish(context, &requests)
}

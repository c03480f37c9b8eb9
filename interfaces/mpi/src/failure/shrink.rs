//! Communicators of those who live, and agreements that complete beside the program.

use super::begin::{begin, begin_following};
use super::letters::AgreementName;
use super::round::decided;
use super::{closed, look};
use crate::comm::{Comm, CommDraft, create};
use crate::error::{Error, Result};
use crate::group::Group;
use crate::request::{OperationEnd, Request};
use crate::world::{Task, World};
use std::sync::Arc;
use weft_fabric::consensus::{AgreedValue, Members};
use weft_fabric::{Fault, Peer};

/// Bits of [`AgreedValue::all`] beside the program's 32: nobody has several threads; everybody could claim the context.
const NO_THREADS: u64 = 1 << 32;
const CLAIMED: u64 = 1 << 33;
const FLAG: u64 = u32::MAX as u64;

/// A communicator of those who live, under way. Nothing blocks: [`Self::poll`] moves it on.
pub(super) struct Shrink {
    parent: Arc<Comm>,
    step: ShrinkStep,
    attempt: u32,
}

enum ShrinkStep {
    Proposing(AgreementName),
    /// Threads may have taken the context meanwhile.
    Confirming(AgreementName, u32, bool),
}

/// What everybody knows afterwards.
pub(super) struct Shrunk {
    context: u32,
    lost: Members,
}

impl Shrink {
    pub fn new(world: &mut World, parent: &Arc<Comm>) -> Self {
        let proposal = proposal(world, parent, 0);
        let step = ShrinkStep::Proposing(begin(world, parent, proposal));
        Self { parent: parent.clone(), step, attempt: 0 }
    }

    pub fn poll(&mut self, world: &mut World) -> Option<Shrunk> {
        loop {
            match self.step {
                ShrinkStep::Proposing(name) => {
                    let value = decided(world, name)?;
                    let context = value.highest as u32;
                    let claimed = world.contexts.claim(context);
                    if value.all & NO_THREADS != 0 {
                        return Some(Shrunk { context, lost: value.lost });
                    }
                    let says = if claimed { CLAIMED } else { 0 };
                    let confirmation = |members: &[Peer], lost| plain(members, lost, says, 0);
                    let name = begin_following(world, &self.parent, name, confirmation);
                    self.step = ShrinkStep::Confirming(name, context, claimed);
                }
                ShrinkStep::Confirming(name, context, claimed) => {
                    let value = decided(world, name)?;
                    if value.all & CLAIMED != 0 {
                        return Some(Shrunk { context, lost: value.lost });
                    }
                    if claimed {
                        world.contexts.release(context);
                    }
                    self.attempt += 1;
                    let proposal = proposal(world, &self.parent, self.attempt);
                    self.step = ShrinkStep::Proposing(begin_following(world, &self.parent, name, proposal));
                }
            }
        }
    }

    /// The communicator: of those who live, in their old order.
    pub fn draft(&self, shrunk: &Shrunk, me: Peer) -> CommDraft {
        let members = self.parent.union();
        let lives = |peer: &Peer| {
            let place = members.iter().position(|member| member == peer);
            place.is_some_and(|place| !shrunk.lost.contains(place))
        };
        let living = |group: &Group| Arc::new(Group::new(group.peers().filter(lives).collect(), me));
        let remote = self.parent.remote.as_ref().map(|remote| living(remote));
        CommDraft { remote, ..CommDraft::from_parent(living(&self.parent.local), &self.parent) }
    }

    /// Makes it, under a handle of its own.
    pub fn finish(&self, world: &mut World, shrunk: &Shrunk) -> usize {
        let draft = self.draft(shrunk, world.endpoint.me());
        let handle = create::insert(world, draft, shrunk.context);
        look(world);
        handle
    }
}

fn plain(members: &[Peer], lost: Members, all: u64, highest: u64) -> AgreedValue {
    AgreedValue { all, highest, lost, acknowledged: Members::none(members.len()) }
}

/// Later attempts leave out contexts, as in `comm::agree`.
fn proposal(world: &mut World, parent: &Comm, attempt: u32) -> impl FnOnce(&[Peer], Members) -> AgreedValue + use<> {
    let proposal = world.contexts.propose(parent.context / crate::comm::CONTEXTS_EACH % (1 << attempt.min(10)));
    let threads = if world.threads { 0 } else { NO_THREADS };
    move |members, lost| plain(members, lost, threads, u64::from(proposal))
}

/// Begins an agreement on `flag`.
pub(super) fn begin_agreement(world: &mut World, comm: &Comm, flag: i32) -> AgreementName {
    look(world);
    let acknowledged = world.failures.acknowledged_of(comm);
    begin(world, comm, |members, lost| {
        let mut known = Members::none(members.len());
        let is_acknowledged = |member: &usize| acknowledged.contains(&members[*member]);
        (0..members.len()).filter(is_acknowledged).for_each(|member| known.insert(member));
        AgreedValue { all: u64::from(flag as u32), highest: 0, lost, acknowledged: known }
    })
}

/// The flag that was agreed on, and the error that all get if somebody is lost and not everybody has acknowledged that.
pub(super) fn agreed(value: &AgreedValue) -> (i32, Option<Error>) {
    let error = (!value.lost.are_in(&value.acknowledged)).then(|| closed(Fault::PeerLost));
    ((value.all & FLAG) as u32 as i32, error)
}

/// What completes beside the program.
struct PendingShrink {
    request: usize,
    comm: usize,
    what: WhatPending,
}

/// Takes the flag that was agreed on.
pub(super) type Store = Box<dyn FnOnce(i32) + Send>;

enum WhatPending {
    /// With what takes the flag.
    Agree(AgreementName, Option<Store>),
    /// With the handle that is reserved.
    Shrink(Shrink, usize),
}

/// Begins an agreement that completes with a request; `store` takes the result.
pub(super) fn agree_beside(world: &mut World, comm: &Comm, value: i32, store: Store) -> usize {
    let name = begin_agreement(world, comm, value);
    add(world, comm, WhatPending::Agree(name, Some(store)))
}

/// The handle of the communicator to be, and its request.
pub(super) fn shrink_beside(world: &mut World, comm: &Arc<Comm>) -> (usize, usize) {
    let shrink = Shrink::new(world, comm);
    let handle = world.comms.reserve();
    (handle, add(world, comm, WhatPending::Shrink(shrink, handle)))
}

fn add(world: &mut World, comm: &Comm, what: WhatPending) -> usize {
    let request = world.requests.insert(Request::pending());
    world.begin(Box::new(PendingShrink { request, comm: comm.handle, what }));
    request
}

impl Task for PendingShrink {
    fn advance(&mut self, world: &mut World) -> bool {
        let ended: Result<()> = match &mut self.what {
            WhatPending::Agree(name, flag) => {
                let Some(value) = decided(world, *name) else { return false };
                let (result, error) = agreed(&value);
                if let Some(flag) = flag.take() {
                    flag(result);
                }
                error.map_or(Ok(()), Err)
            }
            WhatPending::Shrink(shrink, handle) => {
                let Some(shrunk) = shrink.poll(world) else { return false };
                let draft = shrink.draft(&shrunk, world.endpoint.me());
                world.point.note_session(*handle, draft.session);
                world.comms.fill(*handle, Arc::new(draft.finish(shrunk.context, *handle)));
                Ok(())
            }
        };
        let error = ended.err().map(|error| Box::new(error.on(self.comm)));
        if let Some(request) = world.requests.find_mut(self.request) {
            request.fulfil(OperationEnd { error, ..OperationEnd::EMPTY });
        }
        true
    }
}

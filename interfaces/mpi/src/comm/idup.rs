//! `MPI_Comm_idup`: an agreement that moves with progress, without anybody waiting for it.

use super::agree::{Agreement, Circle};
use super::{Draft, create};
use crate::attribute::Attributes;
use crate::error::Result;
use crate::info::Info;
use crate::request::{End, Request};
use crate::world::{WORLD, World};
use std::sync::Arc;

/// A communicator under way.
pub(crate) struct Construction {
    agreement: Agreement,
    /// Taken when the communicator is finished.
    draft: Option<Draft>,
    /// Reserved for it.
    handle: usize,
    /// The request that completes with it, if the program still has it.
    request: usize,
}

/// Begins the duplicate of the communicator with this handle; its own handle and the request.
pub(crate) fn begin(parent: usize, hints: Option<Info>) -> Result<(usize, usize)> {
    let comm = super::abi::of(parent)?;
    let attributes: Attributes = comm.state().attributes.clone();
    let attributes = attributes.copy(parent)?;
    let mut draft = create::duplicate(&comm);
    draft.info = hints.unwrap_or(draft.info);
    draft.attributes = attributes;
    let mut world = WORLD.enter();
    let me = world.endpoint.me();
    let agreement = Agreement::new(&mut world, Circle::of(&comm, me), [0; 3]);
    let handle = world.comms.reserve();
    let request = world.requests.insert(Request::pending());
    let construction = Construction { agreement, draft: Some(draft), handle, request };
    world.constructions.push(construction);
    advance(&mut world);
    Ok((handle, request))
}

/// What becomes of the communicator with this handle, if it is under way.
pub(crate) fn draft(world: &mut World, handle: usize) -> Option<&mut Draft> {
    let construction = world.constructions.iter_mut().find(|construction| construction.handle == handle)?;
    construction.draft.as_mut()
}

/// Moves all communicators under way.
#[inline]
pub(crate) fn advance(world: &mut World) {
    if !world.constructions.is_empty() {
        advance_some(world);
    }
}

#[cold]
fn advance_some(world: &mut World) {
    let mut under_way = std::mem::take(&mut world.constructions);
    under_way.retain_mut(|construction| !construction.advance(world));
    under_way.append(&mut world.constructions);
    world.constructions = under_way;
}

impl Construction {
    /// On which the members agree.
    pub(super) fn context(&self) -> u32 {
        self.agreement.context()
    }

    /// True once the request is complete.
    fn advance(&mut self, world: &mut World) -> bool {
        let Some(result) = self.agreement.poll(world) else { return false };
        let end = match result {
            Ok(agreed) => {
                let draft = self.draft.take().expect("an agreement ends once");
                world.point.note_session(self.handle, draft.session);
                world.comms.fill(self.handle, Arc::new(draft.finish(agreed.context, self.handle)));
                End::EMPTY
            }
            Err(error) => End { error: Some(Box::new(error)), ..End::EMPTY },
        };
        if let Some(request) = world.requests.find_mut(self.request) {
            request.fulfil(end);
        }
        true
    }
}

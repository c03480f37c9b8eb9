//! `MPI_Comm_idup`: an agreement that moves with progress, without anybody waiting for it.

use super::agree::{Agreement, Circle};
use super::{Coming, CommDraft, create};
use crate::attribute::Attributes;
use crate::error::Result;
use crate::info::Info;
use crate::request::{OperationEnd, Request};
use crate::world::{Task, WORLD, World};
use std::sync::Arc;

/// A communicator under way.
struct Construction {
    agreement: Agreement,
    /// Reserved for it.
    handle: usize,
    /// The request that completes with it, if the program still has it.
    request: usize,
}

/// Begins the duplicate of the communicator with this handle; its own handle and the request.
pub(crate) fn begin(parent: usize, hints: Option<Info>) -> Result<(usize, usize)> {
    let comm = WORLD.enter().comm(parent)?.clone();
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
    world.coming.push(Coming { handle, context: agreement.context(), draft });
    world.begin(Box::new(Construction { agreement, handle, request }));
    Ok((handle, request))
}

/// What becomes of the communicator with this handle, if it is under way.
pub(crate) fn draft(world: &mut World, handle: usize) -> Option<&mut CommDraft> {
    world.coming.iter_mut().find(|coming| coming.handle == handle).map(|coming| &mut coming.draft)
}

impl Task for Construction {
    fn advance(&mut self, world: &mut World) -> bool {
        let Some(result) = self.agreement.poll(world) else { return false };
        let at = world.coming.iter().position(|coming| coming.handle == self.handle);
        let draft = world.coming.swap_remove(at.expect("an agreement ends once")).draft;
        let end = match result {
            Ok(agreed) => {
                world.point.note_session(self.handle, draft.session);
                world.comms.fill(self.handle, Arc::new(draft.finish(agreed.context, self.handle)));
                OperationEnd::EMPTY
            }
            Err(error) => OperationEnd { error: Some(Box::new(error)), ..OperationEnd::EMPTY },
        };
        if let Some(request) = world.requests.find_mut(self.request) {
            request.fulfil(end);
        }
        true
    }
}

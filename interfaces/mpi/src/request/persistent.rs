//! Persistent point-to-point operations (MPI 5.0, section 3.9).

use super::{CollectiveStage, Ground, NO_PROC, Request, SENT};
use crate::error::{Class, Error, Result};
use crate::point::{self, Buffer, MessageRoute, ReceiveSource};
use crate::world::World;

/// An operation that can be started again and again.
pub struct Persistent {
    pub plan: PersistentPlan,
    pub buffer: Buffer,
    /// The communicator, for its error handler and its buffer.
    pub comm: usize,
    /// What was started and has not ended.
    pub active: Option<Request>,
}

/// What a persistent operation does when it is started.
#[derive(Clone, Copy)]
pub enum PersistentPlan {
    /// The partner is `MPI_PROC_NULL`.
    SendNothing,
    ReceiveNothing,
    Send(MessageRoute, point::PointMode),
    Receive(ReceiveSource),
}

impl Persistent {
    /// # Safety
    /// The buffer is the program's and lives until the operation is complete.
    unsafe fn start(&mut self, ground: &mut Ground) -> Result<()> {
        // SAFETY: the caller's promise.
        self.active = Some(unsafe {
            match self.plan {
                PersistentPlan::SendNothing => Request::Done(super::OperationEnd::EMPTY),
                PersistentPlan::ReceiveNothing => Request::Done(super::OperationEnd::NO_PROC),
                PersistentPlan::Send(route, mode) => point::start_send(ground, route, mode, &self.buffer, self.comm)?,
                PersistentPlan::Receive(source) => {
                    point::start_receive(ground, source, self.buffer.clone(), self.comm)?
                }
            }
        });
        Ok(())
    }
}

/// Starts the persistent operation behind a handle.
///
/// # Safety
/// The buffers given when it was made live until it is complete again.
///
/// # Errors
/// A request that is not persistent, or is active already.
pub unsafe fn start(world: &mut World, handle: usize) -> Result<()> {
    check_startable(world, handle)?;
    let (requests, mut ground) = world.split();
    match requests.get_mut(handle)? {
        // SAFETY: the caller's promise.
        Request::Persistent(persistent) => unsafe { persistent.start(&mut ground) },
        Request::Collective(collective) => {
            ground.collectives.restart(collective.id, ground.endpoint);
            collective.stage = CollectiveStage::Started;
            Ok(())
        }
        Request::Partitioned(partitioned) => {
            ground.partitioned.start(partitioned.id, ground.endpoint);
            partitioned.started = true;
            Ok(())
        }
        _ => Err(not_persistent()),
    }
}

/// Whether the handle names a persistent request that is not active.
pub fn check_startable(world: &World, handle: usize) -> Result<()> {
    if handle == SENT || handle == NO_PROC {
        return Err(not_persistent());
    }
    let request = world.requests.get(handle)?;
    if !request.is_persistent() {
        return Err(not_persistent());
    }
    if !request.is_inactive() {
        let detail = format!("request ({handle:#x}) is active; complete it before it is started again");
        return Err(Error::new(Class::Request, detail));
    }
    Ok(())
}

#[cold]
fn not_persistent() -> Error {
    Error::new(Class::Request, "request is not persistent; only those of the _init functions can be started")
}

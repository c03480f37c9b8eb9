//! Begin and end of a platform's part in the job.

use crate::labels::waiting;
use crate::sending::settle;
use crate::shared::condition::{begin_moving, end_moving};
use crate::world::{PandaWorld, WORLD};
use std::sync::{Mutex, PoisonError};
use weft_fabric::{DeliveryThread, Endpoint, InterfaceName, JoinError};

static DELIVERY: Mutex<Option<DeliveryThread<PandaWorld>>> = Mutex::new(None);

/// Joins the job.
///
/// # Errors
/// Why the process cannot join.
pub fn open() -> Result<(u32, u32), JoinError> {
    let endpoint = Endpoint::join_as(InterfaceName::Panda, &[])?;
    let place = (endpoint.me().0, endpoint.world_size());
    let world = PandaWorld::new(endpoint);
    WORLD.open(world, true);
    WORLD.lend();
    begin_moving();
    Ok(place)
}

/// From now on upcalls run.
///
/// # Errors
/// The system gives no thread.
pub fn start() -> std::io::Result<()> {
    WORLD.enter().upcalls.start();
    let mut delivery = DELIVERY.lock().unwrap_or_else(PoisonError::into_inner);
    if delivery.is_none() {
        *delivery = Some(DeliveryThread::start(&WORLD)?);
    }
    Ok(())
}

/// Leaves the job, once everything has left that was sent.
pub fn close(call: &'static str) {
    settle(call, 0);
    WORLD.wait(waiting(call, None), |world| world.groups.has_left(&mut world.endpoint).then_some(()));
    end_moving();
    drop(DELIVERY.lock().unwrap_or_else(PoisonError::into_inner).take());
    WORLD.close().leave();
}

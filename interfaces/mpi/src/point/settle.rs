//! The end of what the program left behind.

use crate::request::TransferDirection;
use crate::world::{WORLD, World};
use weft_fabric::Waiting;

/// Waits until every message that the program left behind has left: freed sends and buffered ones. For the ends of the
/// interface, which `call` is one of.
pub fn settle(call: &'static str) {
    let waiting = Waiting { call, peer: None, tag: None, context: 0 };
    WORLD.wait(waiting, |world: &mut World| {
        let World { point, partitioned, endpoint, .. } = world;
        point.advance(endpoint);
        let detached = point.detached.iter().any(|transfer| transfer.direction == TransferDirection::Out);
        let sending = detached || partitioned.is_sending();
        (!sending && point.is_empty_after_sweep(endpoint)).then_some(())
    });
}

//! Bodies of the point-to-point calls: validate, find the buffer and the partner, start, wait.

mod buffered;
mod exchange;
mod persistent;
mod probe;
mod receive;
mod send;

pub use buffered::*;
pub use exchange::*;
pub use persistent::*;
pub use probe::*;
pub use receive::*;
pub use send::*;

use super::route::waiting;
use crate::world::{WORLD, World};
use weft_fabric::{Fault, Outcome, RequestId, Selector};

/// Scattered buffers of blocking calls up to this size are packed on the stack.
const SMALL: usize = 2048;

#[inline]
fn wait_for(call: &'static str, id: RequestId, with: Selector) -> Outcome {
    WORLD.wait(waiting(call, with), |world| world.endpoint.take_outcome(id).or_else(|| stall(world, id, with)))
}

/// A receive from anybody ends where a process is lost and that was not acknowledged, unless its message has come.
fn stall(world: &mut World, id: RequestId, with: Selector) -> Option<Outcome> {
    if !world.failures.stalls(with) || !world.endpoint.cancel_receive(id) {
        return None;
    }
    let outcome = world.endpoint.take_outcome(id)?;
    Some(Outcome { fault: Some(Fault::PeerLost), ..outcome })
}

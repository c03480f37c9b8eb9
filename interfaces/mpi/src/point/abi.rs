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
use crate::world::WORLD;
use std::ffi::c_void;
use weft_fabric::{Outcome, RequestId, Selector};

/// Scattered buffers of blocking calls up to this size are packed on the stack.
const SMALL: usize = 2048;

/// A program's description of a buffer: address, count, datatype.
type Described = (*const c_void, i64, usize);

#[inline]
fn wait_for(call: &'static str, id: RequestId, with: Selector) -> Outcome {
    WORLD.wait(waiting(call, with), |world| world.endpoint.take_outcome(id))
}

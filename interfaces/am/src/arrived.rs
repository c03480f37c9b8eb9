//! What has arrived, and what waits to.

use crate::message::EndpointId;
use weft_fabric::RequestId;
use weft_ports::ready::{ReadyReceives, Room};

/// A message that has come, as it has come: what it says is read where its handler is called.
pub struct AmArrival {
    pub word: i32,
    pub rank: u32,
    pub room: Room,
    /// Bytes in the room.
    pub length: usize,
    /// Where its bytes lie in the segment, and how many, if they came apart.
    pub placed: Option<(usize, usize)>,
}

/// A long message whose bytes are on their way into the segment.
pub struct ComingBytes {
    pub request: RequestId,
    pub to: EndpointId,
    pub message: AmArrival,
    pub at: usize,
}

pub struct Inbound {
    pub ready: ReadyReceives,
    pub coming: Vec<ComingBytes>,
}

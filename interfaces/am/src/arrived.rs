//! What has arrived, and what waits to.

use crate::message::MessageHead;
use weft_fabric::RequestId;
use weft_ports::ready::{ReadyReceives, Room};

/// A message that has come.
pub struct AmArrival {
    pub head: MessageHead,
    pub rank: u32,
    pub bytes: ArrivedBytes,
}

/// Where its bytes are.
pub enum ArrivedBytes {
    Here {
        room: Room,
        begin: usize,
        length: usize,
    },
    /// In the segment.
    Placed {
        at: usize,
        length: usize,
    },
    None,
}

/// A long message whose bytes are on their way into the segment.
pub struct ComingBytes {
    pub request: RequestId,
    pub head: MessageHead,
    pub rank: u32,
    pub at: usize,
}

pub struct Inbound {
    pub ready: ReadyReceives,
    pub coming: Vec<ComingBytes>,
}

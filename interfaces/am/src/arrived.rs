//! What has arrived, and what waits to.

use crate::message::MessageHead;
use std::collections::VecDeque;
use weft_fabric::{Endpoint, RequestId};

/// Receives that stand ready.
pub const READY: usize = 8;
/// Memory that a message is received into.
pub type Room = Box<[u64]>;

/// A message that has come.
pub struct Arrived {
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
pub struct Coming {
    pub request: RequestId,
    pub head: MessageHead,
    pub rank: u32,
    pub at: usize,
}

#[derive(Default)]
pub struct Inbound {
    pub ready: VecDeque<(RequestId, Room)>,
    pub spare: Vec<Room>,
    pub coming: Vec<Coming>,
}

impl Inbound {
    /// Gives the receives up, so that nothing writes into rooms any more.
    pub fn withdraw(&mut self, endpoint: &mut Endpoint) {
        for (request, room) in self.ready.drain(..) {
            if !endpoint.cancel_receive(request) && !endpoint.is_complete(request) {
                // It is being written into, and will be until the end.
                std::mem::forget(room);
            }
        }
    }
}

//! What was given away and has not left yet.

use weft_fabric::{Peer, RequestId};

/// Conversations of a process's endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum AmContext {
    Messages = 0,
    /// Bytes of long messages that come apart, by their number.
    Bytes = 1,
    Gather = 2,
}

/// A message that was given away, and is not gone yet.
pub struct KeptBytes {
    pub request: RequestId,
    /// `None` where the program keeps them.
    pub _bytes: Option<Box<[u8]>>,
}

/// A send that a thread waits for.
#[derive(Clone, Copy)]
pub struct Awaited {
    pub request: RequestId,
    pub to: Peer,
}

#[derive(Default)]
pub struct AmOutbound {
    pub kept: Vec<KeptBytes>,
    /// What threads wait for.
    pub waiting: Vec<Awaited>,
    /// Numbers of messages with bytes that come apart.
    pub numbers: i32,
}

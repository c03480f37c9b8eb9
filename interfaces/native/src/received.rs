//! What is told of a message.

use crate::known::PortNumber;
use weft_ports::{Outcome, Peer};

/// What is known of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedMessage {
    pub process: Peer,
    pub port: PortNumber,
    pub tag: i32,
    /// Bytes of the message, also where fewer fitted into the room.
    pub length: usize,
}

impl ReceivedMessage {
    pub(crate) fn new(port: u32, outcome: &Outcome) -> Self {
        Self { process: outcome.peer, port: PortNumber(port), tag: outcome.tag, length: outcome.length as usize }
    }
}

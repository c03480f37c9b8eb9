//! What waits to leave, per peer: control packets, streams under way, messages whose header has not left.

use super::shown::ShownPlace;
use crate::api::RequestId;
use std::collections::VecDeque;
use weft_wire::cell::{Head, INLINE_WORDS, Kind};

/// A control packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ControlPacket {
    pub head: Head,
    pub words: [u64; INLINE_WORDS],
    pub count: usize,
}

impl ControlPacket {
    pub fn new(kind: Kind, values: &[u64]) -> Self {
        let mut words = [0; INLINE_WORDS];
        words[..values.len()].copy_from_slice(values);
        Self { head: Head::control(kind), words, count: values.len() }
    }

    pub fn values(&self) -> &[u64] {
        &self.words[..self.count]
    }
}

/// A message whose header has not left yet. Headers leave in the order of posting.
#[derive(Clone, Copy)]
pub(crate) struct UnsentMessage {
    pub request: RequestId,
    pub head: Head,
    pub data: *const u8,
    pub length: usize,
    /// May be taken at once.
    pub offered: bool,
    /// May go without asking over a connection, where its receiver waits for such ones.
    pub may_go: bool,
    /// Where it lies, if the receiver can see that.
    pub place: Option<ShownPlace>,
}

/// Bytes of one message that follow each other in packets. One stream at a time per peer.
#[derive(Clone, Copy)]
pub(crate) struct MessageStream {
    pub request: RequestId,
    pub data: *const u8,
    pub length: usize,
    pub sent: usize,
    /// The receiver's request, for the packet that opens a granted stream; `None` once open.
    pub open_for: Option<u32>,
    /// It goes by the device for long messages.
    pub by_long_way: bool,
}

#[derive(Default)]
pub(crate) struct Outbound {
    pub control: VecDeque<ControlPacket>,
    pub streams: VecDeque<MessageStream>,
    pub messages: VecDeque<UnsentMessage>,
    /// The peer is lost: nothing leaves any more.
    pub closed: bool,
}

impl Outbound {
    #[inline]
    pub fn is_clear(&self) -> bool {
        self.messages.is_empty() && self.streams.is_empty() && self.control.is_empty() && !self.closed
    }
}

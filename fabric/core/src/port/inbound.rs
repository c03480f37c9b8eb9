//! What has arrived and nobody has received yet, and the stream that is open from each peer.

use super::shown::Asked;
use crate::api::{Outcome, Peer, RequestId};
use weft_protocol::selector::ReceiverWord;
use weft_wire::cell::INLINE_WORDS;

/// Where a message's bytes are while no receive has taken them.
pub(crate) enum Body {
    /// In the words of a short packet.
    Inline([u64; INLINE_WORDS]),
    /// Copied here as they come in; `received` counts them.
    Kept { data: Vec<u8>, received: usize },
    /// Still in the sender, who asked to send, or offers that it be taken at once.
    Asked(Asked),
    /// Still in our own memory: a message to oneself.
    Own { data: *const u8, request: RequestId },
}

/// A message without a receive.
pub(crate) struct Arrived {
    pub outcome: Outcome,
    pub body: Body,
    /// The receive that has taken it while its bytes were still coming in.
    pub taken_by: Option<RequestId>,
    /// Its sender is told when it is received.
    pub word: Option<ReceiverWord>,
}

/// A slab of arrived messages.
#[derive(Default)]
pub(crate) struct ArrivedTable {
    entries: Vec<Option<Arrived>>,
    free: Vec<u32>,
}

impl Body {
    /// Whether all bytes are in this process.
    pub fn is_here(&self) -> bool {
        match self {
            Self::Inline(_) | Self::Own { .. } => true,
            Self::Kept { data, received } => *received == data.len(),
            Self::Asked(_) => false,
        }
    }
}

impl ArrivedTable {
    pub fn insert(&mut self, arrived: Arrived) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.entries[index as usize] = Some(arrived);
                index
            }
            None => {
                self.entries.push(Some(arrived));
                self.entries.len() as u32 - 1
            }
        }
    }

    pub fn at(&mut self, index: u32) -> &mut Arrived {
        self.entries[index as usize].as_mut().expect("a message that has arrived and was not received")
    }

    /// Where an offered message that is still in its sender is.
    pub fn offer(&self, index: u32) -> Option<(Outcome, Asked)> {
        let arrived = self.entries.get(index as usize)?.as_ref()?;
        match arrived.body {
            Body::Asked(asked) if asked.offered => Some((arrived.outcome, asked)),
            _ => None,
        }
    }

    /// The message of `peer` whose sender waits with this request to be let in.
    pub fn asked_by(&self, peer: Peer, wanted: u64) -> Option<u32> {
        let asks = |a: &Arrived| match a.body {
            Body::Asked(Asked { request, .. }) => a.outcome.peer == peer && u64::from(request) == wanted,
            Body::Own { request, .. } => a.outcome.peer == peer && u64::from(request.0) == wanted,
            _ => false,
        };
        let place = self.entries.iter().position(|entry| entry.as_ref().is_some_and(asks))?;
        Some(place as u32)
    }

    pub fn outcome(&self, index: u32) -> Outcome {
        self.entries[index as usize].as_ref().expect("a message that has arrived and was not received").outcome
    }

    /// Drops what `peer` has not sent completely and a receive, which has failed, had taken.
    pub fn forget_taken_from(&mut self, peer: Peer) {
        for index in 0..self.entries.len() {
            let taken = |a: &Arrived| a.taken_by.is_some() && a.outcome.peer == peer;
            if self.entries[index].as_ref().is_some_and(taken) {
                self.remove(index as u32);
            }
        }
    }

    pub fn remove(&mut self, index: u32) -> Arrived {
        self.free.push(index);
        self.entries[index as usize].take().expect("a message that has arrived and was not received")
    }
}

/// Where the bytes of an open stream go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamTarget {
    Receive(RequestId),
    Arrived(u32),
}

/// The stream that is open from a peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenStream {
    pub target: StreamTarget,
    pub received: usize,
    pub total: usize,
    /// Stored past the caches.
    pub past_caches: bool,
}

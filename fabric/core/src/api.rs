//! The words in which interfaces talk to the fabric.

/// A process of the world, by its index there (MPI: the rank in the world communicator).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Peer(pub u32);

/// What travels with a message besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Separates independent conversations (MPI: communicator and kind of traffic).
    pub context: u32,
    /// Chosen by the sender, selected by the receiver.
    pub tag: i32,
    /// The name by which the receiver knows the sender (MPI: the sender's rank in the communicator). Not matched:
    /// matching uses the sending [`Peer`].
    pub source: u32,
}

/// Which messages a receive or probe accepts; `None` is the wildcard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selector {
    pub context: u32,
    pub peer: Option<Peer>,
    pub tag: Option<i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendMode {
    /// Complete when the buffer may be reused.
    Standard,
    /// Complete when, besides, the receiver has begun to receive.
    Synchronous,
}

/// A started operation. Valid until [`crate::Endpoint::take_outcome`] has answered or
/// [`crate::Endpoint::release`] was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(pub(crate) u32);

/// A message taken out of matching by [`crate::Endpoint::take_matched`] and not yet received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatchedId(pub(crate) u32);

/// How an operation ended, or what a probe saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub peer: Peer,
    /// [`Envelope::source`] of the message (receives and probes).
    pub source: u32,
    pub tag: i32,
    /// Bytes of the message as it was sent, also where fewer fitted into the buffer.
    pub length: u64,
    pub fault: Option<Fault>,
}

/// Why an operation did not do all it was asked to. Nothing that was delivered before is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The message was longer than the buffer, which holds its beginning.
    Truncated,
    Cancelled,
    /// The peer is dead or broke the rules of the device; this operation cannot end well.
    PeerLost,
    /// There is no shared memory for messages from the one to the other; nothing passes between the two any more.
    NoMemory,
    /// The conversation was withdrawn ([`crate::Endpoint::close_context`]).
    Withdrawn,
}

impl Fault {
    /// Whether nothing goes to or comes from the peer any more.
    pub fn is_loss(self) -> bool {
        matches!(self, Self::PeerLost | Self::NoMemory)
    }
}

/// What a thread is blocked in, for the status page.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// The interface's name of the call, such as `MPI_Recv`.
    pub call: &'static str,
    pub peer: Option<Peer>,
    pub tag: Option<i32>,
    pub context: u32,
}

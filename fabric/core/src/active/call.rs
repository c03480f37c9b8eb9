//! Handlers, what they are called with, and the memory in which long requests land.

use super::MEDIUM_BYTES;
use crate::api::{Fault, Peer};
use weft_wire::active::{ActiveArguments, ActiveHead, ActiveKind, LANDINGS, MOST_ARGUMENTS, NotHandled};

/// Memory of an endpoint in which long requests land. Peers name it by this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LandingId(pub u32);

/// Why an active message could not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ActiveFault {
    #[error("{0} arguments, of at most {MOST_ARGUMENTS}")]
    TooManyArguments(usize),
    #[error("{0} bytes, of at most {MEDIUM_BYTES} in a message that is not long")]
    TooLong(usize),
    #[error("a reply is not answered")]
    NoRequest,
    #[error("nothing goes to the peer any more: {0:?}")]
    PeerLost(Fault),
    /// A long request only.
    #[error("there is no room now")]
    WouldBlock,
}

/// A long request that was not sent, with its bytes.
#[derive(Debug)]
pub struct Unsent {
    pub bytes: Vec<u8>,
    pub why: ActiveFault,
}

/// What a refusal handler is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The peer has no handler of that number for a message of ours.
    NoHandler { peer: Peer, handler: u16 },
    /// The place of a long request of ours lies in no landing of the peer, or not any more.
    NoPlace { peer: Peer, handler: u16 },
    /// The peer is lost, and so many requests to it were not answered. It may have handled some of them, since that is
    /// told now and then only where there is no reply.
    PeerLost { peer: Peer, unanswered: u32 },
}

/// What becomes of a message: the answer that its handler gave, if any.
pub(crate) enum Reaction {
    Reply { head: ActiveHead, bytes: Vec<u8> },
    None,
}

/// A message, as its handler gets it.
pub struct ActiveCall<'a> {
    pub peer: Peer,
    pub arguments: &'a [u64],
    /// Of a long request those that have landed.
    pub bytes: &'a [u8],
    /// Where a reply goes; `None` in that of a reply.
    answer: Option<&'a mut Reaction>,
}

impl ActiveCall<'_> {
    /// Replies, with a call of that handler of the requester. It leaves when this handler has returned.
    ///
    /// # Errors
    /// What is wrong with the reply; then there is none.
    pub fn reply(self, handler: u16, arguments: &[u64], bytes: &[u8]) -> Result<(), ActiveFault> {
        let answer = self.answer.ok_or(ActiveFault::NoRequest)?;
        let arguments = checked(arguments, bytes)?;
        let head = ActiveHead::new(ActiveKind::Reply, handler.into(), arguments);
        *answer = Reaction::Reply { head, bytes: bytes.to_vec() };
        Ok(())
    }
}

/// The arguments of a message that is not long, if it is one.
pub(super) fn checked(arguments: &[u64], bytes: &[u8]) -> Result<ActiveArguments, ActiveFault> {
    if bytes.len() > MEDIUM_BYTES {
        return Err(ActiveFault::TooLong(bytes.len()));
    }
    ActiveArguments::new(arguments).ok_or(ActiveFault::TooManyArguments(arguments.len()))
}

type Handler = Box<dyn FnMut(ActiveCall<'_>) + Send>;
type RefusalHandler = Box<dyn FnMut(&Refusal) + Send>;

/// What the user of an endpoint has registered.
#[derive(Default)]
pub(crate) struct Handlers {
    by_number: Vec<Option<Handler>>,
    on_refusal: Option<RefusalHandler>,
    landings: Vec<Option<Box<[u8]>>>,
    refusals: u64,
}

/// Where the bytes are that a handler gets.
#[derive(Clone, Copy)]
pub(super) enum CallBytes<'a> {
    Here(&'a [u8]),
    /// In a landing, from an offset on, so many.
    Landed(u32, u64, u64),
}

impl Handlers {
    pub fn set(&mut self, number: u16, handler: Option<Handler>) {
        let at = usize::from(number);
        if self.by_number.len() <= at {
            self.by_number.resize_with(at + 1, || None);
        }
        self.by_number[at] = handler;
    }

    pub fn set_on_refusal(&mut self, handler: RefusalHandler) {
        self.on_refusal = Some(handler);
    }

    pub fn refusals(&self) -> u64 {
        self.refusals
    }

    /// Counts a refusal, and tells of it.
    pub fn refuse(&mut self, refusal: &Refusal) {
        self.refusals += 1;
        if let Some(handler) = &mut self.on_refusal {
            handler(refusal);
        }
    }

    /// `None` when there have been as many as there are numbers: none is used again, so that nothing lands in memory
    /// that it was not meant for.
    pub fn add_landing(&mut self, memory: Box<[u8]>) -> Option<LandingId> {
        let number = u32::try_from(self.landings.len()).ok().filter(|number| *number < LANDINGS)?;
        self.landings.push(Some(memory));
        Some(LandingId(number))
    }

    pub fn take_landing(&mut self, landing: LandingId) -> Option<Box<[u8]>> {
        self.landings.get_mut(landing.0 as usize)?.take()
    }

    pub fn landing(&mut self, landing: LandingId) -> Option<&mut [u8]> {
        self.landings.get_mut(landing.0 as usize)?.as_deref_mut()
    }

    /// The place that a peer has named, if it lies in a landing.
    pub(super) fn place(&mut self, landing: u32, offset: u64, bytes: u64) -> Option<&mut [u8]> {
        let memory = self.landing(LandingId(landing))?;
        let begin = usize::try_from(offset).ok()?;
        memory.get_mut(begin..begin.checked_add(usize::try_from(bytes).ok()?)?)
    }

    /// Calls the handler of a message. What it has replied, or why it was not called.
    pub(super) fn call(&mut self, peer: Peer, head: &ActiveHead, bytes: CallBytes<'_>) -> Result<Reaction, NotHandled> {
        let handler = self.by_number.get_mut(head.handler as usize).and_then(Option::as_mut);
        let handler = handler.ok_or(NotHandled::NoHandler)?;
        let bytes = match bytes {
            CallBytes::Here(bytes) => bytes,
            CallBytes::Landed(landing, offset, length) => {
                let memory = self.landings.get(landing as usize).and_then(Option::as_deref);
                let place = memory.and_then(|memory| memory.get(offset as usize..(offset + length) as usize));
                place.ok_or(NotHandled::NoPlace)?
            }
        };
        let mut reaction = Reaction::None;
        let answer = (head.what != ActiveKind::Reply).then_some(&mut reaction);
        handler(ActiveCall { peer, arguments: head.arguments.values(), bytes, answer });
        Ok(reaction)
    }
}

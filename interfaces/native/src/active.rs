//! Handlers of this process that messages of others call, and which may reply once.
//!
//! A handler runs inside whatever call of this process takes the message, with the fabric held: it is short, and makes
//! no call but the reply. What it finds out it leaves where the program looks.

use crate::desk::FABRIC;
use crate::error::{NativeError, Result};
use crate::known::{self, InHandler};
use weft_fabric::active::{ActiveCall, ActiveFault, MEDIUM_BYTES, MOST_ARGUMENTS};
use weft_ports::{Endpoint, Fault, Peer, Waiting};

/// Handlers of the program have numbers below it.
pub const HANDLERS: u16 = 4096;
/// The first numbers of the fabric are the library's own.
const FIRST: u16 = 8;

/// A message, as its handler gets it.
pub struct HandlerCall<'a>(ActiveCall<'a>);

impl HandlerCall<'_> {
    /// Who has sent it.
    pub fn process(&self) -> Peer {
        self.0.peer
    }

    /// Up to three numbers.
    pub fn arguments(&self) -> &[u64] {
        self.0.arguments
    }

    pub fn bytes(&self) -> &[u8] {
        self.0.bytes
    }

    /// Replies with a call of that handler of the sender. It leaves when this handler has returned.
    ///
    /// # Errors
    /// This message is a reply, or the reply is too long.
    pub fn reply(self, handler: u16, arguments: &[u64], bytes: &[u8]) -> Result<()> {
        let number = number(handler)?;
        self.0.reply(number, arguments, bytes).map_err(failed)
    }
}

fn number(handler: u16) -> Result<u16> {
    match handler < HANDLERS {
        true => Ok(handler + FIRST),
        false => Err(NativeError::argument(format!("handler {handler}: they are 0 to {}", HANDLERS - 1))),
    }
}

/// Whether there may be such a reply.
pub(crate) fn check_reply(handler: u16, bytes: &[u8]) -> Result<()> {
    number(handler)?;
    match bytes.len() <= CALL_BYTES {
        true => Ok(()),
        false => Err(failed(ActiveFault::TooLong(bytes.len()))),
    }
}

#[cold]
fn failed(fault: ActiveFault) -> NativeError {
    match fault {
        ActiveFault::PeerLost(fault) => NativeError::from(fault),
        fault => NativeError::argument(fault.to_string()),
    }
}

pub(crate) fn set_handler(handler: u16, mut what: impl FnMut(HandlerCall<'_>) + Send + 'static) -> Result<()> {
    known::allowed()?;
    let number = number(handler)?;
    FABRIC.with(|endpoint| {
        endpoint.register_handler(number, move |call| {
            let _inside = InHandler::new();
            what(HandlerCall(call));
        });
    });
    Ok(())
}

pub(crate) fn remove_handler(handler: u16) -> Result<()> {
    known::allowed()?;
    let number = number(handler)?;
    FABRIC.with(|endpoint| endpoint.remove_handler(number));
    Ok(())
}

/// How a process that nothing goes to any more is told of.
pub(crate) fn end_of(endpoint: &Endpoint, process: Peer) -> Option<Fault> {
    endpoint.loss(process).or_else(|| endpoint.has_ended(process).then_some(Fault::PeerLost))
}

#[inline]
pub(crate) fn call(to: Peer, handler: u16, arguments: &[u64], bytes: &[u8]) -> Result<()> {
    known::known(to)?;
    let number = number(handler)?;
    if FABRIC.with(|endpoint| endpoint.try_request(to, number, arguments, bytes)).map_err(failed)? {
        return Ok(());
    }
    let what = Waiting { call: "weft_call", peer: Some(to), tag: None, context: 0 };
    FABRIC.wait_of(what, to, |endpoint, _| match endpoint.try_request(to, number, arguments, bytes) {
        Ok(true) => Some(Ok(())),
        Ok(false) => end_of(endpoint, to).map(|fault| Err(fault.into())),
        Err(fault) => Some(Err(failed(fault))),
    })
}

pub(crate) fn unhandled() -> Result<u64> {
    known::allowed()?;
    Ok(FABRIC.with(|endpoint| endpoint.refusals()))
}

/// Most bytes that a call takes along.
pub const CALL_BYTES: usize = MEDIUM_BYTES;
/// Most numbers that it does.
pub const CALL_ARGUMENTS: usize = MOST_ARGUMENTS;

//! Messages that were started and are not waited for yet.
//!
//! What was started has a number, and stands here until its outcome is taken. It moves wherever this process waits or
//! polls; there it is looked at, too, now and then, whether the other process has ended.

use crate::error::{NativeError, Result};
use crate::known::PortNumber;
use crate::received::ReceivedMessage;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use weft_ports::{Endpoint, Fault, Peer, RequestId};

/// How often it is looked whether the other process of a message has ended.
const LOOK: Duration = Duration::from_millis(20);

/// A message that was started, by the number that it has in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestNumber(pub u32);

/// A started message that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoneMessage {
    /// What it was. Of one that was sent, `process` and `port` are those that it went to.
    pub message: ReceivedMessage,
    /// The bytes that were given to be sent, or the room that was given, with the message at its beginning.
    pub bytes: Vec<u8>,
    /// How many bytes there was room for: fewer than the message has where it was cut.
    pub room: usize,
}

/// A started message, as long as nobody has taken its outcome.
pub struct BegunMessage {
    pub request: RequestId,
    /// The other process, where that can be one only.
    pub with: Option<Peer>,
    pub port: PortNumber,
    /// What is sent; `None` where it is received.
    pub sent: Option<ReceivedMessage>,
    /// Bytes of the message, or of the room.
    pub length: usize,
    /// Empty where the memory is the caller's.
    pub bytes: Vec<u8>,
}

/// All of this process.
#[derive(Default)]
pub struct BegunMessages {
    all: BTreeMap<u32, BegunMessage>,
    given: u32,
    looked: Option<Instant>,
}

#[cold]
fn unknown(number: RequestNumber) -> NativeError {
    let text = format!("there is no request {}: it was never begun, or has been waited for", number.0 as i32);
    NativeError::argument(text)
}

impl BegunMessages {
    pub fn add(&mut self, message: BegunMessage) -> RequestNumber {
        // Numbers from 1 on, which are those of C, and none that is in use.
        loop {
            self.given = self.given % i32::MAX as u32 + 1;
            if !self.all.contains_key(&self.given) {
                break;
            }
        }
        self.all.insert(self.given, message);
        RequestNumber(self.given)
    }

    pub fn at(&self, number: RequestNumber) -> Result<&BegunMessage> {
        self.all.get(&number.0).ok_or_else(|| unknown(number))
    }

    /// The outcome of a message that is over, which forgets it; `None` as long as it is under way.
    pub fn take(&mut self, endpoint: &mut Endpoint, number: RequestNumber) -> Result<Option<DoneMessage>> {
        let request = self.at(number)?.request;
        let Some(outcome) = endpoint.take_outcome(request) else { return Ok(None) };
        let Some(BegunMessage { port, sent, length, bytes, .. }) = self.all.remove(&number.0) else {
            return Err(unknown(number));
        };
        match outcome.fault {
            // Of a message that is too long the beginning is there.
            None | Some(Fault::Truncated) => {
                let message = sent.unwrap_or_else(|| ReceivedMessage::new(port.0, &outcome));
                Ok(Some(DoneMessage { message, bytes, room: length }))
            }
            Some(fault) => Err(fault.into()),
        }
    }

    /// Whether one of these is over: which.
    pub fn first(&self, endpoint: &Endpoint, numbers: &[RequestNumber]) -> Result<Option<usize>> {
        for (at, number) in numbers.iter().enumerate() {
            if endpoint.is_complete(self.at(*number)?.request) {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Looks now and then whether processes have ended that are waited for; true if any has.
    pub fn look(&mut self, endpoint: &mut Endpoint) -> bool {
        if self.all.is_empty() {
            return false;
        }
        let now = Instant::now();
        if self.looked.is_some_and(|looked| now < looked + LOOK) {
            return false;
        }
        self.looked = Some(now);
        let mut any = endpoint.keeps_going() && !endpoint.look_for_lost().is_empty();
        for BegunMessage { request, with, .. } in self.all.values() {
            let Some(with) = with.filter(|_| !endpoint.is_complete(*request)) else { continue };
            endpoint.attend(with);
            if endpoint.has_ended(with) {
                // What it has sent has arrived, since it has ended before.
                while endpoint.progress() {}
                if !endpoint.is_complete(*request) && !endpoint.cancel_receive(*request) {
                    endpoint.lose_ended(with);
                }
                any = true;
            }
        }
        any
    }

    /// How long nobody is to look.
    pub fn rest(&self) -> Option<Duration> {
        (!self.all.is_empty()).then_some(LOOK)
    }

    /// Takes a receive back that no message has met yet, and forgets it; whether it could.
    pub fn cancel(&mut self, endpoint: &mut Endpoint, number: RequestNumber) -> Result<bool> {
        let begun = self.at(number)?;
        let is_cancelled = begun.sent.is_none() && endpoint.cancel_receive(begun.request);
        if is_cancelled {
            endpoint.take_outcome(begun.request);
            self.all.remove(&number.0);
        }
        Ok(is_cancelled)
    }

    /// Cancels receives that no message has met; whether all that was started is over.
    pub fn settle(&self, endpoint: &mut Endpoint) -> bool {
        let over = self.all.values().filter(|begun| {
            let request = begun.request;
            endpoint.is_complete(request) || begun.sent.is_none() && endpoint.cancel_receive(request)
        });
        over.count() == self.all.len()
    }
}

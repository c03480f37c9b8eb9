//! Messages that are started now and waited for later.
//!
//! What was started has a number, and stands in the desk until its outcome is taken. It moves wherever this process waits
//! or polls; there it is looked at, too, now and then, whether the other process has ended.

use crate::desk::{self, FABRIC};
use crate::error::{NativeError, Result};
use crate::known::{self, PortNumber};
use crate::message::{Pick, ReceivedMessage, destination};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use weft_fabric::SendMode;
use weft_ports::{Endpoint, Envelope, Fault, Peer, RequestId, Waiting};

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
struct BegunMessage {
    request: RequestId,
    /// The other process, where that can be one only.
    with: Option<Peer>,
    port: PortNumber,
    /// What is sent; `None` where it is received.
    sent: Option<ReceivedMessage>,
    /// Bytes of the message, or of the room.
    length: usize,
    /// Empty where the memory is the caller's.
    bytes: Vec<u8>,
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
    fn add(&mut self, message: BegunMessage) -> RequestNumber {
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

    fn at(&self, number: RequestNumber) -> Result<&BegunMessage> {
        self.all.get(&number.0).ok_or_else(|| unknown(number))
    }

    /// The outcome of a message that is over, which forgets it; `None` as long as it is under way.
    fn take(&mut self, endpoint: &mut Endpoint, number: RequestNumber) -> Result<Option<DoneMessage>> {
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
    fn first(&self, endpoint: &Endpoint, numbers: &[RequestNumber]) -> Result<Option<usize>> {
        for (at, number) in numbers.iter().enumerate() {
            if endpoint.is_complete(self.at(*number)?.request) {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Looks now and then whether processes have ended that are waited for; true if any has.
    pub fn look(&mut self, endpoint: &mut Endpoint) -> bool {
        let now = Instant::now();
        if self.all.is_empty() || self.looked.is_some_and(|looked| now < looked + LOOK) {
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

    /// Cancels receives that no message has met; whether all that was started is over.
    fn settle(&self, endpoint: &mut Endpoint) -> bool {
        let over = self.all.values().filter(|begun| {
            let request = begun.request;
            endpoint.is_complete(request) || begun.sent.is_none() && endpoint.cancel_receive(request)
        });
        over.count() == self.all.len()
    }
}

/// Starts to send bytes, which stay where they are until the message is over.
///
/// # Safety
/// `data` is readable for `length` bytes, and nobody changes them, until then; `bytes` may be what keeps them.
pub(crate) unsafe fn send_from(
    to: Peer,
    port: PortNumber,
    tag: i32,
    (data, length): (*const u8, usize),
    bytes: Vec<u8>,
) -> Result<RequestNumber> {
    let subject = destination(to, port, tag)?;
    let sent = Some(ReceivedMessage { process: to, port, tag, length });
    Ok(FABRIC.with_both(|endpoint, desk| {
        let envelope = Envelope { context: subject.context, tag, source: endpoint.me().0 };
        // SAFETY: the caller's promise.
        let request = unsafe { endpoint.post_send(to, envelope, data, length, SendMode::Standard) };
        desk.begun.add(BegunMessage { request, with: Some(to), port, sent, length, bytes })
    }))
}

/// Starts to receive into a room, which nobody else uses until the message is over.
///
/// # Safety
/// `room` is writable for `length` bytes until then; `bytes` may be what keeps them.
pub(crate) unsafe fn receive_into(
    pick: Pick,
    (room, length): (*mut u8, usize),
    bytes: Vec<u8>,
) -> Result<RequestNumber> {
    let from = pick.selector()?;
    Ok(FABRIC.with_both(|endpoint, desk| {
        // SAFETY: the caller's promise.
        let request = unsafe { endpoint.post_receive(from, room, length) };
        let (with, port) = (pick.process, pick.port);
        desk.begun.add(BegunMessage { request, with, port, sent: None, length, bytes })
    }))
}

pub(crate) fn send(to: Peer, port: PortNumber, tag: i32, bytes: Vec<u8>) -> Result<RequestNumber> {
    let at = (bytes.as_ptr(), bytes.len());
    // SAFETY: the bytes are kept where they are beside the request.
    unsafe { send_from(to, port, tag, at, bytes) }
}

pub(crate) fn receive(pick: Pick, mut room: Vec<u8>) -> Result<RequestNumber> {
    let at = (room.as_mut_ptr(), room.len());
    // SAFETY: the room is kept where it is beside the request.
    unsafe { receive_into(pick, at, room) }
}

/// What became of a message, if it is over.
pub(crate) fn test(number: RequestNumber) -> Result<Option<DoneMessage>> {
    known::allowed()?;
    let take = || FABRIC.with_both(|endpoint, desk| desk.begun.take(endpoint, number));
    match take()? {
        None => {
            FABRIC.poll();
            take()
        }
        done => Ok(done),
    }
}

/// Waits until a message is over.
pub(crate) fn wait(number: RequestNumber) -> Result<DoneMessage> {
    known::allowed()?;
    let (with, port) = FABRIC.with_both(|_, desk| desk.begun.at(number).map(|begun| (begun.with, begun.port)))?;
    let what = Waiting { call: "weft_wait", peer: with, tag: None, context: port.0 };
    FABRIC.wait_both(what, |endpoint, desk| desk.begun.take(endpoint, number).transpose())
}

/// Waits until one of several is over, at most for `patience`: the first of those that are, whose outcome stays to be
/// taken.
pub(crate) fn wait_any(numbers: &[RequestNumber], patience: Option<Duration>) -> Result<Option<usize>> {
    known::allowed()?;
    if numbers.is_empty() {
        return Err(NativeError::argument("no request is named"));
    }
    let what = Waiting { call: "weft_wait_any", peer: None, tag: None, context: 0 };
    desk::wait(what, patience, |endpoint, desk| desk.begun.first(endpoint, numbers).transpose()).transpose()
}

/// Takes a receive back that no message has met yet; false where it is too late for that, or the message is one that is
/// sent.
pub(crate) fn cancel(number: RequestNumber) -> Result<bool> {
    known::allowed()?;
    FABRIC.with_both(|endpoint, desk| {
        let begun = desk.begun.at(number)?;
        let is_cancelled = begun.sent.is_none() && endpoint.cancel_receive(begun.request);
        if is_cancelled {
            endpoint.take_outcome(begun.request);
            desk.begun.all.remove(&number.0);
        }
        Ok(is_cancelled)
    })
}

/// The process leaves the job: waits until all that was started is over.
pub(crate) fn close() {
    let what = Waiting { call: "weft_finish", peer: None, tag: None, context: 0 };
    FABRIC.wait_both(what, |endpoint, desk| {
        let is_over = desk.begun.settle(endpoint);
        if !is_over {
            // Two that leave do not wait for each other.
            endpoint.discard_arrived();
        }
        is_over.then_some(())
    });
}

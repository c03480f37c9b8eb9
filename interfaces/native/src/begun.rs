//! Calls for messages that are started now and waited for later.

use crate::begun_desk::{BegunMessage, DoneMessage, RequestNumber};
use crate::desk::{self, FABRIC};
use crate::error::{NativeError, Result};
use crate::known::{self, PortNumber};
use crate::message::{Pick, destination};
use crate::received::ReceivedMessage;
use std::time::Duration;
use weft_fabric::SendMode;
use weft_ports::{Envelope, Peer, Waiting};

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
    FABRIC.with_both(|endpoint, desk| desk.begun.cancel(endpoint, number))
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

//! Asynchronous messages: begun by `SND` and `RCV` with a last argument of 0, and over after `WAITCOM`.
//!
//! Invariant PENDING-LIVES: the program leaves the memory of such a message alone until it has called `WAITCOM` for the
//! other process, as TCGMSG demands.

use crate::channel::checked;
use crate::failure::{assert_open, lost, other};
use crate::place::{MESSENGER, TcgmsgContext, me};
use crate::tally;
use std::sync::Mutex;
use weft_fabric::{RequestId, SendMode};
use weft_ports::{Envelope, Peer};

struct Asynchronous {
    request: RequestId,
    /// `None`: a receive from whoever sends first.
    peer: Option<Peer>,
    kind: i32,
    length: usize,
    sends: bool,
}

static ALL: Mutex<Vec<Asynchronous>> = Mutex::new(Vec::new());

fn keep(pending: Asynchronous) {
    ALL.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(pending);
}

/// Starts to send.
///
/// # Safety
/// PENDING-LIVES: `data` is readable and unchanged for `length` bytes until [`wait_for`] has returned.
pub unsafe fn send(kind: i32, data: *const u8, length: usize, to: i64) {
    assert_open("SND");
    let to = other("SND", to);
    let subject = TcgmsgContext::Messages.subject(kind);
    let envelope = Envelope { context: subject.context, tag: subject.tag, source: me() };
    // SAFETY: the caller's promise.
    let start = |endpoint: &mut weft_ports::Endpoint| unsafe {
        endpoint.post_send(to, envelope, data, length, SendMode::Standard)
    };
    keep(Asynchronous { request: MESSENGER.with(start), peer: Some(to), kind, length, sends: true });
}

/// Starts to receive.
///
/// # Safety
/// PENDING-LIVES: `room` is writable for `length` bytes, and not touched, until [`wait_for`] has returned.
pub unsafe fn receive(kind: i32, room: *mut u8, length: usize, from: i64) {
    assert_open("RCV");
    let peer = (from != -1).then(|| other("RCV", from));
    let selector = TcgmsgContext::Messages.from(peer);
    // SAFETY: the caller's promise.
    let request = MESSENGER.with(|endpoint| unsafe { endpoint.post_receive(selector, room, length) });
    keep(Asynchronous { request, peer, kind, length, sends: false });
}

/// Waits until all that was started with this process is over; with all processes, if there is none given.
pub fn wait_for(peer: Option<Peer>) {
    let mut all = ALL.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let is_meant = |pending: &mut Asynchronous| peer.is_none() || pending.peer.is_none() || pending.peer == peer;
    let meant: Vec<Asynchronous> = all.extract_if(.., is_meant).collect();
    drop(all);
    meant.iter().for_each(finish);
}

fn finish(pending: &Asynchronous) {
    let request = pending.request;
    // Also of a send it is looked whether the other process has ended.
    let outcome = MESSENGER.await_receive("WAITCOM", TcgmsgContext::Messages.from(pending.peer), request);
    let peer = pending.peer.unwrap_or(outcome.peer);
    match outcome.fault {
        Some(fault) if fault != weft_ports::Fault::Truncated => lost("WAITCOM", peer.0, fault),
        _ if pending.sends => tally::sent(peer.0, pending.length),
        _ => _ = checked("WAITCOM", pending.kind, peer, pending.length, Ok(outcome)),
    }
}

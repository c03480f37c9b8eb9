//! Messages between two processes, that are received in the order of sending.

use crate::failure::{assert_open, fail, lost, other};
use crate::place::{MESSENGER, TcgmsgContext, size};
use crate::tally;
use std::sync::atomic::{AtomicU32, Ordering};
use weft_ports::{Endpoint, Fault, Outcome, Peer};

/// What a receive has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenMessage {
    pub from: u32,
    pub length: usize,
}

#[inline]
pub fn send(kind: i32, bytes: &[u8], to: i64) {
    assert_open("SND");
    let to = other("SND", to);
    tally::show("SND", kind, to.0, bytes.len());
    if let Err(fault) = MESSENGER.send("SND", to, TcgmsgContext::Messages.subject(kind), bytes) {
        lost("SND", to.0, fault);
    }
    tally::sent(to.0, bytes.len());
}

/// Receives the next message of `from`, or, if that is -1, one of whoever comes next in turn among those whose next
/// message is of this type.
#[inline]
pub fn receive(kind: i32, room: &mut [u8], from: i64) -> TakenMessage {
    assert_open("RCV");
    let from = if from == -1 { next_of_any("RCV", kind) } else { other("RCV", from) };
    let outcome = MESSENGER.receive("RCV", TcgmsgContext::Messages.from(Some(from)), room);
    checked("RCV", kind, from, room.len(), outcome)
}

/// What a receive has got, which must be what it was meant for.
#[inline]
pub fn checked(call: &str, kind: i32, from: Peer, room: usize, outcome: Result<Outcome, Fault>) -> TakenMessage {
    let outcome = outcome.unwrap_or_else(|fault| lost(call, from.0, fault));
    if outcome.tag != kind {
        let text = format!("{call}: type mismatch: node {} has sent type {}, expected", outcome.peer.0, outcome.tag);
        fail(&text, kind.into());
    }
    if outcome.fault.is_some() {
        let text = format!("{call}: message of node {} is too long for the buffer of {room} bytes:", outcome.peer.0);
        fail(&text, outcome.length as i64);
    }
    let received = TakenMessage { from: outcome.peer.0, length: outcome.length as usize };
    tally::show(call, kind, received.from, received.length);
    tally::received(received.from, received.length);
    received
}

/// Whether the next message of `from` is there and of this type; of any process, if that is -1.
pub fn probe(kind: i32, from: i64) -> bool {
    assert_open("PROBE");
    let from = (from != -1).then(|| other("PROBE", from));
    let look = |endpoint: &mut Endpoint| match from {
        Some(peer) => is_next(endpoint, kind, peer),
        None => in_turn(endpoint, kind).is_some(),
    };
    MESSENGER.with(look) || {
        MESSENGER.poll();
        MESSENGER.with(look)
    }
}

fn is_next(endpoint: &mut Endpoint, kind: i32, peer: Peer) -> bool {
    endpoint.probe(TcgmsgContext::Messages.from(Some(peer))).is_some_and(|seen| seen.tag == kind)
}

fn next_of_any(call: &'static str, kind: i32) -> Peer {
    MESSENGER.wait(call, |endpoint| {
        // So that all are seen that have sent, and not only those whose messages came with the last one.
        endpoint.progress();
        in_turn(endpoint, kind)
    })
}

/// A process whose next message is of this type. The search begins after the one that was found last, so that nobody
/// who sends much keeps others from being heard.
fn in_turn(endpoint: &mut Endpoint, kind: i32) -> Option<Peer> {
    static LAST: AtomicU32 = AtomicU32::new(0);
    endpoint.probe(TcgmsgContext::Messages.from(None))?;
    let last = LAST.load(Ordering::Relaxed);
    let found = (1..=size()).map(|step| Peer((last + step) % size())).find(|peer| is_next(endpoint, kind, *peer))?;
    LAST.store(found.0, Ordering::Relaxed);
    Some(found)
}

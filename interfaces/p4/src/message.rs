//! Messages: sends that wait for nobody unless they are to, and receives by type and sender.

use crate::failure::{fail, peer, refuse};
use crate::place::{self, Conversation, MESSENGER, me};
use weft_ports::{Fault, Outcome, Peer, Selector};

/// How a type or a process is named that may be any.
const ANY: i32 = -1;

/// What a receive has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct P4Message {
    pub kind: i32,
    pub from: i32,
    pub length: usize,
}

impl P4Message {
    fn of(outcome: &Outcome) -> Self {
        Self { kind: outcome.tag, from: outcome.peer.0 as i32, length: outcome.length as usize }
    }
}

/// Sends; with `acknowledged` it returns when the receiver has begun to receive. 0, or -1 where it cannot be sent.
#[inline]
pub fn send(kind: i32, bytes: &[u8], to: i32, acknowledged: bool) -> i32 {
    let to = match peer("p4_send", to) {
        Ok(peer) => peer,
        Err(answer) => return answer,
    };
    // Nobody waits for an answer of one's own.
    let sent = if acknowledged && to.0 as i32 != me() {
        MESSENGER.send_synchronously("p4_sendr", to, Conversation::Messages.subject(kind), bytes)
    } else {
        send_away(Conversation::Messages, kind, bytes, to)
    };
    sent.map_or_else(|fault| refuse(&lost("p4_send", fault), to.0 as i32), |()| 0)
}

/// Sends without waiting: what cannot leave now is copied.
#[inline]
pub fn send_away(conversation: Conversation, kind: i32, bytes: &[u8], to: Peer) -> Result<(), Fault> {
    MESSENGER.send_copy(to, conversation.subject(kind), bytes)
}

pub fn lost(call: &str, fault: Fault) -> String {
    let why = match fault {
        Fault::NoMemory => "there is no shared memory for messages with this process",
        _ => "the process of this number (-1: all others) has ended",
    };
    format!("{call}: {why}")
}

/// What a receive of this type and sender would get.
///
/// # Errors
/// -1 where there is no such process.
fn selector(call: &str, kind: i32, from: i32) -> Result<Selector, i32> {
    let from = if from == ANY { None } else { Some(peer(call, from)?) };
    if !place::takes_part() {
        return Err(refuse(&format!("{call}: this process takes no part in messages"), ANY));
    }
    Ok(Conversation::Messages.from(from, (kind != ANY).then_some(kind)))
}

/// Waits for a message, and leaves it there.
///
/// # Errors
/// -1 where none can come.
pub fn wait(call: &'static str, kind: i32, from: i32) -> Result<P4Message, i32> {
    let seen = MESSENGER.await_message(call, selector(call, kind, from)?);
    seen.map(|seen| P4Message::of(&seen)).map_err(|fault| refuse(&lost(call, fault), from))
}

/// Receives into `room`. What does not fit is lost.
///
/// # Errors
/// -1 where no message can come.
#[inline]
pub fn receive(kind: i32, from: i32, room: &mut [u8]) -> Result<P4Message, i32> {
    let outcome = MESSENGER.receive("p4_recv", selector("p4_recv", kind, from)?, room);
    outcome.map(|outcome| P4Message::of(&outcome)).map_err(|fault| refuse(&lost("p4_recv", fault), from))
}

/// The message that would be received, if there is one.
pub fn probe(kind: i32, from: i32) -> Option<P4Message> {
    let selector = selector("p4_messages_available", kind, from).ok()?;
    MESSENGER.probe(selector).map(|seen| P4Message::of(&seen))
}

/// Ends the job where bytes are counted wrongly.
#[cold]
pub fn refuse_length(call: &str, length: i32) -> ! {
    fail(&format!("{call}: a message has no such length"), length)
}

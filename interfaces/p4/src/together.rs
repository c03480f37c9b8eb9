//! What all processes do together.

use crate::failure::{fail, refuse};
use crate::message::{lost, send, send_away};
use crate::place::{self, Conversation, MESSENGER, cluster, me, size, tree};
use weft_ports::Peer;

/// The type of what the library itself says.
const OWN: i32 = -2;

/// Sends the same to all others, who receive it as a message. 0, or -1 where it cannot be sent.
pub fn broadcast(kind: i32, bytes: &[u8]) -> i32 {
    let others = (0..size() as i32).filter(|other| *other != me());
    others.map(|other| send(kind, bytes, other, false)).min().unwrap_or(0)
}

/// Combines what all have and gives all the result. `combine` changes its first argument by its second one, which is as
/// long. The result is the same on all. 0, or -1.
pub fn combine(kind: i32, bytes: &mut [u8], mut combine: impl FnMut(&mut [u8], &mut [u8])) -> i32 {
    if !place::takes_part() {
        return refuse("p4_global_op: this process takes no part in messages, type", kind);
    }
    let gathered = gather(kind, bytes, &mut combine).and_then(|()| spread(kind, bytes));
    gathered.map_or_else(|answer| answer, |()| 0)
}

fn gather(kind: i32, bytes: &mut [u8], combine: &mut impl FnMut(&mut [u8], &mut [u8])) -> Result<(), i32> {
    let mut theirs = vec![0; bytes.len()];
    for child in tree().children() {
        take(kind, &mut theirs, child)?;
        combine(bytes, &mut theirs);
    }
    tree().parent().map_or(Ok(()), |parent| give(kind, bytes, parent))
}

fn spread(kind: i32, bytes: &mut [u8]) -> Result<(), i32> {
    if let Some(parent) = tree().parent() {
        take(kind, bytes, parent)?;
    }
    tree().children().rev().try_for_each(|child| give(kind, bytes, child))
}

fn give(kind: i32, bytes: &[u8], to: u32) -> Result<(), i32> {
    let sent = send_away(Conversation::Together, kind, bytes, Peer(to));
    sent.map_err(|fault| refuse(&lost("p4_global_op", fault), to as i32))
}

fn take(kind: i32, room: &mut [u8], from: u32) -> Result<(), i32> {
    let selector = Conversation::Together.from(Some(Peer(from)), None);
    let outcome = MESSENGER.receive("p4_global_op", selector, room);
    let outcome = outcome.map_err(|fault| refuse(&lost("p4_global_op", fault), from as i32))?;
    if outcome.tag != kind || outcome.length != room.len() as u64 {
        let (theirs, ours) = (outcome.tag, room.len());
        let text = format!(
            "p4_global_op: process {from} gives {} bytes of type {theirs} where {ours} of type {kind} are to come",
            outcome.length
        );
        fail(&text, from as i32);
    }
    Ok(())
}

/// What the first process of the cluster has, for all of it.
pub fn share_in_cluster(value: u64) -> u64 {
    let mut bytes = value.to_ne_bytes();
    let (first, last) = cluster();
    if first != last && place::takes_part() {
        let _ = spread(OWN, &mut bytes);
    }
    u64::from_ne_bytes(bytes)
}

/// Returns when all have come here.
pub fn meet() {
    combine(OWN, &mut [], |_, _| {});
}

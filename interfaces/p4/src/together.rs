//! What all processes do together.

use crate::failure::{fail, refuse};
use crate::message::{lost, send, send_away};
use crate::place::{self, Conversation, MESSENGER, cluster, me, size, tree};
use weft_ports::{Call, Peer};

/// The type of what the library itself says.
const OWN: i32 = -2;

/// Sends the same to all others, who receive it as a message. 0, or -1 where it cannot be sent.
pub fn broadcast(kind: i32, bytes: &[u8]) -> i32 {
    let others = (0..size() as i32).filter(|other| *other != me());
    others.map(|other| send(kind, bytes, other, false)).min().unwrap_or(0)
}

/// Combines what all have and gives all the result. `combine` changes its first argument by its second one, which is as
/// long. The result is the same on all. 0, or -1.
pub fn combine(call: Call, kind: i32, bytes: &mut [u8], mut combine: impl FnMut(&mut [u8], &mut [u8])) -> i32 {
    if !place::takes_part() {
        return refuse(&format!("{call}: this process takes no part in messages, type"), kind);
    }
    let gathered = gather(call, kind, bytes, &mut combine).and_then(|()| spread(call, kind, bytes));
    gathered.map_or_else(|answer| answer, |()| 0)
}

fn gather(call: Call, kind: i32, bytes: &mut [u8], combine: &mut impl FnMut(&mut [u8], &mut [u8])) -> Result<(), i32> {
    let mut theirs = vec![0; bytes.len()];
    for child in tree().children() {
        take(call, kind, &mut theirs, child)?;
        combine(bytes, &mut theirs);
    }
    tree().parent().map_or(Ok(()), |parent| give(call, kind, bytes, parent))
}

fn spread(call: Call, kind: i32, bytes: &mut [u8]) -> Result<(), i32> {
    if let Some(parent) = tree().parent() {
        take(call, kind, bytes, parent)?;
    }
    tree().children().rev().try_for_each(|child| give(call, kind, bytes, child))
}

fn give(call: Call, kind: i32, bytes: &[u8], to: u32) -> Result<(), i32> {
    let sent = send_away(Conversation::Together, kind, bytes, Peer(to));
    sent.map_err(|fault| refuse(&lost(call, fault), to as i32))
}

fn take(call: Call, kind: i32, room: &mut [u8], from: u32) -> Result<(), i32> {
    let selector = Conversation::Together.from(Some(Peer(from)), None);
    let outcome = MESSENGER.receive(call, selector, room);
    let outcome = outcome.map_err(|fault| refuse(&lost(call, fault), from as i32))?;
    if outcome.tag != kind || outcome.length != room.len() as u64 {
        let (theirs, ours) = (outcome.tag, room.len());
        let text = format!(
            "{call}: process {from} gives {} bytes of type {theirs} where {ours} of type {kind} are to come",
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
        let _ = spread("p4_cluster_shmem_sync", OWN, &mut bytes);
    }
    u64::from_ne_bytes(bytes)
}

/// Returns when all have come here.
pub fn meet() {
    combine("p4_create_procgroup", OWN, &mut [], |_, _| {});
}

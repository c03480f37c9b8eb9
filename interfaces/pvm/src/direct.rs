//! Long messages straight out of the sender's memory into the receiver's, with `pvm_psend` and `pvm_precv`.
//!
//! `pvm_psend` waits for nobody, so it copies what it cannot send at once. That is not needed where the receiver waits
//! for just this message: so who has once had a long message of this kind from a task tells it, by a short message of
//! its own context, before it waits for another one of it. The word says how many messages of the sender it has taken:
//! if that are all, it waits for the next one, and goes on waiting until it has it.

use crate::waiting::{FABRIC, wait_until};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use weft_ports::{Envelope, Peer, Selector};

/// Messages that are shorter are copied.
pub const LEAST: usize = 1 << 16;

/// The context of a word is that in which the next message is awaited, and this bit. A word is an empty message: its
/// source says how many were taken.
const WORD: u32 = 1 << 31;
/// In its tag: any.
const ANY_TAG: i32 = -1;

/// How long a sender looks for a word, if there was one before.
const PATIENCE: Duration = Duration::from_micros(30);

#[derive(Default)]
struct With {
    sent: u32,
    taken: u32,
    /// It sends long messages out of its memory.
    sends_long: bool,
    /// There was a word of it for the last long message.
    says: bool,
}

#[derive(Default)]
pub struct Directly {
    with: HashMap<Peer, With>,
    /// The one of them that was last sent to or received from, apart.
    last: Option<(Peer, With)>,
}

impl Directly {
    #[inline]
    fn with(&mut self, peer: Peer) -> &mut With {
        if self.last.as_ref().is_none_or(|(last, _)| *last != peer) {
            self.change(peer);
        }
        &mut self.last.get_or_insert_with(|| (peer, With::default())).1
    }

    #[cold]
    fn change(&mut self, peer: Peer) {
        let next = self.with.remove(&peer).unwrap_or_default();
        if let Some((last, with)) = self.last.replace((peer, next)) {
            self.with.insert(last, with);
        }
    }

    #[inline]
    pub fn note_sent(&mut self, peer: Peer) {
        let with = self.with(peer);
        with.sent = with.sent.wrapping_add(1);
    }

    #[inline]
    pub fn note_taken(&mut self, peer: Peer, in_place: bool, length: u64) {
        let with = self.with(peer);
        with.taken = with.taken.wrapping_add(1);
        with.sends_long |= in_place && length >= LEAST as u64;
    }

    pub fn say_waiting(&mut self, peer: Peer, tag: Option<i32>, context: u32, room: usize) {
        let with = self.with(peer);
        if !with.sends_long || room < LEAST {
            return;
        }
        let envelope = Envelope { context: context | WORD, tag: tag.unwrap_or(ANY_TAG), source: with.taken };
        // One that does not fit is not missed.
        FABRIC.try_send(peer, envelope, &[]);
    }

    /// Whether `peer` waits for a message with this envelope, the next one that it gets.
    pub fn is_awaited(&mut self, peer: Peer, envelope: &Envelope) -> bool {
        let with = self.with(peer);
        let words = Selector { context: envelope.context | WORD, peer: Some(peer), tag: None };
        if with.says {
            let until = Instant::now() + PATIENCE;
            wait_until("pvm_psend", None, false, |endpoint, _| {
                (endpoint.probe(words).is_some() || Instant::now() >= until).then_some(())
            });
        } else {
            FABRIC.poll();
        }
        let mut last = None;
        while FABRIC.with(|endpoint| endpoint.probe(words)).is_some() {
            last = FABRIC.receive("pvm_psend", words, &mut []).ok().or(last);
        }
        with.says = last.is_some();
        last.is_some_and(|word| word.source == with.sent && (word.tag == ANY_TAG || word.tag == envelope.tag))
    }
}

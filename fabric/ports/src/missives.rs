//! Messages of any length to and from anybody, each a short head and a tail, in the order in which a process has sent
//! them. Sending never waits, and takes no bytes away: a long tail is shared until it has left.
//!
//! What fits goes as one message. For the rest the head goes with an announcement, and the tail behind it straight into
//! its place; what its sender has sent after it is kept until then.

use crate::ready::{ReadyReceives, Room, bytes_of};
use std::collections::VecDeque;
use std::sync::Arc;
use weft_fabric::{Endpoint, Envelope, Outcome, Peer, RequestId, Selector, SendMode};

/// Bytes that go as one message.
const WHOLE_BYTES: usize = 16 * 1024 - 64;
/// Longest head of an announcement.
const HEAD_BYTES: usize = 1024;
/// Longest tail, so that no peer can ask for all memory there is.
pub const LONGEST_BYTES: u64 = 1 << 31;
/// Says that the tail follows. Tags of users are below.
const ANNOUNCED: i32 = 1 << 30;
/// After so many tails were given to the fabric it is looked which have left.
const RECLAIMED: usize = 16;

/// What has come.
pub struct Missive {
    pub from: Peer,
    /// Below 2^30.
    pub tag: i32,
    /// Whatever its sender says.
    pub source: u32,
    room: Room,
    begin: usize,
    end: usize,
    /// Where it did not come with the head.
    pub tail: Option<Arc<[u8]>>,
}

impl Missive {
    /// The head, with the tail behind it where that came with it.
    pub fn bytes(&self) -> &[u8] {
        &bytes_of(&self.room, self.end)[self.begin..]
    }
}

/// A missive whose tail is on its way.
struct ComingTail {
    request: RequestId,
    missive: Missive,
}

/// What has not left yet.
struct LeavingTail {
    request: RequestId,
    to: Peer,
    _bytes: Arc<[u8]>,
}

/// The missives of a context; the next one is used, too.
pub struct Missives {
    context: u32,
    ready: ReadyReceives,
    coming: Vec<ComingTail>,
    /// What came behind those.
    kept: VecDeque<(Outcome, Room)>,
    leaving: Vec<LeavingTail>,
    number: i32,
    whole: Vec<u8>,
}

impl Missives {
    pub fn new(context: u32) -> Self {
        let ready = ReadyReceives::new(context, WHOLE_BYTES);
        let (coming, kept, leaving) = (Vec::new(), VecDeque::new(), Vec::new());
        Self { context, ready, coming, kept, leaving, number: 0, whole: Vec::new() }
    }

    /// Has receives stand ready; best called again where nothing else is to do.
    #[inline]
    pub fn post(&mut self, endpoint: &mut Endpoint) {
        self.ready.post(endpoint);
    }

    /// Sends a missive to each of these, with a tag below 2^30.
    #[inline]
    pub fn send(
        &mut self,
        endpoint: &mut Endpoint,
        to: impl Iterator<Item = (Peer, i32)>,
        source: u32,
        (head, tail): (&[u8], &[u8]),
        shared: impl FnOnce() -> Arc<[u8]>,
    ) {
        if head.len() + tail.len() > WHOLE_BYTES {
            return self.send_announced(endpoint, to, source, (head, tail), shared);
        }
        let mut whole = std::mem::take(&mut self.whole);
        whole.clear();
        whole.extend_from_slice(head);
        whole.extend_from_slice(tail);
        for (peer, tag) in to {
            self.send_whole(endpoint, peer, Envelope { context: self.context, tag, source }, &whole);
        }
        self.whole = whole;
    }

    /// One message; what cannot leave at once is copied.
    #[inline]
    fn send_whole(&mut self, endpoint: &mut Endpoint, to: Peer, envelope: Envelope, bytes: &[u8]) {
        // SAFETY: the bytes are here, and have left where the answer is true.
        if !unsafe { endpoint.try_send(to, envelope, bytes.as_ptr(), bytes.len()) } {
            self.post_send(endpoint, to, envelope, bytes.into());
        }
    }

    #[cold]
    fn send_announced(
        &mut self,
        endpoint: &mut Endpoint,
        to: impl Iterator<Item = (Peer, i32)>,
        source: u32,
        (head, tail): (&[u8], &[u8]),
        shared: impl FnOnce() -> Arc<[u8]>,
    ) {
        let (head, tail) =
            if head.len() > HEAD_BYTES { (&[][..], [head, tail].concat().into()) } else { (head, shared()) };
        for (peer, tag) in to {
            self.number = (self.number + 1) & i32::MAX;
            let announcement =
                [&(tail.len() as u64).to_le_bytes()[..], &i64::from(self.number).to_le_bytes(), head].concat();
            let envelope = Envelope { context: self.context, tag: tag | ANNOUNCED, source };
            self.send_whole(endpoint, peer, envelope, &announcement);
            let follows = Envelope { context: self.context + 1, tag: self.number, source };
            self.post_send(endpoint, peer, follows, tail.clone());
        }
    }

    #[cold]
    fn post_send(&mut self, endpoint: &mut Endpoint, to: Peer, envelope: Envelope, bytes: Arc<[u8]>) {
        if self.leaving.len() % RECLAIMED == RECLAIMED - 1 {
            self.reclaim(endpoint);
        }
        // SAFETY: the bytes are kept in `leaving`, and nobody changes what is shared, until the request is complete.
        let request = unsafe { endpoint.post_send(to, envelope, bytes.as_ptr(), bytes.len(), SendMode::Standard) };
        self.leaving.push(LeavingTail { request, to, _bytes: bytes });
    }

    /// Frees what has left. True if all has.
    pub fn reclaim(&mut self, endpoint: &mut Endpoint) -> bool {
        self.leaving.retain(|tail| endpoint.take_outcome(tail.request).is_none());
        self.leaving.is_empty()
    }

    /// To whom something has not left yet.
    pub fn leaving_to(&self) -> impl Iterator<Item = Peer> {
        self.leaving.iter().map(|tail| tail.to)
    }

    /// The next missive that has come.
    #[inline]
    pub fn next(&mut self, endpoint: &mut Endpoint) -> Option<Missive> {
        if self.coming.is_empty() && self.kept.is_empty() {
            let (outcome, room) = self.ready.next(endpoint)?;
            if outcome.fault.is_none() && outcome.tag & ANNOUNCED == 0 {
                return Some(missive(&outcome, room, 0));
            }
            self.kept.push_back((outcome, room));
        }
        self.next_behind_tails(endpoint)
    }

    #[cold]
    fn next_behind_tails(&mut self, endpoint: &mut Endpoint) -> Option<Missive> {
        if let Some(at) = self.coming.iter().position(|coming| endpoint.is_complete(coming.request)) {
            let coming = self.coming.remove(at);
            let outcome = endpoint.take_outcome(coming.request)?;
            // A tail that will not come takes its missive with it: its sender is lost.
            return if outcome.fault.is_none() { Some(coming.missive) } else { self.next_behind_tails(endpoint) };
        }
        while let Some(next) = self.ready.next(endpoint) {
            self.kept.push_back(next);
        }
        let waits = |outcome: &Outcome| self.coming.iter().any(|coming| coming.missive.from == outcome.peer);
        let at = self.kept.iter().position(|(outcome, _)| !waits(outcome))?;
        let (outcome, room) = self.kept.remove(at)?;
        if outcome.fault.is_some() {
            self.give_back(room);
            return self.next_behind_tails(endpoint);
        }
        if outcome.tag & ANNOUNCED == 0 {
            return Some(missive(&outcome, room, 0));
        }
        self.receive_tail(endpoint, &outcome, room);
        self.next_behind_tails(endpoint)
    }

    /// Starts to receive a tail. Whose announcement cannot be is lost.
    fn receive_tail(&mut self, endpoint: &mut Endpoint, outcome: &Outcome, room: Room) {
        let [length, number] = [room[0], room[1]];
        let Some(number) = i32::try_from(number).ok().filter(|_| outcome.length >= 16 && length <= LONGEST_BYTES)
        else {
            return endpoint.lose(outcome.peer);
        };
        // SAFETY: zeroes are bytes. What is long is new from the kernel, and not written twice.
        let mut tail = unsafe { Arc::<[u8]>::new_zeroed_slice(length as usize).assume_init() };
        let from = Selector { context: self.context + 1, peer: Some(outcome.peer), tag: Some(number) };
        let place = Arc::get_mut(&mut tail).map_or(std::ptr::null_mut(), <[u8]>::as_mut_ptr);
        // SAFETY: the tail is kept in `coming`, and not looked at, until the request is complete.
        let request = unsafe { endpoint.post_receive(from, place, length as usize) };
        let missive = Missive { tail: Some(tail), ..missive(outcome, room, 16) };
        self.coming.push(ComingTail { request, missive });
    }

    /// Takes the memory of a missive back.
    #[inline]
    pub fn give_back(&mut self, room: impl Into<Room>) {
        self.ready.give_back(room.into());
    }

    /// Gives all up, before the endpoint leaves.
    pub fn withdraw(&mut self, endpoint: &mut Endpoint) {
        self.ready.withdraw(endpoint);
        for coming in self.coming.drain(..) {
            if !endpoint.cancel_receive(coming.request) && !endpoint.is_complete(coming.request) {
                // It is being written into, and will be until the end.
                std::mem::forget(coming.missive);
            }
        }
    }
}

/// What is still on its way may be written into, or read: its memory is never given back.
impl Drop for Missives {
    fn drop(&mut self) {
        self.coming.drain(..).for_each(std::mem::forget);
        self.leaving.drain(..).for_each(std::mem::forget);
    }
}

impl From<Missive> for Room {
    fn from(missive: Missive) -> Self {
        missive.room
    }
}

fn missive(outcome: &Outcome, room: Room, begin: usize) -> Missive {
    let end = (outcome.length as usize).min(8 * room.len());
    Missive { from: outcome.peer, tag: outcome.tag & !ANNOUNCED, source: outcome.source, room, begin, end, tail: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_fabric::Segment;

    #[test]
    fn missives_of_any_length_come_in_the_order_of_sending() {
        let segment = Segment::create(2).expect("memory");
        let mut one = Endpoint::join_segment(segment.clone(), 0).expect("a member");
        let mut other = Endpoint::join_segment(segment, 1).expect("a member");
        let (mut sends, mut takes) = (Missives::new(5), Missives::new(5));
        takes.post(&mut other);
        let lengths = [0, 8, 100_000, 3, WHOLE_BYTES, WHOLE_BYTES + 1, 7, 3_000_000, 1];
        let mut came = Vec::new();
        for (at, length) in lengths.into_iter().enumerate() {
            let tail: Arc<[u8]> = vec![at as u8; length].into();
            // The head of one is long.
            let head = vec![at as u8; if at == 5 { 20_000 } else { 3 }];
            sends.send(&mut one, [(Peer(1), at as i32)].into_iter(), 9, (&head, &tail), || tail.clone());
        }
        while came.len() < lengths.len() {
            one.progress();
            other.progress();
            takes.post(&mut other);
            while let Some(missive) = takes.next(&mut other) {
                let tail = missive.tail.as_deref().unwrap_or_default();
                let bytes = [missive.bytes(), tail].concat();
                let at = missive.tag as usize;
                assert_eq!((at, missive.from, missive.source), (came.len(), Peer(0), 9));
                assert_eq!(bytes.len(), lengths[at] + if at == 5 { 20_000 } else { 3 });
                assert!(bytes.iter().all(|byte| *byte == at as u8));
                came.push(at);
                takes.give_back(missive);
            }
        }
        while !sends.reclaim(&mut one) {
            one.progress();
            other.progress();
        }
        takes.withdraw(&mut other);
        one.leave();
        other.leave();
    }
}

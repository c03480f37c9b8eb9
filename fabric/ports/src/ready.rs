//! Receives that stand ready for messages of anybody, so that these come straight into memory of the interface.

use std::collections::VecDeque;
use weft_fabric::{Endpoint, Outcome, RequestId, Selector};

/// Receives that stand ready.
const READY: usize = 8;

/// Memory that a message is received into, at a multiple of 8.
pub type Room = Box<[u64]>;

/// The first bytes of a room.
pub fn bytes_of(room: &[u64], length: usize) -> &[u8] {
    let length = length.min(8 * room.len());
    // SAFETY: the room is readable for that many bytes, all of which are initialised.
    unsafe { std::slice::from_raw_parts(room.as_ptr().cast(), length) }
}

/// So many numbers of 32 bits in a room, from a place on; `None` if it has not so many.
#[inline]
pub fn integers_of(room: &[u64], from: usize, count: usize) -> Option<&[i32]> {
    // SAFETY: the room is readable for two numbers in each word, and any bytes are one.
    let all = unsafe { std::slice::from_raw_parts(room.as_ptr().cast::<i32>(), 2 * room.len()) };
    all.get(from..from.checked_add(count)?)
}

/// A room that has no more than those bytes.
pub fn tight(bytes: &[u8]) -> Room {
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_ne_bytes(word)
    });
    words.collect()
}

/// The receives of one context. What is longer than a room comes with the fault of a message that was cut.
pub struct ReadyReceives {
    context: u32,
    /// Words of a room.
    words: usize,
    ready: VecDeque<(RequestId, Room)>,
    spare: Vec<Room>,
}

impl ReadyReceives {
    /// For messages of at most so many bytes.
    pub fn new(context: u32, bytes: usize) -> Self {
        Self { context, words: bytes.div_ceil(8), ready: VecDeque::new(), spare: Vec::new() }
    }

    /// Has as many stand ready as there are to be.
    #[inline]
    pub fn post(&mut self, endpoint: &mut Endpoint) {
        while self.ready.len() < READY {
            let room = self.spare.pop().unwrap_or_else(|| vec![0; self.words].into());
            self.post_room(endpoint, room);
        }
    }

    fn post_room(&mut self, endpoint: &mut Endpoint, mut room: Room) {
        let any = Selector { context: self.context, peer: None, tag: None };
        // SAFETY: the room is kept in `ready`, where nobody touches it, until the request is complete.
        let request = unsafe { endpoint.post_receive(any, room.as_mut_ptr().cast(), 8 * room.len()) };
        self.ready.push_back((request, room));
    }

    /// The next message that has come, in the order of matching.
    #[inline]
    pub fn next(&mut self, endpoint: &mut Endpoint) -> Option<(Outcome, Room)> {
        let (request, _) = self.ready.front()?;
        let outcome = endpoint.take_outcome(*request)?;
        let (_, room) = self.ready.pop_front()?;
        if self.ready.len() <= READY / 2 {
            self.post(endpoint);
        }
        Some((outcome, room))
    }

    /// Takes a room back; one that is not of these receives is freed. It stands ready again at the next [`Self::post`],
    /// which is best called where there is nothing else to do: who waits for an answer does not wait for that.
    #[inline]
    pub fn give_back(&mut self, room: Room) {
        if room.len() == self.words && self.spare.len() < READY {
            self.spare.push(room);
        }
    }

    /// Gives the receives up, before the endpoint leaves.
    pub fn withdraw(&mut self, endpoint: &mut Endpoint) {
        for (request, room) in self.ready.drain(..) {
            if !endpoint.cancel_receive(request) && !endpoint.is_complete(request) {
                // It is being written into, and will be until the end.
                std::mem::forget(room);
            }
        }
    }
}

/// What was not withdrawn may still be written into: its memory is never given back.
impl Drop for ReadyReceives {
    fn drop(&mut self) {
        self.ready.drain(..).for_each(|(_, room)| std::mem::forget(room));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_fabric::{Envelope, Peer, Segment, SendMode};

    #[test]
    fn messages_come_in_order_however_many_they_are() {
        let segment = Segment::create(2).expect("memory");
        let mut one = Endpoint::join_segment(segment.clone(), 0).expect("a member");
        let mut other = Endpoint::join_segment(segment, 1).expect("a member");
        let mut receives = ReadyReceives::new(5, 100);
        receives.post(&mut other);
        let mut held = Vec::new();
        for number in 0..50u8 {
            let bytes = [number; 20];
            let envelope = Envelope { context: 5, tag: i32::from(number), source: 0 };
            // SAFETY: the bytes live until the request is complete, which it is when the other one has received.
            let request = unsafe { one.post_send(Peer(1), envelope, bytes.as_ptr(), 20, SendMode::Standard) };
            let (outcome, room) = loop {
                one.progress();
                other.progress();
                if let Some(next) = receives.next(&mut other) {
                    break next;
                }
            };
            assert_eq!((outcome.tag, outcome.length, bytes_of(&room, 20)), (i32::from(number), 20, &bytes[..]));
            assert_eq!(bytes_of(&tight(&bytes), 20), bytes);
            if number % 3 == 0 {
                receives.give_back(room);
            } else {
                held.push(room);
            }
            one.release(request);
        }
        receives.withdraw(&mut other);
        one.leave();
        other.leave();
    }
}

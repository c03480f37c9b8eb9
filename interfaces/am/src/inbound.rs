//! What arrives: receives that stand ready, the endpoints' inboxes, and what becomes of a message.
//!
//! A receive takes any message whole. Bytes that come apart are received straight into the segment, after the place was
//! checked; such a message waits meanwhile, and others may overtake it, which AM allows.

use crate::arrived::{AmArrival, ArrivedBytes, ComingBytes};
use crate::call::{AmHandlerCall, Manner};
use crate::kept::AmContext;
use crate::message::{AmCategory, FRONT_BYTES, LONG_BYTES, MessageHead, Purpose};
use crate::tables::{AmEndpoint, CFunction, SegmentOfUser};
use crate::token::MessageToken;
use crate::world::{AmWorld, WORLD};
use std::ffi::c_void;
use weft_fabric::{Outcome, Peer, Selector};
use weft_ports::ready::{Room, bytes_of, tight};

/// An endpoint that has more messages than this keeps them in no larger rooms than they need.
const LOOSE: usize = 8;

static NO_BYTES: u64 = 0;

/// Why a message comes back; numbers of AM-II.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum RefusedWhy {
    BadTag = 3,
    BadHandler = 4,
    BadSegmentOffset = 5,
    BadLength = 6,
    BadEndpoint = 7,
    Unreachable = 9,
}

impl AmWorld {
    /// A room that is not needed any more.
    fn give_back(&mut self, room: Room) {
        self.inbound.ready.give_back(&mut self.endpoint, room);
    }

    /// Takes in what has come.
    #[inline]
    pub fn collect(&mut self) {
        while let Some((outcome, room)) = self.inbound.ready.next(&mut self.endpoint) {
            self.admit(&outcome, room);
        }
        if !self.inbound.coming.is_empty() {
            self.collect_placed();
        }
        self.reclaim();
    }

    fn admit(&mut self, outcome: &Outcome, room: Room) {
        let rank = outcome.peer.0;
        let whole = outcome.fault.is_none().then(|| bytes_of(&room, outcome.length as usize));
        let read = whole.and_then(|bytes| MessageHead::read(outcome.tag, bytes));
        match read {
            Some((head, begin)) if matches!(head.purpose, Purpose::Request | Purpose::Reply | Purpose::Returned) => {
                self.admit_message(head, rank, room, begin, outcome.length as usize - begin);
            }
            Some((head, _)) => {
                let value = head.arguments.values().first().copied().unwrap_or_default();
                self.spmd.note(head.purpose, value);
                self.give_back(room);
            }
            // What no process of ours sends.
            None => self.give_back(room),
        }
    }

    fn admit_message(&mut self, head: MessageHead, rank: u32, room: Room, begin: usize, length: usize) {
        let Some(endpoint) = self.tables.endpoint(head.to) else {
            self.give_back(room);
            return self.refuse(&head, rank, RefusedWhy::BadEndpoint);
        };
        if let Some((bytes, number)) = head.apart {
            let place = place_of(endpoint.segment, head.offset, bytes);
            self.give_back(room);
            return self.expect_bytes(head, rank, place, bytes, number);
        }
        let is_loose = endpoint.inbox.len() > LOOSE;
        if length == 0 || is_loose {
            let bytes = match length {
                0 => ArrivedBytes::None,
                _ => {
                    let tight = tight(&bytes_of(&room, begin + length)[begin..]);
                    ArrivedBytes::Here { room: tight, begin: 0, length }
                }
            };
            endpoint.inbox.push_back(AmArrival { head, rank, bytes });
            return self.give_back(room);
        }
        endpoint.inbox.push_back(AmArrival { head, rank, bytes: ArrivedBytes::Here { room, begin, length } });
    }

    /// Receives the bytes of a long message into their place; where there is none, they are thrown away.
    fn expect_bytes(
        &mut self,
        head: MessageHead,
        rank: u32,
        place: Result<usize, RefusedWhy>,
        bytes: u64,
        number: i32,
    ) {
        let from = Selector { context: AmContext::Bytes as u32, peer: Some(Peer(rank)), tag: Some(number) };
        match place {
            Ok(at) => {
                let into = std::ptr::with_exposed_provenance_mut(at);
                // SAFETY: the program has said with `AM_SetSeg` that this is memory for messages to land in.
                let request = unsafe { self.endpoint.post_receive(from, into, bytes as usize) };
                self.inbound.coming.push(ComingBytes { request, head, rank, at });
            }
            Err(why) => {
                // SAFETY: nothing is written.
                let request = unsafe { self.endpoint.post_receive(from, std::ptr::null_mut(), 0) };
                self.endpoint.release(request);
                self.refuse(&head, rank, why);
            }
        }
    }

    #[cold]
    fn collect_placed(&mut self) {
        let Self { endpoint, inbound, tables, .. } = self;
        inbound.coming.retain(|coming| {
            let Some(outcome) = endpoint.take_outcome(coming.request) else { return true };
            let receiver = tables.endpoint(coming.head.to).filter(|_| outcome.fault.is_none());
            if let Some(receiver) = receiver {
                let bytes = ArrivedBytes::Placed { at: coming.at, length: outcome.length as usize };
                receiver.inbox.push_back(AmArrival { head: coming.head, rank: coming.rank, bytes });
            }
            false
        });
    }

    /// Sends a message back that is not handled.
    #[cold]
    pub fn refuse(&mut self, head: &MessageHead, rank: u32, why: RefusedWhy) {
        if head.purpose == Purpose::Returned {
            return;
        }
        let returned = (why as u32, head.purpose == Purpose::Request);
        let (purpose, to, from) = (Purpose::Returned, head.from, head.to);
        let back = MessageHead { purpose, to, from, returned, apart: None, ..*head };
        let mut front = [0; FRONT_BYTES];
        let length = back.write(0, &mut front);
        self.send_or_keep(Peer(rank), back.word(), &front[..length]);
    }

    /// A request that cannot be sent is returned at once.
    pub fn return_own(&mut self, head: &MessageHead, rank: u32) {
        let (purpose, returned) =
            (Purpose::Returned, (RefusedWhy::Unreachable as u32, head.purpose == Purpose::Request));
        let (to, from) = (head.from, head.to);
        let head = MessageHead { purpose, returned, to, from, apart: None, ..*head };
        if let Some(endpoint) = self.tables.endpoint(to) {
            endpoint.inbox.push_back(AmArrival { head, rank, bytes: ArrivedBytes::None });
        }
    }

    /// What is to be called for a message, or why it is refused.
    #[inline]
    fn prepare(&mut self, message: &AmArrival) -> Result<AmHandlerCall, RefusedWhy> {
        let AmArrival { head, rank, bytes } = message;
        let endpoint = self.tables.endpoint(head.to).ok_or(RefusedWhy::BadEndpoint)?;
        let (function, manner) = match head.purpose {
            Purpose::Returned => {
                endpoint.stats.returned += 1;
                let opcode = head.category as u32 + if head.returned.1 { 1 } else { 4 };
                (endpoint.handlers[0], Manner::Returned { status: head.returned.0, opcode })
            }
            _ => (Some(accepted(endpoint, head)?), Manner::Message),
        };
        let (pointer, length) = match bytes {
            ArrivedBytes::None if head.category == AmCategory::Long => {
                (place_of(endpoint.segment, head.offset, 0).unwrap_or_default() as *mut c_void, 0)
            }
            // Functions of C want an address also for no bytes.
            ArrivedBytes::None => ((&raw const NO_BYTES).cast_mut().cast(), 0),
            ArrivedBytes::Placed { at, length } => (std::ptr::with_exposed_provenance_mut(*at), *length),
            ArrivedBytes::Here { room, begin, length } if head.category == AmCategory::Long => {
                let at = place_of(endpoint.segment, head.offset, *length as u64)?;
                let place: *mut u8 = std::ptr::with_exposed_provenance_mut(at);
                // SAFETY: the program has said with `AM_SetSeg` that this is memory for messages to land in. `length` bytes
                // are in the room from `begin` on.
                unsafe { room.as_ptr().cast::<u8>().add(*begin).copy_to(place, *length) };
                (place.cast(), *length)
            }
            ArrivedBytes::Here { room, begin, length } => {
                // SAFETY: `begin` is in the room.
                (unsafe { room.as_ptr().cast::<u8>().add(*begin) }.cast_mut().cast(), *length)
            }
        };
        let is_request = head.purpose == Purpose::Request;
        if manner == Manner::Message {
            endpoint.stats.received(is_request, head.category);
        }
        let (before, after) = (endpoint.before, endpoint.after);
        let token = MessageToken::new(head, *rank, is_request);
        Ok(AmHandlerCall { function, manner, before, after, pointer, length, token })
    }
}

/// The handler of a request or reply, if the endpoint takes it.
#[inline]
fn accepted(endpoint: &AmEndpoint, head: &MessageHead) -> Result<CFunction, RefusedWhy> {
    const NONE: u64 = 0;
    const ALL: u64 = 1;
    let tag = endpoint.tag;
    // Who was asked may answer.
    if head.purpose == Purpose::Request && (tag == NONE || tag != head.tag && tag != ALL) {
        return Err(RefusedWhy::BadTag);
    }
    endpoint.handlers[usize::from(head.handler)].ok_or(RefusedWhy::BadHandler)
}

/// Where so many bytes lie in a segment.
fn place_of(segment: SegmentOfUser, offset: u64, bytes: u64) -> Result<usize, RefusedWhy> {
    let begin = usize::try_from(offset).ok().and_then(|offset| segment.begin.checked_add(offset));
    if bytes == 0 {
        return begin.ok_or(RefusedWhy::BadSegmentOffset);
    }
    let begin = begin.filter(|begin| *begin != 0 && offset <= segment.length as u64);
    let begin = begin.ok_or(RefusedWhy::BadSegmentOffset)?;
    let fits = bytes <= LONG_BYTES as u64 && offset.checked_add(bytes).is_some_and(|end| end <= segment.length as u64);
    if fits && begin.checked_add(bytes as usize).is_some() { Ok(begin) } else { Err(RefusedWhy::BadLength) }
}

/// Runs the handler of a message.
#[inline]
pub fn run(message: AmArrival) {
    let mut world = WORLD.enter();
    match world.prepare(&message) {
        Ok(call) => {
            drop(world);
            call.run(&message.head.arguments);
            world = WORLD.enter();
        }
        Err(why) => world.refuse(&message.head, message.rank, why),
    }
    if let ArrivedBytes::Here { room, .. } = message.bytes {
        world.give_back(room);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_lies_in_the_segment_or_is_refused() {
        let segment = SegmentOfUser { begin: 1000, length: 100 };
        assert_eq!(place_of(segment, 0, 100), Ok(1000));
        assert_eq!(place_of(segment, 100, 0), Ok(1100));
        assert_eq!(place_of(segment, 1, 100), Err(RefusedWhy::BadLength));
        assert_eq!(place_of(segment, 101, 1), Err(RefusedWhy::BadSegmentOffset));
        assert_eq!(place_of(segment, u64::MAX, 8), Err(RefusedWhy::BadSegmentOffset));
        assert_eq!(place_of(segment, 8, u64::MAX - 2), Err(RefusedWhy::BadLength));
        assert_eq!(place_of(SegmentOfUser::default(), 0, 1), Err(RefusedWhy::BadSegmentOffset));
        let all = SegmentOfUser { begin: 0, length: usize::MAX };
        assert_eq!(place_of(all, 4096, 64), Ok(4096));
        assert_eq!(place_of(all, 0, 64), Err(RefusedWhy::BadSegmentOffset));
        assert_eq!(place_of(all, 4096, LONG_BYTES as u64 + 1), Err(RefusedWhy::BadLength));
    }
}

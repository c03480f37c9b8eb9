//! What arrives: receives that stand ready, the endpoints' inboxes, and what becomes of a message.
//!
//! A receive takes any message whole. Bytes that come apart are received straight into the segment, after the place was
//! checked; such a message waits meanwhile, and others may overtake it, which AM allows.

use crate::arrived::{AmArrival, ComingBytes};
use crate::call::{AmHandlerCall, Manner};
use crate::kept::AmContext;
use crate::message::{AmCategory, EndpointId, FRONT_BYTES, LONG_BYTES, MessageHead, Purpose, receiver_of};
use crate::tables::{AmEndpoint, BundleId, CFunction, SegmentOfUser};
use crate::world::{AmWorld, WORLD};
use weft_fabric::{Outcome, Peer, Selector, Waiting};
use weft_ports::ready::{bytes_of, tight};

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
    /// The next message for a bundle, of those that wait and those that have come.
    #[inline]
    pub fn next_of(&mut self, bundle: BundleId) -> Option<AmArrival> {
        self.tables.next_of(bundle).or_else(|| self.take_in(bundle))
    }

    /// Takes in what has come.
    pub fn collect(&mut self) {
        let none = self.take_in(BundleId::NONE);
        debug_assert!(none.is_none(), "no endpoint is in no bundle");
    }

    /// Takes in what has come, up to a message for this bundle.
    #[inline]
    fn take_in(&mut self, bundle: BundleId) -> Option<AmArrival> {
        while let Some((outcome, room)) = self.inbound.ready.next(&mut self.endpoint) {
            let Outcome { peer, tag: word, length, fault, .. } = outcome;
            let message = AmArrival { word, rank: peer.0, room, length: length as usize, placed: None };
            let whole_for = fault.is_none().then(|| receiver_of(word, &message.room));
            let endpoint = whole_for.flatten().and_then(|to| self.tables.endpoint(to));
            if endpoint.is_some_and(|endpoint| endpoint.bundle == bundle) {
                return Some(message);
            }
            if fault.is_none() {
                self.admit(message);
            } else {
                self.inbound.ready.give_back(message.room);
            }
        }
        if !self.inbound.coming.is_empty() {
            self.collect_placed();
        }
        self.reclaim();
        None
    }

    /// Takes a message whose handler does not run now.
    #[cold]
    fn admit(&mut self, message: AmArrival) {
        let AmArrival { word, rank, ref room, length, .. } = message;
        let read = MessageHead::read(word, room, length);
        let receiver = read.and_then(|(head, _)| self.tables.endpoint(head.to));
        let waiting = receiver.map(|endpoint| endpoint.inbox.len());
        match read.map(|(head, _)| (head, waiting)) {
            // What no process of ours sends.
            None => {}
            Some((head, _)) if !head.is_for_handler() => {
                self.spmd.note(head.purpose, head.arguments.first().copied().unwrap_or_default());
            }
            Some((head, None)) => {
                head.apart.into_iter().for_each(|(_, number)| self.throw_away(rank, number));
                self.refuse(&head, rank, RefusedWhy::BadEndpoint);
            }
            Some((MessageHead { to, apart: None, .. }, Some(waiting))) if waiting <= LOOSE => {
                return self.tables.keep(to, message);
            }
            Some((head, _)) => {
                let kept = AmArrival { word, rank, room: tight(bytes_of(room, length)), length, placed: None };
                match head.apart {
                    Some((bytes, number)) => self.expect_bytes(&head, kept, bytes, number),
                    None => self.tables.keep(head.to, kept),
                }
            }
        }
        self.inbound.ready.give_back(message.room);
    }

    /// Receives the bytes of a long message into their place; where there is none, they are thrown away.
    fn expect_bytes(&mut self, head: &MessageHead<'_>, message: AmArrival, bytes: u64, number: i32) {
        let rank = message.rank;
        let from = Selector { context: AmContext::Bytes as u32, peer: Some(Peer(rank)), tag: Some(number) };
        let segment = self.tables.endpoint(head.to).map(|endpoint| endpoint.segment).unwrap_or_default();
        match place_of(segment, head.offset, bytes) {
            Ok(at) => {
                let into = std::ptr::with_exposed_provenance_mut(at);
                // SAFETY: the program has said with `AM_SetSeg` that this is memory for messages to land in.
                let request = unsafe { self.endpoint.post_receive(from, into, bytes as usize) };
                self.inbound.coming.push(ComingBytes { request, to: head.to, message, at });
            }
            Err(why) => {
                self.throw_away(rank, number);
                self.refuse(head, rank, why);
            }
        }
    }

    /// Takes bytes that have no place, so that their sender goes on.
    fn throw_away(&mut self, rank: u32, number: i32) {
        let from = Selector { context: AmContext::Bytes as u32, peer: Some(Peer(rank)), tag: Some(number) };
        // SAFETY: nothing is written.
        let request = unsafe { self.endpoint.post_receive(from, std::ptr::null_mut(), 0) };
        self.endpoint.release(request);
    }

    #[cold]
    fn collect_placed(&mut self) {
        let Self { endpoint, inbound, tables, .. } = self;
        inbound.coming.retain_mut(|coming| {
            let Some(outcome) = endpoint.take_outcome(coming.request) else { return true };
            if outcome.fault.is_none() {
                let AmArrival { word, rank, ref mut room, length, .. } = coming.message;
                let (room, placed) = (std::mem::take(room), Some((coming.at, outcome.length as usize)));
                tables.keep(coming.to, AmArrival { word, rank, room, length, placed });
            }
            false
        });
    }

    /// Sends a message back that is not handled.
    #[cold]
    pub fn refuse(&mut self, head: &MessageHead<'_>, rank: u32, why: RefusedWhy) {
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
    pub fn return_own(&mut self, head: &MessageHead<'_>, rank: u32) {
        let (purpose, returned) =
            (Purpose::Returned, (RefusedWhy::Unreachable as u32, head.purpose == Purpose::Request));
        let (to, from) = (head.from, head.to);
        let head = MessageHead { purpose, returned, to, from, apart: None, ..*head };
        let mut front = [0; FRONT_BYTES];
        let length = head.write(0, &mut front);
        let room = tight(&front[..length]);
        self.tables.keep(to, AmArrival { word: head.word(), rank, room, length, placed: None });
    }

    /// What is to be called for a message, or why it is refused. `bytes`: those in its room.
    #[inline]
    fn prepare(
        &mut self,
        head: &MessageHead<'_>,
        bytes: &[u8],
        placed: Option<(usize, usize)>,
    ) -> Result<AmHandlerCall, RefusedWhy> {
        let endpoint = self.tables.endpoint(head.to).ok_or(RefusedWhy::BadEndpoint)?;
        let (function, manner) = match head.purpose {
            Purpose::Returned => {
                endpoint.stats.returned += 1;
                let opcode = head.category as u32 + if head.returned.1 { 1 } else { 4 };
                (endpoint.handlers[0], Manner::Returned { status: head.returned.0, opcode })
            }
            _ => (Some(accepted(endpoint, head)?), Manner::Message),
        };
        let (pointer, length) = match placed {
            Some((at, length)) => (std::ptr::with_exposed_provenance_mut(at), length),
            None if head.category == AmCategory::Long => {
                let place = place_of(endpoint.segment, head.offset, bytes.len() as u64);
                let at: *mut u8 = match bytes.len() {
                    0 => std::ptr::with_exposed_provenance_mut(place.unwrap_or_default()),
                    _ => std::ptr::with_exposed_provenance_mut(place?),
                };
                // SAFETY: the program has said with `AM_SetSeg` that this is memory for messages to land in.
                unsafe { bytes.as_ptr().copy_to(at, bytes.len()) };
                (at.cast(), bytes.len())
            }
            // Functions of C want an address also for no bytes.
            None if bytes.is_empty() => ((&raw const NO_BYTES).cast_mut().cast(), 0),
            None => (bytes.as_ptr().cast_mut().cast(), bytes.len()),
        };
        if manner == Manner::Message {
            endpoint.stats.received(head.purpose == Purpose::Request, head.category);
        }
        let (before, after) = (endpoint.before, endpoint.after);
        Ok(AmHandlerCall { function, manner, before, after, pointer, length })
    }
}

/// The handler of a request or reply, if the endpoint takes it.
#[inline]
fn accepted(endpoint: &AmEndpoint, head: &MessageHead<'_>) -> Result<CFunction, RefusedWhy> {
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

/// Waits until nothing is on its way into the segments of these endpoints, whose memory is the program's again then.
pub fn settle(call: &'static str, of: impl Fn(EndpointId) -> bool) {
    let what = Waiting { call, peer: None, tag: None, context: AmContext::Bytes as u32 };
    WORLD.wait(what, |world| {
        world.collect();
        (!world.inbound.coming.iter().any(|coming| of(coming.to))).then_some(())
    });
}

/// Runs the handler of a message.
#[inline]
pub fn run(message: AmArrival) {
    let AmArrival { word, rank, room, length, placed } = message;
    let mut world = WORLD.enter();
    if let Some((head, begin)) = MessageHead::read(word, &room, length) {
        match world.prepare(&head, &bytes_of(&room, length)[begin..], placed) {
            Ok(call) => {
                drop(world);
                call.run(&head, rank);
                world = WORLD.enter();
            }
            Err(why) => world.refuse(&head, rank, why),
        }
    }
    world.inbound.ready.give_back(room);
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

//! What has arrived: messages are put together, and their handlers called.

use super::call::CallBytes;
use super::outbound::Queued;
use super::{ActiveProtocol, Reaction, Refusal, ToSelf, WINDOW};
use crate::api::Peer;
use crate::protocol::Breach;
use crate::requests::Requests;
use weft_device::{Foreign, Packet};
use weft_wire::active::{ActiveHead, ActiveKind, NotHandled};
use weft_wire::cell::INLINE_WORDS;

/// A message of which a part has come.
pub(super) struct Partial {
    head: ActiveHead,
    received: u64,
    total: u64,
    place: LandingPlace,
}

/// Where its bytes go.
enum LandingPlace {
    Kept(Vec<u8>),
    /// Into the landing that its head names.
    Landing,
    /// They are thrown away, since that is not there.
    Nowhere,
}

impl ActiveProtocol {
    /// Takes a packet.
    pub(super) fn take(&mut self, packet: &Packet<'_>) -> Result<(), Breach> {
        let from = packet.from;
        let partial = self.peer(from).partial.take();
        if let Some(bulk) = packet.bulk.filter(|_| packet.inline_bytes == 0) {
            return self.advance(from, partial.ok_or("bytes outside any active message")?, bulk);
        }
        if partial.is_some() {
            return Err("an active message inside another");
        }
        let words: [u64; INLINE_WORDS] = std::array::from_fn(|at| packet.word(at));
        let head = ActiveHead::read(&packet.head, &words, packet.inline_bytes, packet.bulk.is_some())?;
        self.note_answered(from, &head)?;
        match (head.what, head.total, packet.bulk) {
            (ActiveKind::Credit, ..) => Ok(()),
            (ActiveKind::Refused, ..) => self.note_refused(from, head.handler, words[0]),
            (_, Some(total), bulk) => {
                let place = match head.what {
                    ActiveKind::Long if self.handlers.place(head.landing, head.offset, total).is_some() => {
                        LandingPlace::Landing
                    }
                    ActiveKind::Long => LandingPlace::Nowhere,
                    _ => LandingPlace::Kept(self.room(total)),
                };
                let partial = Partial { head, received: 0, total, place };
                match bulk {
                    Some(bulk) => self.advance(from, partial, bulk),
                    None if total == 0 => self.finish(from, partial),
                    None => Err("an active message without its bytes"),
                }
            }
            (_, None, _) => {
                let bytes = packet.inline();
                self.handle(from, &head, CallBytes::Here(&bytes[head.front_bytes()..packet.inline_bytes]));
                Ok(())
            }
        }
    }

    /// The buffer of the last message, with so many bytes.
    fn room(&mut self, total: u64) -> Vec<u8> {
        let mut whole = std::mem::take(&mut self.whole);
        whole.clear();
        whole.resize(total as usize, 0);
        whole
    }

    /// Some of our requests are answered, and there is one more of the peer's.
    fn note_answered(&mut self, from: u32, head: &ActiveHead) -> Result<(), Breach> {
        let peer = self.peer(from);
        // Each reply answers a request, so nobody replies unasked.
        if head.what == ActiveKind::Reply && head.answered == 0 {
            return Err("a reply to nothing");
        }
        peer.unanswered = peer.unanswered.checked_sub(head.answered).ok_or("answers to more than was asked")?;
        if matches!(head.what, ActiveKind::Request | ActiveKind::Long) {
            peer.open += 1;
            if peer.open > WINDOW {
                return Err("more requests than may wait for answers");
            }
        }
        Ok(())
    }

    fn note_refused(&mut self, from: u32, handler: u32, why: u64) -> Result<(), Breach> {
        let (peer, handler) = (Peer(from), handler as u16);
        let refusal = match NotHandled::from_word(why).ok_or("an active message is refused for no reason")? {
            NotHandled::NoHandler => Refusal::NoHandler { peer, handler },
            NotHandled::NoPlace => Refusal::NoPlace { peer, handler },
        };
        self.handlers.refuse(&refusal);
        Ok(())
    }

    /// The next bytes of a message.
    fn advance(&mut self, from: u32, mut partial: Partial, bulk: Foreign<'_>) -> Result<(), Breach> {
        let after = partial.received + bulk.len() as u64;
        if after > partial.total {
            return Err("more bytes than the active message has");
        }
        let (head, received, total) = (partial.head, partial.received as usize, partial.total);
        match &mut partial.place {
            LandingPlace::Kept(bytes) => {
                bulk.copy_into(&mut bytes[received..]);
            }
            LandingPlace::Landing => match self.handlers.place(head.landing, head.offset, total) {
                Some(place) => {
                    bulk.copy_into(&mut place[received..]);
                }
                // Given up meanwhile.
                None => partial.place = LandingPlace::Nowhere,
            },
            LandingPlace::Nowhere => {}
        }
        partial.received = after;
        if after == partial.total {
            return self.finish(from, partial);
        }
        self.peer(from).partial = Some(partial);
        Ok(())
    }

    /// A message is whole.
    fn finish(&mut self, from: u32, partial: Partial) -> Result<(), Breach> {
        let Partial { head, total, place, .. } = partial;
        match place {
            LandingPlace::Kept(bytes) => {
                self.handle(from, &head, CallBytes::Here(&bytes));
                self.whole = bytes;
            }
            LandingPlace::Landing => self.handle(from, &head, CallBytes::Landed(head.landing, head.offset, total)),
            LandingPlace::Nowhere => self.answer(from, &head, Err(NotHandled::NoPlace)),
        }
        Ok(())
    }

    fn handle(&mut self, from: u32, head: &ActiveHead, bytes: CallBytes<'_>) {
        let reaction = self.handlers.call(Peer(from), head, bytes);
        self.answer(from, head, reaction);
    }

    /// Queues what a message is answered with, or notes that nothing is.
    fn answer(&mut self, from: u32, head: &ActiveHead, reaction: Result<Reaction, NotHandled>) {
        if from == self.me {
            return self.answer_own(head, reaction);
        }
        let is_request = head.what != ActiveKind::Reply;
        let peer = self.peer(from);
        match reaction {
            Ok(Reaction::None) => peer.due += u32::from(is_request),
            Ok(Reaction::Reply { head, bytes }) => peer.queue.push_back(Queued::answer(head, bytes, is_request)),
            Err(why) => peer.queue.push_back(Queued::refusal(head.handler, why, is_request)),
        }
        self.note_work(from);
    }

    fn answer_own(&mut self, head: &ActiveHead, reaction: Result<Reaction, NotHandled>) {
        if head.what != ActiveKind::Reply {
            self.peer(self.me).unanswered -= 1;
        }
        match reaction {
            Ok(Reaction::None) => {}
            Ok(Reaction::Reply { head, bytes }) => self.to_self.push_back(ToSelf { head, bytes, request: None }),
            // A known reason always.
            Err(why) => drop(self.note_refused(self.me, head.handler, why as u64)),
        }
    }

    /// Handles the messages to oneself that there are now; true if there were any.
    pub(super) fn handle_own(&mut self, requests: &mut Requests) -> bool {
        let count = self.to_self.len();
        for _ in 0..count {
            let Some(ToSelf { head, bytes, request }) = self.to_self.pop_front() else { break };
            let length = bytes.len() as u64;
            match (head.what, self.handlers.place(head.landing, head.offset, length)) {
                (ActiveKind::Long, Some(place)) => {
                    place.copy_from_slice(&bytes);
                    self.handle(self.me, &head, CallBytes::Landed(head.landing, head.offset, length));
                }
                (ActiveKind::Long, None) => self.answer(self.me, &head, Err(NotHandled::NoPlace)),
                _ => self.handle(self.me, &head, CallBytes::Here(&bytes)),
            }
            request.into_iter().for_each(|id| requests.complete(id));
        }
        count > 0
    }
}

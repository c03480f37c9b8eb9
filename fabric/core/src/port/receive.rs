//! The receiving side: posting, probing, and the packets that carry messages.

use super::inbound::{Arrived, Body, OpenStream, StreamTarget};
use super::shown::Asked;
use super::{Port, RequestId};
use crate::api::{Fault, Outcome, Peer, Selector};
use crate::events::{Event, EventKind, tell};
use crate::protocol::Breach;
use crate::requests::{RequestState, Requests};
use weft_device::past_caches::settle;
use weft_device::{Foreign, Packet, ReceiveRoom, copying};
use weft_protocol::matching::{MatchLabel, Pattern};
use weft_protocol::selector::{EAGER_CEILING, ReceiverWord};
use weft_wire::cell::{self, INLINE_WORDS};

#[inline]
fn pattern(from: Selector) -> Pattern {
    Pattern { context: from.context, peer: from.peer.map(|p| p.0), tag: from.tag }
}

#[inline]
pub(super) fn label(packet: &Packet<'_>) -> MatchLabel {
    MatchLabel { context: packet.head.context, peer: packet.from, tag: packet.head.tag }
}

#[inline]
pub(super) fn outcome(packet: &Packet<'_>, length: u64) -> Outcome {
    Outcome { peer: Peer(packet.from), source: packet.head.source, tag: packet.head.tag, length, fault: None }
}

/// What is owed for a message that has come without asking though it is long.
pub(super) fn word(packet: &Packet<'_>) -> Option<ReceiverWord> {
    let owes = packet.head.kind == cell::Kind::Eager && packet.inline_bytes == 24;
    owes.then(
        || if packet.word(2) == ReceiverWord::Always as u64 { ReceiverWord::Always } else { ReceiverWord::IfKept },
    )
}

impl Port {
    /// # Safety
    /// `buffer` stays writable for `capacity` bytes until the request is complete.
    #[inline]
    pub unsafe fn post_receive(&mut self, from: Selector, buffer: *mut u8, capacity: usize) -> RequestId {
        let pattern = pattern(from);
        let entry = Requests::entry(RequestState::Posted, buffer, capacity, from.peer.unwrap_or(Peer(u32::MAX)));
        let id = self.requests.insert(entry);
        match self.matcher.take_unexpected(&pattern) {
            Some(message) => {
                let context = from.context;
                tell(EventKind::Taken, || Event::Taken { context, message: self.arrived.outcome(message) });
                self.receive_arrived(id, message);
            }
            None => match self.closing(from.context) {
                Some(fault) => self.fail(id, fault),
                None => match from.peer.and_then(|peer| self.loss(peer)) {
                    Some(fault) => self.fail(id, fault),
                    None => self.matcher.post(&pattern, id.0),
                },
            },
        }
        id
    }

    pub fn probe(&self, from: Selector) -> Option<Outcome> {
        let message = self.matcher.poll_unexpected(&pattern(from))?;
        Some(self.arrived.outcome(message))
    }

    pub fn take_matched(&mut self, from: Selector) -> Option<(u32, Outcome)> {
        let message = self.matcher.take_unexpected(&pattern(from))?;
        Some((message, self.arrived.outcome(message)))
    }

    /// # Safety
    /// As [`Self::post_receive`].
    pub unsafe fn post_matched_receive(&mut self, message: u32, buffer: *mut u8, capacity: usize) -> RequestId {
        let peer = self.arrived.outcome(message).peer;
        let id = self.requests.insert(Requests::entry(RequestState::Receiving, buffer, capacity, peer));
        self.receive_arrived(id, message);
        id
    }

    pub fn cancel_receive(&mut self, id: RequestId) -> bool {
        let entry = self.requests.at(id);
        let peer = Some(entry.outcome.peer.0).filter(|p| *p != u32::MAX);
        let cancelled = entry.state == RequestState::Posted && self.matcher.cancel(peer, id.0);
        if cancelled {
            self.fail(id, Fault::Cancelled);
        }
        cancelled
    }

    /// Notes what is being received and whether it fits; answers how many bytes go into the buffer.
    #[inline]
    pub(super) fn begin(&mut self, id: RequestId, outcome: Outcome) -> (*mut u8, usize) {
        let entry = self.requests.at(id);
        entry.outcome = outcome;
        self.counters.receives += 1;
        // The length is the sender's claim.
        self.counters.bytes_received = self.counters.bytes_received.wrapping_add(outcome.length);
        if outcome.length > entry.capacity as u64 {
            entry.outcome.fault = Some(Fault::Truncated);
            return (entry.buffer, entry.capacity);
        }
        (entry.buffer, outcome.length as usize)
    }

    /// Completes a receive with bytes of our own memory.
    ///
    /// # Safety
    /// `data` is readable for `length` bytes; BUFFER-LIVES for `id`.
    pub unsafe fn deliver_bytes(&mut self, id: RequestId, outcome: Outcome, data: *const u8, length: usize) {
        let (buffer, fits) = self.begin(id, outcome);
        let bytes = fits.min(length);
        // SAFETY: fits <= capacity of the buffer and <= length. A message to oneself may come from overlapping memory.
        unsafe {
            match (data as usize).abs_diff(buffer as usize) < bytes {
                true => std::ptr::copy(data, buffer, bytes),
                false => copying::copy(data, buffer, bytes),
            }
        }
        self.requests.complete(id);
    }

    /// Gives a message that had arrived to a receive.
    pub(super) fn receive_arrived(&mut self, id: RequestId, message: u32) {
        let arrived = self.arrived.at(message);
        let peer = arrived.outcome.peer;
        if arrived.word.take().is_some() {
            let bytes = arrived.outcome.length;
            self.reply(peer.0, cell::Kind::Waited, &[0, bytes]);
        }
        let arrived = self.arrived.at(message);
        if let Some(fault) = self.requests.loss(peer)
            && !arrived.body.is_here()
        {
            // The rest will never come.
            self.requests.at(id).outcome = self.arrived.remove(message).outcome;
            return self.fail(id, fault);
        }
        if let Body::Kept { data, received } = &arrived.body
            && *received < data.len()
        {
            arrived.taken_by = Some(id);
            let entry = self.requests.at(id);
            entry.state = RequestState::Receiving;
            // Known from now on, also to a wildcard: if the peer is lost, this receive is.
            entry.outcome.peer = peer;
            return;
        }
        let Arrived { outcome, body, .. } = self.arrived.remove(message);
        match body {
            Body::Inline(words) => {
                // SAFETY: the words are ours; BUFFER-LIVES.
                unsafe { self.deliver_bytes(id, outcome, words.as_ptr().cast(), outcome.length as usize) };
            }
            Body::Kept { data, .. } => {
                // SAFETY: the vector is ours; BUFFER-LIVES.
                unsafe { self.deliver_bytes(id, outcome, data.as_ptr(), data.len()) };
            }
            Body::Own { data, request } => {
                // SAFETY: BUFFER-LIVES for both.
                unsafe { self.deliver_bytes(id, outcome, data, outcome.length as usize) };
                self.requests.complete(request);
            }
            Body::Asked(asked) => self.let_in(id, outcome, asked),
        }
    }

    #[inline]
    pub fn on_short(&mut self, packet: Packet<'_>) {
        let length = packet.inline_bytes;
        let outcome = outcome(&packet, length as u64);
        match self.matcher.handle_message(&label(&packet)) {
            Some(receive) => {
                let id = RequestId(receive);
                let (buffer, fits) = self.begin(id, outcome);
                // SAFETY: fits <= capacity; BUFFER-LIVES.
                unsafe { packet.copy_inline(buffer, fits) };
                self.requests.complete(id);
            }
            None => {
                let words = std::array::from_fn::<u64, INLINE_WORDS, _>(|i| packet.word(i));
                self.keep(&packet, outcome, Body::Inline(words));
            }
        }
    }

    fn keep(&mut self, packet: &Packet<'_>, outcome: Outcome, body: Body) -> u32 {
        let arrived = Arrived { outcome, body, taken_by: None, word: word(packet) };
        let message = self.arrived.insert(arrived);
        self.leave(&label(packet), message);
        message
    }

    /// Leaves a message that has arrived to be received.
    pub(super) fn leave(&mut self, label: &MatchLabel, message: u32) {
        self.counters.unexpected_messages += 1;
        tell(EventKind::Unexpected, || {
            let message = self.arrived.outcome(message);
            Event::Unexpected { context: label.context, message }
        });
        self.matcher.handle_unexpected(label, message);
        if self.arrived.offer(message).is_some() {
            self.offered.messages.push_back(message);
        }
    }

    #[inline]
    pub(super) fn on_eager(&mut self, packet: Packet<'_>) -> Result<(), Breach> {
        let (total, bulk) = self.eager(&packet)?;
        let outcome = outcome(&packet, total);
        let target = match self.matcher.handle_message(&label(&packet)) {
            Some(receive) => {
                let id = RequestId(receive);
                let (buffer, fits) = self.begin(id, outcome);
                self.say_waited(packet.from, total, word(&packet));
                if bulk.len() as u64 == total {
                    // SAFETY: fits <= capacity; BUFFER-LIVES.
                    unsafe { bulk.copy_to(buffer, fits) };
                    self.requests.complete(id);
                    return Ok(());
                }
                self.requests.at(id).state = RequestState::Receiving;
                StreamTarget::Receive(id)
            }
            None => {
                let body = Body::Kept { data: vec![0; total as usize], received: 0 };
                StreamTarget::Arrived(self.keep(&packet, outcome, body))
            }
        };
        self.open_eager(packet.from, target, total, bulk)
    }

    /// A message was waited for, and its sender may be owed a word.
    pub(super) fn say_waited(&mut self, from: u32, length: u64, word: Option<ReceiverWord>) {
        if let Some(word) = word
            && let Some(bytes) = self.learner.waits(from).note_waited(length, word)
        {
            self.reply(from, cell::Kind::Waited, &[1, bytes]);
        }
    }

    /// What a message that comes without asking says of itself, and its first bytes.
    #[inline]
    pub(super) fn eager<'a>(&self, packet: &Packet<'a>) -> Result<(u64, Foreign<'a>), Breach> {
        let total = packet.word(0);
        let bulk = packet.bulk.ok_or("an eager message without bytes")?;
        if self.incoming.streams[self.stream_of(packet.from)].is_some() {
            return Err("a message inside another");
        }
        if total > EAGER_CEILING || total < bulk.len() as u64 {
            return Err("an eager message of impossible length");
        }
        Ok((total, bulk))
    }

    pub(super) fn open_eager(
        &mut self,
        from: u32,
        target: StreamTarget,
        total: u64,
        bulk: Foreign<'_>,
    ) -> Result<(), Breach> {
        let stream = OpenStream { target, received: 0, total: total as usize, past_caches: false };
        self.advance_stream(self.stream_of(from), stream, bulk)
    }

    pub(super) fn on_more(&mut self, packet: Packet<'_>) -> Result<(), Breach> {
        let stream_at = self.stream_of(packet.from);
        let stream = self.incoming.streams[stream_at].take().ok_or("bytes outside any message")?;
        let bulk = packet.bulk.ok_or("a continuation without bytes")?;
        self.advance_stream(stream_at, stream, bulk)
    }

    pub(super) fn on_open(&mut self, packet: Packet<'_>) -> Result<(), Breach> {
        let from = packet.from;
        if self.incoming.streams[self.stream_of(from)].is_some() {
            return Err("a message inside another");
        }
        let bulk = packet.bulk.ok_or("a granted stream without bytes")?;
        let (id, entry) = self.requests.claimed(packet.word(0)).ok_or("a stream for no receive of ours")?;
        if entry.state != RequestState::Granted || entry.outcome.peer != Peer(from) {
            return Err("a stream for a receive that did not grant it");
        }
        entry.state = RequestState::Receiving;
        let (total, keeps) = (entry.wanted() as usize, entry.keeps);
        let past_caches = self.granted > self.limits.cached;
        self.granted = self.granted.wrapping_sub(total);
        let target = match keeps {
            None => StreamTarget::Receive(id),
            Some(message) => {
                self.requests.complete(id);
                StreamTarget::Arrived(message)
            }
        };
        let past_caches = past_caches && keeps.is_none();
        let stream = OpenStream { target, received: 0, total, past_caches };
        self.advance_stream(self.stream_of(from), stream, bulk)
    }

    /// Where the stream is noted that is open from a peer by the device that is being polled.
    #[inline]
    fn stream_of(&self, from: u32) -> usize {
        2 * from as usize + usize::from(self.incoming.by_long_way)
    }

    /// Where the next bytes of the stream go that is open from a peer.
    pub(super) fn stream_room(&mut self, from: u32) -> Option<ReceiveRoom<'_>> {
        let OpenStream { target, received, total, past_caches } = self.incoming.streams[self.stream_of(from)]?;
        if past_caches || self.is_lost(from) {
            return None;
        }
        let (at, most) = match target {
            StreamTarget::Receive(id) => {
                let entry = self.requests.at(id);
                (entry.buffer, entry.capacity)
            }
            StreamTarget::Arrived(message) => match &mut self.arrived.at(message).body {
                Body::Kept { data, .. } => (data.as_mut_ptr(), data.len()),
                _ => return None,
            },
        };
        let bytes = total.min(most).saturating_sub(received);
        // SAFETY: inside the buffer of the receive, or of the message; BUFFER-LIVES.
        unsafe { ReceiveRoom::new(at.wrapping_add(received), bytes) }
    }

    /// Takes the next bytes of a stream, and closes it with its last one.
    fn advance_stream(&mut self, stream_at: usize, mut stream: OpenStream, bulk: Foreign<'_>) -> Result<(), Breach> {
        let after = stream.received + bulk.len();
        if after > stream.total {
            return Err("more bytes than the message has");
        }
        match stream.target {
            StreamTarget::Receive(id) => {
                let entry = self.requests.at(id);
                let room = entry.capacity.saturating_sub(stream.received);
                let to = entry.buffer.wrapping_add(stream.received);
                // SAFETY: at most `room` bytes behind `received` stay inside the buffer; BUFFER-LIVES.
                unsafe { if stream.past_caches { bulk.copy_past_caches(to, room) } else { bulk.copy_to(to, room) } };
            }
            StreamTarget::Arrived(message) => {
                if let Body::Kept { data, received } = &mut self.arrived.at(message).body {
                    // SAFETY: after <= total == data.len().
                    unsafe { bulk.copy_to(data.as_mut_ptr().add(stream.received), bulk.len()) };
                    *received = after;
                }
            }
        }
        stream.received = after;
        if after < stream.total {
            self.incoming.streams[stream_at] = Some(stream);
            return Ok(());
        }
        if stream.past_caches {
            settle();
        }
        match stream.target {
            StreamTarget::Receive(id) => self.complete_granted(id),
            StreamTarget::Arrived(message) => {
                if let Some(id) = self.arrived.at(message).taken_by {
                    self.receive_arrived(id, message);
                }
            }
        }
        Ok(())
    }

    pub(super) fn on_ask(&mut self, packet: Packet<'_>) -> Result<(), Breach> {
        let (length, asked) = Self::asked(&packet)?;
        let outcome = outcome(&packet, length);
        match self.matcher.handle_message(&label(&packet)) {
            Some(receive) => self.let_in(RequestId(receive), outcome, asked),
            None => {
                self.keep(&packet, outcome, Body::Asked(asked));
            }
        }
        Ok(())
    }

    /// What is asked, and how long the message is.
    pub(super) fn asked(packet: &Packet<'_>) -> Result<(u64, Asked), Breach> {
        let (length, asked) = (packet.word(0), Asked::from_words(std::array::from_fn(|i| packet.word(i + 1))));
        if length > if asked.offered { EAGER_CEILING } else { isize::MAX as u64 } {
            return Err("a message of impossible length");
        }
        Ok((length, asked))
    }
}

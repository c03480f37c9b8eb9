//! The sending side: straight into the device where that is free, else through the outbound queue.

use super::inbound::{Arrived, Body};
use super::outbound::{MessageStream, UnsentMessage};
use super::shown::{Asked, ShownPlace};
use super::{Port, RequestId};
use crate::api::{Envelope, Outcome, Peer, SendMode};
use crate::devices::Devices;
use crate::events::{self, Event, tell};
use crate::requests::{RequestState, Requests};
use weft_device::{Posted, copying, sys};
use weft_protocol::matching::MatchLabel;
use weft_protocol::selector::{self, BufferKind, ReceiverWord, Road, Way, may_go};
use weft_wire::cell::{Head, INLINE_BYTES, Kind};

impl Port {
    #[inline]
    fn head(kind: Kind, envelope: Envelope) -> Head {
        Head { kind, context: envelope.context, tag: envelope.tag, source: envelope.source }
    }

    /// Sends at once if all of the message can leave now.
    ///
    /// # Safety
    /// `data` is readable for `length` bytes.
    #[inline]
    pub unsafe fn try_send(
        &mut self,
        device: &mut Devices,
        to: Peer,
        envelope: Envelope,
        data: *const u8,
        length: usize,
    ) -> bool {
        if !self.is_next(to) || device.may_wait(to.0) {
            return false;
        }
        if length > INLINE_BYTES {
            // SAFETY: the caller's promise.
            return self.place_of(to.0, data, length).is_none()
                && unsafe { self.try_send_whole(device, to, envelope, data, length) };
        }
        // SAFETY: the caller's promise.
        let posted = unsafe { device.post_short(to.0, Self::head(Kind::Short, envelope), data, length) };
        self.has_left(posted, length)
    }

    /// Sends in one bulk packet.
    ///
    /// # Safety
    /// As [`Self::try_send`].
    #[inline]
    unsafe fn try_send_whole(
        &mut self,
        device: &mut Devices,
        to: Peer,
        envelope: Envelope,
        data: *const u8,
        length: usize,
    ) -> bool {
        if length > self.rules.whole() || !device.takes_whole(to.0, length) {
            return false;
        }
        // SAFETY: the caller's promise.
        let posted =
            unsafe { device.post_bulk(to.0, Self::head(Kind::Eager, envelope), &[length as u64], data, length) };
        self.has_left(posted, length)
    }

    /// Whether nothing waits to be sent to a peer before what comes now.
    #[inline]
    fn is_next(&self, to: Peer) -> bool {
        to.0 != self.me && self.outbound[to.0 as usize].is_clear()
    }

    #[inline]
    fn has_left(&mut self, posted: Posted, length: usize) -> bool {
        if posted == Posted::Full {
            self.counters.ring_full += 1;
            return false;
        }
        self.count_send(length);
        true
    }

    #[inline]
    fn count_send(&mut self, length: usize) {
        self.counters.sends += 1;
        self.counters.bytes_sent += length as u64;
    }

    /// As [`Self::try_send`], a way that was chosen and leads over the connection. What the kernel had no room for has
    /// not left yet ([`Devices::has_tail`]).
    ///
    /// # Safety
    /// As there.
    unsafe fn try_send_over_connection(
        &mut self,
        device: &mut Devices,
        to: Peer,
        head: Head,
        way: Way,
        data: *const u8,
        length: usize,
    ) -> bool {
        if length > Devices::LONG_PACKET_BYTES || !self.is_next(to) {
            return false;
        }
        // SAFETY: the caller's promise.
        let posted = unsafe {
            match way {
                Way::EagerByConnection => device.post_long_eager(to.0, head, data, length, None),
                Way::Short => device.post_short(to.0, head, data, length),
                _ => device.post_bulk(to.0, head, &[length as u64], data, length),
            }
        };
        self.has_left(posted, length)
    }

    /// All of a message that went over the connection was accepted. What the kernel had no room for leaves only while
    /// somebody calls us, so until then its send is not complete.
    fn complete_sent(&mut self, device: &Devices, request: RequestId, to: u32) {
        match device.has_tail(to) {
            true => self.tails.push((request, to)),
            false => self.requests.complete(request),
        }
    }

    /// Completes sends whose last bytes the kernel has taken by now.
    pub fn complete_tails(&mut self, device: &Devices) -> bool {
        let all = self.tails.len();
        let requests = &mut self.requests;
        self.tails.retain(|(request, to)| {
            let waits = device.has_tail(*to);
            if !waits {
                requests.complete(*request);
            }
            waits
        });
        self.tails.len() < all
    }

    /// # Safety
    /// `data` stays readable for `length` bytes until the request is complete.
    pub unsafe fn post_send(
        &mut self,
        device: &mut Devices,
        to: Peer,
        envelope: Envelope,
        data: *const u8,
        length: usize,
        mode: SendMode,
    ) -> RequestId {
        let mut entry = Requests::entry(RequestState::Sending, data.cast_mut(), length, to);
        entry.outcome.length = length as u64;
        entry.outcome.tag = envelope.tag;
        // SAFETY: the caller's promise.
        if mode == SendMode::Standard && unsafe { self.try_send(device, to, envelope, data, length) } {
            entry.state = RequestState::Complete;
            return self.requests.insert(entry);
        }
        let request = self.requests.insert(entry);
        if let Some(fault) = self.loss(to) {
            self.fail(request, fault);
            return request;
        }
        if to.0 == self.me {
            self.count_send(length);
            self.send_to_self(request, envelope, data, length, mode);
            return request;
        }
        let (place, road) = (self.place_of(to.0, data, length), device.road(to.0, length));
        let way = self.choose(to.0, place, road, length, mode, request);
        let kind = match way {
            Way::Short => Kind::Short,
            Way::Eager { .. } | Way::EagerByConnection => Kind::Eager,
            _ => Kind::Ask,
        };
        let head = Self::head(kind, envelope);
        if kind != Kind::Ask && road.has_connection() {
            // SAFETY: the caller's promise.
            if unsafe { self.try_send_over_connection(device, to, head, way, data, length) } {
                self.complete_sent(device, request, to.0);
                return request;
            }
        } else if kind == Kind::Eager && place.is_some() && self.is_next(to) && !device.may_wait(to.0) {
            // SAFETY: the caller's promise.
            if unsafe { self.try_send_whole(device, to, envelope, data, length) } {
                self.requests.complete(request);
                return request;
            }
        }
        self.count_send(length);
        let offered = way == Way::Offer;
        let may_go = mode == SendMode::Standard && way == Way::Ask && may_go(length, self.limits.eager);
        let message = UnsentMessage { request, head, data, length, offered, may_go, place };
        self.outbound[to.0 as usize].messages.push_back(message);
        self.note_backlog(to.0);
        self.pump_outbound(device);
        request
    }

    /// Asks the selector how a message leaves.
    fn choose(
        &mut self,
        to: u32,
        place: Option<ShownPlace>,
        road: Road,
        length: usize,
        mode: SendMode,
        request: RequestId,
    ) -> Way {
        let kind = if place.is_some() { BufferKind::Shown } else { BufferKind::Ordinary };
        let copies = self.attachable(to).is_some();
        let message = selector::Departure { length, synchronous: mode != SendMode::Standard, kind, copies };
        let (learner, requests) = (&mut self.learner, &self.requests);
        let under_way = |last| requests.is_under_way(RequestId(last));
        let learned = || learner.pick_offer(kind, length as u64, request.0, sys::now_ns, under_way);
        self.rules.send(&message, road, learned).way
    }

    /// A message to oneself: matched here and copied once, or kept where it is until a receive comes.
    fn send_to_self(&mut self, request: RequestId, envelope: Envelope, data: *const u8, length: usize, mode: SendMode) {
        self.counters.self_messages += 1;
        let label = MatchLabel { context: envelope.context, peer: self.me, tag: envelope.tag };
        let outcome = Outcome {
            peer: Peer(self.me),
            source: envelope.source,
            tag: envelope.tag,
            length: length as u64,
            fault: None,
        };
        if let Some(receive) = self.matcher.handle_message(&label) {
            // SAFETY: BUFFER-LIVES for both requests.
            unsafe { self.deliver_bytes(RequestId(receive), outcome, data, length) };
            self.requests.complete(request);
            return;
        }
        let body = if mode == SendMode::Standard && length <= self.limits.eager {
            let mut copy = vec![0; length];
            if length > 0 {
                // SAFETY: the caller's promise; the vector is as long. An empty message may come with any pointer.
                unsafe { copying::copy(data, copy.as_mut_ptr(), length) };
            }
            self.requests.complete(request);
            Body::Kept { data: copy, received: length }
        } else {
            self.requests.at(request).state = RequestState::Asked;
            Body::Own { data, request }
        };
        let message = self.arrived.insert(Arrived { outcome, body, taken_by: None, word: None });
        tell(events::EventKind::Unexpected, || Event::Unexpected { context: label.context, message: outcome });
        self.matcher.handle_unexpected(&label, message);
    }

    /// Moves what waits into the device as far as there is room; true if anything moved.
    pub fn pump_outbound(&mut self, device: &mut Devices) -> bool {
        let mut moved = false;
        let mut i = 0;
        while i < self.backlog.len() {
            let to = self.backlog[i];
            moved |= self.pump_peer(device, to);
            if self.outbound[to as usize].is_clear() {
                self.backlog.swap_remove(i);
            } else {
                i += 1;
            }
        }
        moved
    }

    fn pump_peer(&mut self, device: &mut Devices, to: u32) -> bool {
        let mut moved = false;
        while let Some(control) = self.outbound[to as usize].control.front() {
            // Who was not asked does not wait for an answer, and may have left.
            if control.head.kind == Kind::Waited && device.has_ended(to) {
                self.outbound[to as usize].control.pop_front();
                continue;
            }
            if device.post_control(to, control.head, control.values()) == Posted::Full {
                return moved;
            }
            self.outbound[to as usize].control.pop_front();
            moved = true;
        }
        moved |= self.pump_streams(device, to);
        moved | self.pump_messages(device, to)
    }

    fn pump_streams(&mut self, device: &mut Devices, to: u32) -> bool {
        let mut moved = false;
        while let Some(stream) = self.outbound[to as usize].streams.front_mut() {
            if stream.open_for.is_some() {
                stream.by_long_way = device.has_long_way(to);
            }
            let rest = stream.length - stream.sent;
            let opening = [stream.open_for.unwrap_or(0) as u64];
            let (kind, control) = match stream.open_for {
                Some(_) => (Kind::Open, &opening[..]),
                None => (Kind::More, &[][..]),
            };
            // SAFETY: sent <= length, and BUFFER-LIVES.
            let posted = unsafe {
                let data = stream.data.add(stream.sent);
                match stream.by_long_way {
                    true => device.post_long(to, Head::control(kind), control, data, rest),
                    false => {
                        // Datagrams take what they can of it.
                        let most = self.rules.machine.packet(stream.length);
                        device.post_bulk(to, Head::control(kind), control, data, rest.min(most))
                    }
                }
            };
            let Posted::Sent(piece) = posted else { break };
            moved = true;
            stream.open_for = None;
            stream.sent += piece;
            if stream.sent == stream.length {
                let MessageStream { request, by_long_way, .. } = *stream;
                self.outbound[to as usize].streams.pop_front();
                match by_long_way || device.may_wait(to) {
                    true => self.complete_sent(device, request, to),
                    false => self.requests.complete(request),
                }
            }
        }
        moved
    }

    fn pump_messages(&mut self, device: &mut Devices, to: u32) -> bool {
        let mut moved = false;
        while let Some(message) = self.outbound[to as usize].messages.front().copied() {
            let stream_open = !self.outbound[to as usize].streams.is_empty();
            let UnsentMessage { request, mut head, data, length, offered, may_go, .. } = message;
            let goes = head.kind == Kind::Ask && may_go && !stream_open;
            let word = goes.then(|| self.learner.waits(to).poll(length, self.limits.eager)).flatten();
            let word = word.filter(|_| device.road(to, length).has_connection());
            if word.is_some() {
                head.kind = Kind::Eager;
            }
            if head.kind == Kind::Eager && stream_open {
                break;
            }
            let (posted, by_long_way) = self.post_message(device, to, UnsentMessage { head, ..message }, word);
            let Posted::Sent(piece) = posted else {
                self.counters.ring_full += 1;
                break;
            };
            moved = true;
            self.outbound[to as usize].messages.pop_front();
            if word.is_some() {
                self.learner.waits(to).note_gone(length);
            }
            match head.kind {
                Kind::Ask => {
                    self.counters.rendezvous += 1;
                    tell(events::EventKind::Rendezvous, || {
                        let (context, tag, bytes) = (head.context, head.tag, length as u64);
                        Event::Rendezvous { context, peer: to, tag, bytes, offered }
                    });
                    self.requests.at(request).state = RequestState::Asked;
                }
                Kind::Eager if piece < length => {
                    let stream = MessageStream { request, data, length, sent: piece, open_for: None, by_long_way };
                    self.outbound[to as usize].streams.push_back(stream);
                    self.pump_streams(device, to);
                }
                _ if by_long_way || device.may_wait(to) => self.complete_sent(device, request, to),
                _ => self.requests.complete(request),
            }
        }
        moved
    }

    /// Posts what begins a message; also answers whether it went over the connection. A word may be owed for it.
    fn post_message(
        &self,
        device: &mut Devices,
        to: u32,
        message: UnsentMessage,
        word: Option<ReceiverWord>,
    ) -> (Posted, bool) {
        let UnsentMessage { request, head, data, length, offered, place, .. } = message;
        let posted = match head.kind {
            // SAFETY: BUFFER-LIVES.
            Kind::Short => unsafe { device.post_short(to, head, data, length) },
            Kind::Eager => match self.rules.carry(length, device.road(to, length)).way {
                // SAFETY: BUFFER-LIVES.
                Way::Eager { packet } => unsafe {
                    device.post_bulk(to, head, &[length as u64], data, length.min(packet))
                },
                _ => {
                    let word = word.map(|word| word as u64);
                    // SAFETY: BUFFER-LIVES.
                    return (unsafe { device.post_long_eager(to, head, data, length, word) }, true);
                }
            },
            _ => {
                let asked = Asked { address: data as u64, request: request.0, offered, place };
                let [address, request, flags, token, offset] = asked.words();
                device.post_control(to, head, &[length as u64, address, request, flags, token, offset])
            }
        };
        (posted, false)
    }
}

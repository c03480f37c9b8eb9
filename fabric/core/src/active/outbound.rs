//! What leaves: requests at once or not at all, answers and the rest of what has begun from a queue.

use super::call::checked;
use super::{ActiveFault, ActiveProtocol, DUE, ToSelf, Unsent, WINDOW};
use crate::api::{Fault, Peer, RequestId};
use crate::devices::Devices;
use crate::requests::{RequestState, Requests};
use weft_device::Posted;
use weft_wire::active::{ActiveArguments, ActiveHead, ActiveKind, NotHandled};
use weft_wire::cell::{Head, INLINE_BYTES};

/// A message that has not left completely.
pub(super) struct Queued {
    head: ActiveHead,
    bytes: Vec<u8>,
    /// Its first packet has left, and so many bytes.
    begun: bool,
    sent: usize,
    /// It answers a request.
    answers: bool,
    /// Complete when it has left.
    pub request: Option<RequestId>,
}

impl Queued {
    pub fn answer(head: ActiveHead, bytes: Vec<u8>, answers: bool) -> Self {
        Self { head, bytes, begun: false, sent: 0, answers, request: None }
    }

    pub fn refusal(handler: u32, why: NotHandled, answers: bool) -> Self {
        let head = ActiveHead::new(ActiveKind::Refused, handler, ActiveArguments::default());
        Self::answer(head, (why as u64).to_le_bytes().to_vec(), answers)
    }

    /// Posts the next packet of it; true if it has left completely.
    fn post(&mut self, devices: &mut Devices, to: u32) -> Option<bool> {
        let posted = match self.begun {
            false => post_first(devices, to, &mut self.head, &self.bytes),
            true => devices.post_bytes(to, self.head.head(), &[], &self.bytes[self.sent..]),
        };
        let Posted::Sent(piece) = posted else { return None };
        self.sent += piece;
        // What travels in the cell is not counted by the device.
        let whole = !self.begun && self.head.total.is_none();
        self.begun = true;
        Some(whole || self.sent == self.bytes.len())
    }
}

/// Posts the first packet of a message, with as many of its bytes as there is room for.
fn post_first(devices: &mut Devices, to: u32, head: &mut ActiveHead, bytes: &[u8]) -> Posted {
    let is_long = head.what == ActiveKind::Long;
    let inline = head.front_bytes() + bytes.len();
    head.total = (is_long || head.total.is_some() || inline > INLINE_BYTES).then_some(bytes.len() as u64);
    let (words, count) = head.words();
    if head.total.is_some() && !bytes.is_empty() {
        return devices.post_bytes(to, head.head(), &words[..count], bytes);
    }
    let mut cell = [0; INLINE_BYTES];
    for (place, word) in cell.chunks_exact_mut(8).zip(&words[..count]) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    cell[8 * count..][..bytes.len()].copy_from_slice(bytes);
    devices.post_inline(to, head.head(), &cell[..8 * count + bytes.len()])
}

impl ActiveProtocol {
    /// Sends a request if it can leave now; otherwise does nothing and answers false.
    pub fn try_request(
        &mut self,
        devices: &mut Devices,
        requests: &Requests,
        (to, handler): (Peer, u16),
        arguments: &[u64],
        bytes: &[u8],
    ) -> Result<bool, ActiveFault> {
        let arguments = checked(arguments, bytes)?;
        let mut head = ActiveHead::new(ActiveKind::Request, handler.into(), arguments);
        if !self.may_go(requests, to)? {
            return Self::wait_for(devices, to);
        }
        if to.0 == self.me {
            self.peer(to.0).unanswered += 1;
            self.to_self.push_back(ToSelf { head, bytes: bytes.to_vec(), request: None });
            return Ok(true);
        }
        head.answered = self.peer(to.0).due;
        let Posted::Sent(sent) = post_first(devices, to.0, &mut head, bytes) else {
            return Self::wait_for(devices, to);
        };
        self.note_request(to.0, head.answered);
        if head.total.is_some() && sent < bytes.len() {
            let rest = Queued { begun: true, ..Queued::answer(head, bytes[sent..].to_vec(), false) };
            self.peer(to.0).queue.push_back(rest);
            self.note_work(to.0);
        }
        Ok(true)
    }

    /// There is no room now, and never will be at a peer that has left the job.
    fn wait_for(devices: &Devices, to: Peer) -> Result<bool, ActiveFault> {
        if devices.has_ended(to.0) { Err(ActiveFault::PeerLost(Fault::PeerLost)) } else { Ok(false) }
    }

    /// Starts a long request, which may go on leaving later.
    pub fn try_long_request(
        &mut self,
        requests: &mut Requests,
        (to, handler): (Peer, u16),
        arguments: &[u64],
        (landing, offset): (u32, u64),
        bytes: Vec<u8>,
    ) -> Result<RequestId, Unsent> {
        let room = self.may_go(requests, to).and_then(|may| may.then_some(()).ok_or(ActiveFault::WouldBlock));
        let arguments = room.and_then(|()| checked(arguments, &[]));
        let arguments = match arguments {
            Ok(arguments) => arguments,
            Err(why) => return Err(Unsent { bytes, why }),
        };
        let head = ActiveHead { landing, offset, ..ActiveHead::new(ActiveKind::Long, handler.into(), arguments) };
        let mut entry = Requests::entry(RequestState::Sending, std::ptr::null_mut(), bytes.len(), to);
        entry.outcome.length = bytes.len() as u64;
        let id = requests.insert(entry);
        if to.0 == self.me {
            self.peer(to.0).unanswered += 1;
            self.to_self.push_back(ToSelf { head, bytes, request: Some(id) });
            return Ok(id);
        }
        self.note_request(to.0, 0);
        self.peer(to.0).queue.push_back(Queued { request: Some(id), ..Queued::answer(head, bytes, false) });
        self.note_work(to.0);
        Ok(id)
    }

    /// Whether a request may go to a peer: it has room for one, and nothing goes before it.
    fn may_go(&mut self, requests: &Requests, to: Peer) -> Result<bool, ActiveFault> {
        if let Some(fault) = requests.loss(to) {
            return Err(ActiveFault::PeerLost(fault));
        }
        let peer = self.peer(to.0);
        Ok(peer.unanswered < WINDOW && peer.queue.is_empty())
    }

    /// A request has left, and told the peer that so many of its own are answered.
    fn note_request(&mut self, to: u32, answered: u32) {
        let peer = self.peer(to);
        peer.unanswered += 1;
        peer.tell(answered, 0);
    }

    /// Moves what waits for peers; true if anything moved.
    pub fn pump_busy(&mut self, devices: &mut Devices, requests: &mut Requests) -> bool {
        let (mut moved, mut at) = (false, 0);
        while at < self.busy.len() {
            let to = self.busy[at];
            let peer = self.peer(to);
            moved |= peer.pump(devices, requests, to);
            if peer.has_work() {
                at += 1;
            } else {
                self.busy.swap_remove(at);
            }
        }
        moved
    }
}

impl super::ActivePeer {
    /// The peer is told that so many of its requests are answered, `queued` of them by a reply.
    fn tell(&mut self, answered: u32, queued: u32) {
        self.due -= answered - queued;
        self.open -= answered;
    }

    fn pump(&mut self, devices: &mut Devices, requests: &mut Requests, to: u32) -> bool {
        let mut moved = false;
        while let Some(front) = self.queue.front_mut() {
            let (begins, own) = (!front.begun, u32::from(front.answers));
            if begins && front.head.what != ActiveKind::Long {
                front.head.answered = self.due + own;
            }
            let Some(left) = front.post(devices, to) else { return moved };
            moved = true;
            let (answered, request) = (front.head.answered, front.request);
            if left {
                self.queue.pop_front();
                request.into_iter().for_each(|id| requests.complete(id));
            }
            if begins {
                self.tell(answered, own);
            }
        }
        if self.due >= DUE {
            let credit = ActiveHead::new(ActiveKind::Credit, 0, ActiveArguments::default());
            let head: Head = ActiveHead { answered: self.due, ..credit }.head();
            if devices.post_inline(to, head, &[]) != Posted::Full {
                self.tell(self.due, 0);
                moved = true;
            }
        }
        moved
    }
}

//! Active messages: a request calls a handler of its receiver, which may reply once.
//!
//! An endpoint registers handlers by number. A request of up to 32 KiB calls its handler with the sender, up to three
//! arguments and its bytes; a *long* one first lands in memory that the receiver has registered, a *landing*, at the
//! offset that the sender names. The handler may reply with a message to a handler of the requester. Packets are those
//! of [`weft_wire::active`].
//!
//! Requests of one process to another are handled once and in the order of sending, replies in that of the requests.
//! There is no order towards messages of the port.
//!
//! Flow: a process has at most [`WINDOW`] requests to another one that are not answered. A reply answers one, and so
//! does having been handled, told with the next packet or, where there is none, when half the window is due. Replies
//! wait in a queue of their own, which is never longer than the window, and nothing in it waits for an answer. So who
//! cannot send a request takes what comes meanwhile, and two that flood each other both go on.
//!
//! A number without a handler, or a place outside of any landing, is the sender's error: it is told, counts it, and
//! its refusal handler is called. Nothing of it is the receiver's trouble.

mod call;
mod inbound;
mod outbound;
#[cfg(test)]
mod tests;

pub use call::{ActiveCall, ActiveFault, LandingId, Refusal, Unsent};
pub(crate) use call::{Handlers, Reaction};

use crate::api::{Fault, Peer, RequestId};
use crate::devices::Devices;
use crate::protocol::{Breach, Numbered, Protocol};
use crate::requests::Requests;
use inbound::Partial;
use outbound::Queued;
use std::collections::VecDeque;
use weft_device::Packet;
use weft_wire::active::{self, ActiveHead};
pub use weft_wire::active::{MEDIUM_BYTES, MOST_ARGUMENTS, WINDOW};

/// So many requests of a peer that we have handled are told to it by a packet of their own.
const DUE: u32 = WINDOW / 2;

/// How it stands with one peer.
#[derive(Default)]
struct ActivePeer {
    /// Our requests that it has not answered.
    unanswered: u32,
    /// Its requests that we have handled and not told it of; those that a queued reply answers are not among them.
    due: u32,
    /// Its requests that we have told nothing of.
    open: u32,
    queue: VecDeque<Queued>,
    /// The message that has come in part.
    partial: Option<Partial>,
}

impl ActivePeer {
    fn has_work(&self) -> bool {
        !self.queue.is_empty() || self.due >= DUE
    }
}

/// A message to oneself.
struct ToSelf {
    head: ActiveHead,
    bytes: Vec<u8>,
    request: Option<RequestId>,
}

pub(crate) struct ActiveProtocol {
    me: u32,
    /// Those that something has gone to or come from.
    peers: Vec<Option<Box<ActivePeer>>>,
    pub handlers: Handlers,
    to_self: VecDeque<ToSelf>,
    /// Peers that something waits for.
    busy: Vec<u32>,
    /// Bytes of a message that is handed to its handler.
    whole: Vec<u8>,
}

impl ActiveProtocol {
    fn peer(&mut self, peer: u32) -> &mut ActivePeer {
        self.peers[peer as usize].get_or_insert_default()
    }

    fn note_work(&mut self, peer: u32) {
        if self.peer(peer).has_work() && !self.busy.contains(&peer) {
            self.busy.push(peer);
        }
    }
}

impl Numbered for ActiveProtocol {
    const NUMBER: u32 = active::NUMBER;

    fn new(me: u32, peers: u32) -> Self {
        let peers = (0..peers).map(|_| None).collect();
        let handlers = Handlers::default();
        Self { me, peers, handlers, to_self: VecDeque::new(), busy: Vec::new(), whole: Vec::new() }
    }
}

impl Protocol for ActiveProtocol {
    fn handle_packet(&mut self, packet: Packet<'_>, requests: &mut Requests) -> Result<(), Breach> {
        // What was sent before its sender was lost has nobody to answer to.
        match requests.loss(Peer(packet.from)) {
            Some(_) => Ok(()),
            None => self.take(&packet),
        }
    }

    #[inline]
    fn has_work(&self) -> bool {
        !(self.busy.is_empty() && self.to_self.is_empty())
    }

    fn pump(&mut self, devices: &mut Devices, requests: &mut Requests) -> bool {
        self.handle_own(requests) | self.pump_busy(devices, requests)
    }

    fn awaited(&self) -> Vec<u32> {
        self.busy.clone()
    }

    fn add_peer(&mut self) {
        self.peers.push(None);
    }

    fn lose_peer(&mut self, peer: Peer, fault: Fault, requests: &mut Requests) {
        self.busy.retain(|other| *other != peer.0);
        let Some(lost) = self.peers[peer.0 as usize].take() else { return };
        for id in lost.queue.iter().filter_map(|queued| queued.request) {
            requests.at(id).outcome.fault = Some(fault);
            requests.complete(id);
        }
        if lost.unanswered > 0 {
            self.handlers.refuse(&Refusal::PeerLost { peer, unanswered: lost.unanswered });
        }
    }
}

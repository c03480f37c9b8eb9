//! Processes that are lost while the job goes on, and conversations that end before their time.
//!
//! In a job that was started with `--keep-going` the launcher knows who has ended and tells all others over their PMI
//! sockets. An endpoint looks there where it waits, takes what the lost process has sent, and ends what waits for it.

use super::Endpoint;
use crate::api::{Fault, Peer, RequestId};

/// Most passes in which what a lost process has sent is taken.
const PASSES_TO_TAKE: u32 = 1 << 16;

impl Endpoint {
    /// Whether the job goes on without processes that are lost, of which [`Self::look_for_lost`] tells.
    #[inline]
    pub fn keeps_going(&self) -> bool {
        self.keeps_going
    }

    /// The processes that the launcher has seen end without leave since the last call, and those of other jobs that are
    /// lost, in every call: no launcher tells of those, so what the device finds counts. What they have sent is taken,
    /// as far as it has arrived; what waits for them has ended with [`Fault::PeerLost`].
    pub fn look_for_lost(&mut self) -> Vec<Peer> {
        self.switch.port.discard_closed();
        let mut all = self.lost_of_this_job();
        all.extend(self.foreign_peers().filter(|peer| self.switch.port.is_lost(peer.0)));
        all
    }

    /// Ends what waits for a process that takes nothing any more; what it has sent before is to be taken first.
    pub fn lose_ended(&mut self, peer: Peer) {
        if self.devices.has_ended(peer.0) {
            self.switch.handle_loss(peer.0);
        }
    }

    /// The same of a process of which the interface knows that it takes nothing any more, before the fabric does.
    pub fn lose(&mut self, peer: Peer) {
        self.switch.handle_loss(peer.0);
    }

    fn lost_of_this_job(&mut self) -> Vec<Peer> {
        let Some(manager) = self.membership.as_mut().filter(|_| self.keeps_going) else { return Vec::new() };
        let mut lost: Vec<u32> = std::iter::from_fn(|| manager.poll_lost()).collect();
        lost.retain(|rank| *rank < self.size && *rank != self.me);
        if !lost.is_empty() {
            self.devices.look_soon();
            let mut passes = 0;
            while self.progress() && passes < PASSES_TO_TAKE {
                passes += 1;
            }
        }
        lost.iter().for_each(|rank| self.switch.handle_loss(*rank));
        lost.into_iter().map(Peer).collect()
    }

    /// Whether nothing goes to or comes from `peer` any more.
    #[inline]
    pub fn is_lost(&self, peer: Peer) -> bool {
        self.switch.port.is_lost(peer.0)
    }

    /// How what needs `peer` ends, if it is lost.
    pub fn loss(&self, peer: Peer) -> Option<Fault> {
        self.switch.port.loss(peer)
    }

    /// Ends a conversation: receives of the context that no message has met end with `fault`, also those to come, and
    /// messages that arrive are thrown away, so that their senders go on. Sends under way go on until they are taken.
    pub fn close_context(&mut self, context: u32, fault: Fault) {
        self.switch.port.close_context(context, fault);
    }

    /// Says that something is awaited of a process: one of another host is reached then, so that [`Self::has_ended`]
    /// will tell of its end, though nothing was sent there.
    pub fn attend(&mut self, peer: Peer) {
        self.devices.reach(peer.0);
    }

    /// Throws away all that has arrived and was not received, so that its senders go on: nobody will receive it.
    pub fn discard_arrived(&mut self) {
        self.switch.port.discard_arrived();
        self.answer();
    }

    /// Whether a peer has taken its leave. One whose connection has broken has not.
    pub fn has_left(&self, peer: Peer) -> bool {
        self.devices.has_ended(peer.0) && !self.switch.port.is_lost(peer.0)
    }

    /// The same where nobody may have noticed yet that a process of this host has ended without leave.
    pub fn took_leave(&self, peer: Peer) -> bool {
        self.devices.took_leave(peer.0).unwrap_or_else(|| self.has_left(peer))
    }

    /// How receives on a context end, if it was closed.
    #[inline]
    pub fn closing(&self, context: u32) -> Option<Fault> {
        self.switch.port.closing(context)
    }

    /// Whether a receive waits for its message to come.
    pub fn is_posted(&mut self, request: RequestId) -> bool {
        self.switch.port.is_posted(request)
    }
}

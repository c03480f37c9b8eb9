//! The endpoint: a process's place in the fabric.

use crate::api::{Envelope, MatchedId, Outcome, Peer, RequestId, Selector, SendMode};

/// Why a process could not join its job.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct JoinError(pub String);

/// A process's place in the fabric. Not synchronised: see [`crate::Monitor`].
pub struct Endpoint {}

#[allow(unused_variables, clippy::missing_safety_doc)]
impl Endpoint {
    /// Joins the job that started this process, or makes a job of one.
    pub fn join() -> Result<Self, JoinError> {
        unreachable!("being built")
    }

    pub fn me(&self) -> Peer {
        unreachable!("being built")
    }

    /// Processes in the world.
    pub fn world_size(&self) -> u32 {
        unreachable!("being built")
    }

    /// Whether `peer` runs on this host (shares memory with us).
    pub fn is_local(&self, peer: Peer) -> bool {
        unreachable!("being built")
    }

    /// Sends at once if the whole message can leave now; otherwise does nothing and answers false.
    ///
    /// # Safety
    /// `data` is readable for `length` bytes.
    #[inline]
    pub unsafe fn try_send(&mut self, to: Peer, envelope: Envelope, data: *const u8, length: usize) -> bool {
        unreachable!("being built")
    }

    /// Starts a send.
    ///
    /// # Safety
    /// `data` stays readable and unchanged for `length` bytes until the request is complete.
    pub unsafe fn post_send(
        &mut self,
        to: Peer,
        envelope: Envelope,
        data: *const u8,
        length: usize,
        mode: SendMode,
    ) -> RequestId {
        unreachable!("being built")
    }

    /// Starts a receive.
    ///
    /// # Safety
    /// `buffer` stays writable for `capacity` bytes and is not touched otherwise until the request is complete.
    pub unsafe fn post_receive(&mut self, from: Selector, buffer: *mut u8, capacity: usize) -> RequestId {
        unreachable!("being built")
    }

    /// The first message that `from` would receive, if one has arrived. Does not make progress.
    pub fn probe(&mut self, from: Selector) -> Option<Outcome> {
        unreachable!("being built")
    }

    /// Like [`Self::probe`], and takes the message out of matching.
    pub fn take_matched(&mut self, from: Selector) -> Option<(MatchedId, Outcome)> {
        unreachable!("being built")
    }

    /// Starts to receive a message taken by [`Self::take_matched`].
    ///
    /// # Safety
    /// As [`Self::post_receive`].
    pub unsafe fn post_matched_receive(&mut self, message: MatchedId, buffer: *mut u8, capacity: usize) -> RequestId {
        unreachable!("being built")
    }

    /// Cancels a receive that no message has matched yet; true if so (it is then complete with
    /// [`crate::Fault::Cancelled`]). Sends cannot be cancelled.
    pub fn cancel_receive(&mut self, request: RequestId) -> bool {
        unreachable!("being built")
    }

    #[inline]
    pub fn is_complete(&self, request: RequestId) -> bool {
        unreachable!("being built")
    }

    /// The outcome of a complete request, which ends it; `None` while it is under way.
    #[inline]
    pub fn take_outcome(&mut self, request: RequestId) -> Option<Outcome> {
        unreachable!("being built")
    }

    /// Gives the request up: it completes on its own and its outcome is dropped.
    pub fn release(&mut self, request: RequestId) {
        unreachable!("being built")
    }

    /// One bounded duty cycle over the devices; true if anything moved.
    pub fn progress(&mut self) -> bool {
        unreachable!("being built")
    }

    /// Leaves the job. Everything started must be complete.
    pub fn leave(self) {}
}

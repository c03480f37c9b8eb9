//! How messages are handed to the fabric, at once or later.

use crate::kept::{AmContext, KeptBytes};
use crate::world::AmWorld;
use weft_fabric::{Envelope, Outcome, Peer, RequestId, SendMode};

impl AmWorld {
    fn envelope(&self, context: AmContext, tag: i32) -> Envelope {
        Envelope { context: context as u32, tag, source: self.me() }
    }

    #[inline]
    pub fn try_send(&mut self, to: Peer, word: i32, bytes: &[u8]) -> bool {
        let envelope = self.envelope(AmContext::Messages, word);
        // SAFETY: `bytes` is borrowed.
        unsafe { self.endpoint.try_send(to, envelope, bytes.as_ptr(), bytes.len()) }
    }

    /// Starts to send bytes that stay as they are until the request is complete.
    ///
    /// # Safety
    /// They do.
    pub unsafe fn post(&mut self, to: Peer, context: AmContext, tag: i32, bytes: &[u8]) -> RequestId {
        let envelope = self.envelope(context, tag);
        // SAFETY: the caller's promise.
        unsafe { self.endpoint.post_send(to, envelope, bytes.as_ptr(), bytes.len(), SendMode::Standard) }
    }

    /// Sends now, or keeps a copy until there is room.
    #[inline]
    pub fn send_or_keep(&mut self, to: Peer, word: i32, bytes: &[u8]) {
        if !self.try_send(to, word, bytes) {
            self.keep(to, AmContext::Messages, word, bytes.into());
        }
    }

    pub fn keep(&mut self, to: Peer, context: AmContext, tag: i32, bytes: Box<[u8]>) {
        // SAFETY: the bytes are kept, where nobody touches them, until the request is complete.
        let request = unsafe { self.post(to, context, tag, &bytes) };
        self.outbound.kept.push(KeptBytes { request, _bytes: Some(bytes) });
    }

    /// Frees what has left.
    #[inline]
    pub fn reclaim(&mut self) {
        if !self.outbound.kept.is_empty() {
            let Self { outbound, endpoint, .. } = self;
            outbound.kept.retain(|kept| endpoint.take_outcome(kept.request).is_none());
        }
    }

    pub fn next_number(&mut self) -> i32 {
        self.outbound.numbers = (self.outbound.numbers + 1) & i32::MAX;
        self.outbound.numbers
    }

    /// How a send that a thread waits for has ended.
    pub fn take_sent(&mut self, request: RequestId) -> Option<Outcome> {
        let outcome = self.endpoint.take_outcome(request)?;
        self.outbound.waiting.retain(|awaited| awaited.request != request);
        Some(outcome)
    }

    /// Looks whether those have ended whom something is on its way to or from: that has ended by it. True if one has.
    pub fn look_for_ended(&mut self) -> bool {
        let Self { outbound, inbound, endpoint, .. } = self;
        let coming = inbound.coming.iter().map(|coming| (coming.request, Peer(coming.message.rank)));
        let mut all = outbound.waiting.iter().map(|awaited| (awaited.request, awaited.to)).chain(coming);
        let Some((request, of)) = all.find(|(request, of)| !endpoint.is_complete(*request) && endpoint.has_ended(*of))
        else {
            return false;
        };
        // What it has sent has arrived, since it has ended before.
        while endpoint.progress() {}
        if !endpoint.is_complete(request) && !endpoint.cancel_receive(request) {
            endpoint.lose_ended(of);
        }
        true
    }
}

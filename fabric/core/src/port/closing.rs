//! Contexts that were closed: a conversation that is over although messages of it may still come.

use super::Port;
use crate::api::{Fault, RequestId, Selector};
use crate::requests::RequestState;

impl Port {
    /// How operations on a context end, if it was closed.
    #[inline]
    pub fn closing(&self, context: u32) -> Option<Fault> {
        if self.closed.is_empty() { None } else { self.find_closing(context) }
    }

    #[cold]
    fn find_closing(&self, context: u32) -> Option<Fault> {
        self.closed.iter().find(|closed| closed.0 == context).map(|closed| closed.1)
    }

    /// Ends the receives of a context that no message has met, and those to come; a later fault takes the place of the
    /// first. Messages that arrive are thrown away, so that their senders go on.
    pub fn close_context(&mut self, context: u32, fault: Fault) {
        match self.closed.iter_mut().find(|closed| closed.0 == context) {
            Some(closed) => closed.1 = fault,
            None => self.closed.push((context, fault)),
        }
        for id in self.matcher.handle_context_closed(context) {
            self.fail(RequestId(id), fault);
        }
        self.discard_closed();
    }

    /// Throws away what has arrived on closed contexts.
    pub fn discard_closed(&mut self) {
        for at in 0..self.closed.len() {
            let any = Selector { context: self.closed[at].0, peer: None, tag: None };
            while let Some((message, _)) = self.take_matched(any) {
                self.discard(message);
            }
        }
    }

    /// Throws away all that has arrived and was not received.
    pub fn discard_arrived(&mut self) {
        while let Some(message) = self.matcher.take_any_unexpected() {
            self.discard(message);
        }
    }

    fn discard(&mut self, message: u32) {
        // SAFETY: a buffer without bytes is valid wherever it is.
        let id = unsafe { self.post_matched_receive(message, std::ptr::NonNull::dangling().as_ptr(), 0) };
        self.requests.release(id);
    }

    /// Whether a receive waits for its message to come.
    pub fn is_posted(&mut self, id: RequestId) -> bool {
        self.requests.at(id).state == RequestState::Posted
    }
}

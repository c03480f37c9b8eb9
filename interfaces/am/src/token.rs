//! What handlers may ask of the message that they got, and how a pointer of theirs is known for one.

use crate::message::{AmArguments, AmCategory, EndpointId, MessageHead};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::null;

thread_local! {
    /// The message whose handler runs in this thread; it knows the one around it.
    static RUNNING: Cell<*const MessageToken> = const { Cell::new(null()) };
}

/// A message whose handler runs. Programs hold its address, which is looked up among those that run.
pub struct MessageToken {
    pub rank: u32,
    pub from: EndpointId,
    pub to: EndpointId,
    pub tag: u64,
    pub handler: u8,
    pub category: AmCategory,
    pub is_request: bool,
    pub arguments: AmArguments,
    may_reply: Cell<bool>,
    /// The one whose handler was interrupted by this one's.
    around: Cell<*const MessageToken>,
}

impl MessageToken {
    pub fn new(head: &MessageHead, rank: u32, is_request: bool) -> Self {
        let MessageHead { from, to, tag, handler, category, arguments, .. } = *head;
        let (may_reply, around) = (Cell::new(is_request), Cell::new(null()));
        Self { rank, from, to, tag, handler, category, is_request, arguments, may_reply, around }
    }

    /// Whether it may be replied to; from now on it may not.
    pub fn take_reply(&self) -> bool {
        self.may_reply.replace(false)
    }
}

/// Does something with the message that a pointer of the program stands for, if its handler runs in this thread.
#[inline]
pub fn with_token<R>(token: *const c_void, what: impl FnOnce(&MessageToken) -> R) -> Option<R> {
    let mut running = RUNNING.get();
    while !running.is_null() {
        // SAFETY: tokens in this list belong to calls of `AmHandlerCall::run` that are under way in this thread.
        let known = unsafe { &*running };
        if running.cast() == token {
            return Some(what(known));
        }
        running = known.around.get();
    }
    None
}

/// From here on the handler of a message runs in this thread.
pub fn begin(token: &MessageToken) {
    token.around.set(RUNNING.get());
    RUNNING.set(token);
}

/// It has returned.
pub fn end(token: &MessageToken) {
    RUNNING.set(token.around.get());
}

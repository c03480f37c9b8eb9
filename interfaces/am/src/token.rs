//! What handlers may ask of the message that they got, and how a pointer of theirs is known for one.

use crate::message::{MessageHead, Purpose};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::null;

thread_local! {
    /// The message whose handler runs in this thread; it knows the one around it.
    static RUNNING: Cell<*const MessageToken<'static>> = const { Cell::new(null()) };
}

/// A message whose handler runs. Programs hold its address, which is looked up among those that run.
pub struct MessageToken<'a> {
    pub head: &'a MessageHead<'a>,
    pub rank: u32,
    may_reply: Cell<bool>,
    /// The one whose handler was interrupted by this one's.
    around: Cell<*const MessageToken<'static>>,
}

impl<'a> MessageToken<'a> {
    pub fn new(head: &'a MessageHead<'a>, rank: u32) -> Self {
        let may_reply = Cell::new(head.purpose == Purpose::Request);
        Self { head, rank, may_reply, around: Cell::new(null()) }
    }

    /// Whether it may be replied to; from now on it may not.
    pub fn take_reply(&self) -> bool {
        self.may_reply.replace(false)
    }
}

/// Does something with the message that a pointer of the program stands for, if its handler runs in this thread.
#[inline]
pub fn with_token<R>(token: *const c_void, what: impl FnOnce(&MessageToken<'_>) -> R) -> Option<R> {
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
pub fn begin(token: &MessageToken<'_>) {
    token.around.set(RUNNING.get());
    RUNNING.set((&raw const *token).cast());
}

/// It has returned.
pub fn end(token: &MessageToken<'_>) {
    RUNNING.set(token.around.get());
}

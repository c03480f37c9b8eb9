//! Which message is wanted, and those that have arrived.

use crate::identity::my_context;
use std::ffi::c_int;

/// Which message is wanted; -1 stands for any.
#[derive(Clone, Copy, Debug)]
pub struct WantedMessage {
    pub tid: c_int,
    pub tag: c_int,
    pub context: c_int,
}

impl WantedMessage {
    /// In the context of this task.
    pub fn here(tid: c_int, tag: c_int) -> Self {
        Self { tid, tag, context: my_context() }
    }

    pub fn is(&self, message: &WaitingMessage) -> bool {
        let fits = |wanted, is| wanted == -1 || wanted == is;
        fits(self.tid, message.source) && fits(self.tag, message.tag) && fits(self.context, message.context)
    }
}

/// A message that waits in a buffer.
#[derive(Clone, Copy, Debug)]
pub struct WaitingMessage {
    pub buffer: c_int,
    pub source: c_int,
    pub tag: c_int,
    pub context: c_int,
}

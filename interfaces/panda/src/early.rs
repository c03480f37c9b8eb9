//! What comes before there is somebody for it waits for them; not without bound, since it may be that nobody comes. Who
//! waits for an answer before it registers its handlers needs what comes behind, so senders are not held back.

use crate::failure::fail;
use std::collections::VecDeque;

/// Bytes of messages that wait, at most.
const MOST_BYTES: usize = 256 << 20;
/// What a message takes beside its bytes.
const BESIDE: usize = 64;

pub struct EarlyMessages<T> {
    all: VecDeque<T>,
    bytes: usize,
}

impl<T> Default for EarlyMessages<T> {
    fn default() -> Self {
        Self { all: VecDeque::new(), bytes: 0 }
    }
}

impl<T> EarlyMessages<T> {
    /// Keeps a message of so many bytes; the job ends if it has no room. `which` names it.
    pub fn keep(&mut self, message: T, bytes: usize, which: impl FnOnce() -> String) {
        self.bytes += bytes + BESIDE;
        if self.bytes > MOST_BYTES {
            fail(&format!(
                "{} has no room: messages that wait until somebody is registered for them have {} MiB at most",
                which(),
                MOST_BYTES >> 20
            ));
        }
        self.all.push_back(message);
    }

    /// All, in the order in which they came.
    pub fn take(&mut self) -> VecDeque<T> {
        self.bytes = 0;
        std::mem::take(&mut self.all)
    }
}

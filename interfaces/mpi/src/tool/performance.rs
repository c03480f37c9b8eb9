//! Performance variables: the counters.

use super::KNOWN;

/// One use of a counter in a session: it counts while it is started.
#[derive(Clone, Copy, Debug)]
pub struct Handle {
    pub session: usize,
    /// The place of the counter among all.
    pub counter: usize,
    /// What it has counted up to the last start.
    sum: u64,
    /// Where the counter stood at the last start; `None`: stopped.
    since: Option<u64>,
}

/// The counter now; 0 before the process has joined its job.
fn now(counter: usize) -> u64 {
    KNOWN.get().map_or(0, |known| known.counters.read(counter))
}

impl Handle {
    pub fn new(session: usize, counter: usize) -> Self {
        Self { session, counter, sum: 0, since: None }
    }

    pub fn start(&mut self) {
        self.since = self.since.or(Some(now(self.counter)));
    }

    pub fn stop(&mut self) {
        (self.sum, self.since) = (self.read(), None);
    }

    pub fn read(&self) -> u64 {
        self.sum.wrapping_add(self.since.map_or(0, |since| now(self.counter).wrapping_sub(since)))
    }

    /// What [`Self::read`] answers, and begins at 0 again; nothing is lost between.
    pub fn take(&mut self) -> u64 {
        let now = self.since.map(|_| now(self.counter));
        let counted = now.zip(self.since).map_or(0, |(now, since)| now.wrapping_sub(since));
        let value = self.sum.wrapping_add(counted);
        (self.sum, self.since) = (0, now);
        value
    }

    /// Goes on from this value.
    pub fn write(&mut self, value: u64) {
        self.sum = value;
        self.since = self.since.map(|_| now(self.counter));
    }
}

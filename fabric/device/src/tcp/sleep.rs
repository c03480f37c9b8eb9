//! How to sleep on sockets, and how to be woken there by who shares memory with us.

use super::epoll::Epoll;
use crate::sys;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

/// Sleeps on the sockets and the bell.
pub struct TcpSleeper {
    epoll: Arc<Epoll>,
    /// Something is to be done then.
    until_ns: Option<u64>,
}

impl TcpSleeper {
    pub(super) fn new(epoll: Arc<Epoll>, until_ns: Option<u64>) -> Self {
        Self { epoll, until_ns }
    }

    /// The same, where something else is to be done at `at_ns`.
    pub fn until(self, at_ns: Option<u64>) -> Self {
        Self { until_ns: self.until_ns.into_iter().chain(at_ns).min(), ..self }
    }

    /// Sleeps until something comes, or `limit` has passed.
    pub fn sleep(&self, limit: Option<Duration>) {
        self.epoll.wait(&mut Vec::new(), limit.into_iter().chain(self.due()).min());
    }

    /// What can be read when something has come.
    pub fn descriptor(&self) -> RawFd {
        self.epoll.descriptor()
    }

    /// How long it may be until something is to be done.
    pub fn due(&self) -> Option<Duration> {
        self.until_ns.map(|until| Duration::from_nanos(until.saturating_sub(sys::now_ns())))
    }
}

//! Which sockets are ready. Nothing waits here except [`Epoll::wait`].

use crate::kernel::{self, Descriptor, checked};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// What a socket is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    Input,
    Both,
}

/// A set of sockets of which the kernel says which are ready.
pub struct Epoll {
    descriptor: OwnedFd,
    /// The process that has made it. One that was forked shares it, and must not change it.
    process: u32,
}

/// What is ready, as the token that it was added with.
pub type Token = u64;

/// So many are told of at a time.
const EVENTS: usize = 64;

impl Epoll {
    pub fn new() -> io::Result<Self> {
        // SAFETY: no memory.
        let made = unsafe { checked(libc::SYS_epoll_create1, [libc::EPOLL_CLOEXEC as usize, 0, 0, 0, 0, 0]) };
        made.map(|descriptor| Self {
            descriptor: Descriptor::own(descriptor as RawFd).into(),
            process: kernel::process(),
        })
    }

    /// What can be read when something is ready.
    pub fn descriptor(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    pub fn is_ours(&self) -> bool {
        self.process == kernel::process()
    }

    fn control(&self, operation: i32, descriptor: RawFd, watch: Watch, token: Token) -> io::Result<()> {
        let events = match watch {
            Watch::Input => libc::EPOLLIN,
            Watch::Both => libc::EPOLLIN | libc::EPOLLOUT,
        };
        let event = libc::epoll_event { events: events as u32, u64: token };
        let (set, at) = (self.descriptor.as_raw_fd() as usize, (&raw const event) as usize);
        // SAFETY: the event lives across the call.
        unsafe { checked(libc::SYS_epoll_ctl, [set, operation as usize, descriptor as usize, at, 0, 0]) }.map(drop)
    }

    /// Watches what is not a [`Socket`] (see [`Socket::watch`]).
    pub fn add(&self, descriptor: RawFd, watch: Watch, token: Token) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, descriptor, watch, token)
    }

    pub fn change(&self, descriptor: RawFd, watch: Watch, token: Token) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, descriptor, watch, token)
    }

    /// Watches a socket no more. One that is not watched is left alone.
    pub fn forget(&self, descriptor: RawFd) {
        let _ = self.control(libc::EPOLL_CTL_DEL, descriptor, Watch::Input, 0);
    }

    /// Adds the tokens of what is ready to `ready`; sleeps until something is, at most for `limit`.
    pub fn wait(&self, ready: &mut Vec<Token>, limit: Option<Duration>) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        // Rounded up: a sleep that ends before its time would be followed by another one at once.
        let limit_ms = limit.map_or(-1, |limit| i32::try_from(limit.as_micros().div_ceil(1000)).unwrap_or(i32::MAX));
        let (set, at) = (self.descriptor.as_raw_fd() as usize, events.as_mut_ptr() as usize);
        // SAFETY: the events are valid and ours across the call. No signal mask is given.
        let count = unsafe { checked(libc::SYS_epoll_pwait, [set, at, EVENTS, limit_ms as usize, 0, 8]) };
        // The one error that there can be is an interruption.
        ready.extend(events[..count.unwrap_or(0)].iter().map(|event| event.u64));
    }
}

//! Which sockets are ready. Nothing waits here except [`Epoll::wait`].

use crate::kernel::{self, DescriptorSet};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// What a socket is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketWatch {
    Input,
    Both,
}

impl SocketWatch {
    fn events(self) -> i16 {
        match self {
            SocketWatch::Input => libc::POLLIN,
            SocketWatch::Both => libc::POLLIN | libc::POLLOUT,
        }
    }
}

/// A set of sockets of which the kernel says which are ready.
pub struct Epoll {
    set: DescriptorSet,
    /// The process that has made it. One that was forked shares it, and must not change it.
    process: u32,
}

/// What is ready, as the token that it was added with.
pub type Token = u64;

impl Epoll {
    pub fn new() -> io::Result<Self> {
        Ok(Self { set: DescriptorSet::new()?, process: kernel::process() })
    }

    /// What can be read when something is ready.
    pub fn descriptor(&self) -> RawFd {
        self.set.as_raw_fd()
    }

    pub fn is_ours(&self) -> bool {
        self.process == kernel::process()
    }

    /// Watches what is not a [`TcpSocket`](super::socket::TcpSocket) (see [`super::socket::TcpSocket::watch`]).
    pub fn add(&self, descriptor: RawFd, watch: SocketWatch, token: Token) -> io::Result<()> {
        self.set.watch(descriptor, watch.events(), token)
    }

    pub fn change(&self, descriptor: RawFd, watch: SocketWatch, token: Token) -> io::Result<()> {
        self.set.change(descriptor, watch.events(), token)
    }

    /// Watches a socket no more. One that is not watched is left alone.
    pub fn forget(&self, descriptor: RawFd) {
        self.set.remove(&descriptor);
    }

    /// Adds the tokens of what is ready to `ready`; sleeps until something is, at most for `limit`.
    pub fn wait(&self, ready: &mut Vec<Token>, limit: Option<Duration>) {
        ready.extend(self.set.wait(limit).into_iter().flatten().map(|(token, _)| token));
    }
}

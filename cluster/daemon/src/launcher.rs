//! A process as a descriptor: it is told apart from one that gets its number later, and its end can be waited for.
#![allow(unsafe_code)]

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::os::fd::OwnedFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

pub struct LauncherProcess(AsyncFd<OwnedFd>);

impl LauncherProcess {
    /// A process that lives. `None` where the number means nothing here.
    pub fn open(pid: i32) -> Option<Self> {
        let descriptor = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::NONBLOCK).ok()?;
        // SAFETY: the descriptor is its own and is closed with it.
        let descriptor = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
        descriptor.ok().map(Self)
    }

    /// Waits for its end.
    pub async fn end(&self) {
        let _ = self.0.readable().await;
    }

    /// # Errors
    /// There is no such signal, or the process is gone.
    pub fn signal(&self, number: i32) -> io::Result<()> {
        let signal =
            Signal::from_named_raw(number).ok_or_else(|| io::Error::other(format!("{number} is no signal")))?;
        Ok(pidfd_send_signal(self.0.get_ref(), signal)?)
    }
}

//! The signals that the launcher takes and passes on.

use crate::sys::{self, SignalSet};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Passed on to the ranks.
const FORWARDED: [i32; 8] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGTSTP,
    libc::SIGCONT,
];

/// The launcher's signals, read from a descriptor.
pub struct LauncherSignals {
    descriptor: OwnedFd,
    before: SignalSet,
}

impl LauncherSignals {
    /// Takes the signals over. Those that are ignored on entry stay ignored (`nohup`, shells without job control), and
    /// a terminal can no longer stop us for touching it from the background: reads fail and writes pass instead.
    pub fn take() -> io::Result<Self> {
        let ours: Vec<i32> = FORWARDED.into_iter().filter(|signal| !sys::is_ignored(*signal)).collect();
        let set = SignalSet::of(&ours);
        let before = set.block()?;
        SignalSet::of(&[libc::SIGTTIN, libc::SIGTTOU]).block()?;
        set.descriptor().map(|descriptor| Self { descriptor, before })
    }

    pub fn fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    /// What was blocked before we took them: the ranks shall find it so.
    pub fn mask_before(&self) -> SignalSet {
        self.before
    }

    /// The next signal that has come.
    pub fn poll_signal(&self) -> Option<i32> {
        sys::read_signal(&self.descriptor)
    }
}

/// Stops this process as `SIGTSTP` would have; returns when it is continued.
pub fn stop_here() {
    let _ = sys::kill(std::process::id() as i32, libc::SIGSTOP);
}

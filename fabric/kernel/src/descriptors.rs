//! Descriptors.

use crate::system_call;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::time::Duration;

pub fn close(descriptor: RawFd) {
    // SAFETY: no memory; whether the number is ours is the caller's business.
    let _ = unsafe { system_call!(libc::SYS_close, descriptor) };
}

/// A descriptor of ours, which is closed by the kernel's call and not by the C library's.
pub struct Descriptor(RawFd);

impl Descriptor {
    /// The number is ours alone from now on.
    pub fn own(number: RawFd) -> Self {
        Self(number)
    }

    /// Open for as long as the process lives.
    pub fn leave_open(&mut self) {
        self.0 = -1;
    }
}

impl From<OwnedFd> for Descriptor {
    fn from(owned: OwnedFd) -> Self {
        Self(owned.into_raw_fd())
    }
}

impl IntoRawFd for Descriptor {
    fn into_raw_fd(mut self) -> RawFd {
        std::mem::replace(&mut self.0, -1)
    }
}

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: ours, and open as long as `self` is.
        unsafe { BorrowedFd::borrow_raw(self.0) }
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        if self.0 >= 0 {
            close(self.0);
        }
    }
}

/// Waits for these events (`POLLIN` and others) on a descriptor, or its end, at most for `limit`. Answers what has come:
/// nothing when the time has passed, and also when a signal has.
///
/// # Errors
/// Those of `poll`.
pub fn await_events(descriptor: RawFd, events: i16, limit: Option<Duration>) -> io::Result<i16> {
    let mut asked = libc::pollfd { fd: descriptor, events, revents: 0 };
    let limit = limit.map(|limit| libc::timespec {
        tv_sec: libc::time_t::try_from(limit.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: both places live across the call; no signal mask is given.
    match unsafe { system_call!(libc::SYS_ppoll, &raw mut asked, 1, limit, 0, 0) } {
        Ok(_) => Ok(asked.revents),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        Err(error) => Err(error),
    }
}

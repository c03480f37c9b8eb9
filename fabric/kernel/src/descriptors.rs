//! Descriptors.

use crate::{system_call, timespec_of};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
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

/// From now on it is closed by the C library's call.
impl From<Descriptor> for OwnedFd {
    fn from(descriptor: Descriptor) -> Self {
        // SAFETY: ours alone, and given up by the other.
        unsafe { Self::from_raw_fd(descriptor.into_raw_fd()) }
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

/// Waits for these events (`POLLIN` and others) on a descriptor, or its end, at most for `limit`. Answers what has
/// come: nothing when the time has passed, and also when a signal has.
///
/// # Errors
/// Those of `poll`.
pub fn await_events(descriptor: RawFd, events: i16, limit: Option<Duration>) -> io::Result<i16> {
    let mut asked = libc::pollfd { fd: descriptor, events, revents: 0 };
    let limit = limit.map(timespec_of);
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: both places live across the call; no signal mask is given.
    match unsafe { system_call!(libc::SYS_ppoll, &raw mut asked, 1, limit, 0, 0) } {
        Ok(_) => Ok(asked.revents),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        Err(error) => Err(error),
    }
}

/// Whether nobody is at the other end of a connected Unix socket any more.
pub fn is_hung_up(socket: RawFd) -> bool {
    !matches!(await_events(socket, 0, Some(Duration::ZERO)), Ok(0))
}

/// `fcntl` whose argument is a number.
///
/// # Errors
/// What the kernel says.
pub fn control(descriptor: RawFd, command: i32, argument: i32) -> io::Result<i32> {
    // SAFETY: numbers only; commands that take an address are not for this.
    unsafe { system_call!(libc::SYS_fcntl, descriptor, command, argument) }.map(|answer| answer as i32)
}

/// Moves a descriptor out of the way of programs: to 900 or more, or as high as the limit allows. Kept as it is where
/// that is impossible.
pub fn out_of_the_way(descriptor: RawFd) -> RawFd {
    let limit = limits(libc::RLIMIT_NOFILE).map_or(1024, |(soft, _)| soft);
    match control(descriptor, libc::F_DUPFD_CLOEXEC, limit.saturating_sub(64).min(900) as i32) {
        Ok(moved) => {
            close(descriptor);
            moved
        }
        Err(_) => descriptor,
    }
}

/// Closes all descriptors from `first` on but those to `keep`. For a process in which nobody uses any others.
pub fn close_all_but(mut first: RawFd, keep: &[RawFd]) {
    let mut keep = keep.to_vec();
    keep.sort_unstable();
    for kept in keep.into_iter().chain([RawFd::MAX]) {
        if kept > first {
            // SAFETY: numbers only; the caller says that nobody uses what is closed.
            let _ = unsafe { system_call!(libc::SYS_close_range, first, kept - 1, 0) };
        }
        first = first.max(kept.saturating_add(1));
    }
}

/// Soft and hard limit of a resource, `RLIMIT_NOFILE` or another; the largest number for none.
///
/// # Errors
/// A sandbox forbids to ask.
pub fn limits(resource: u32) -> io::Result<(u64, u64)> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid place for the answer.
    unsafe { system_call!(libc::SYS_prlimit64, 0, resource, 0, &raw mut limit) }?;
    Ok((limit.rlim_cur, limit.rlim_max))
}

/// # Errors
/// The hard one is beyond what this process may have.
pub fn set_limits(resource: u32, soft: u64, hard: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    // SAFETY: a valid limit, which the kernel reads.
    unsafe { system_call!(libc::SYS_prlimit64, 0, resource, &raw const limit, 0) }.map(drop)
}

/// Takes the lock of the first byte of a file for this process, or gives it back; false where another process has it.
/// Such a lock ends with its process, and with the first descriptor of the file that the process closes.
pub fn set_lock(file: RawFd, taken: bool) -> bool {
    // SAFETY: plain data, for which zero is a valid value; the kernel reads it during the call.
    unsafe {
        let mut lock: libc::flock = std::mem::zeroed();
        lock.l_type = if taken { libc::F_WRLCK } else { libc::F_UNLCK } as libc::c_short;
        lock.l_len = 1;
        system_call!(libc::SYS_fcntl, file, libc::F_SETLK, &raw const lock).is_ok()
    }
}

/// What the kernel says of what a descriptor leads to; `None` if it is not open.
pub fn stat(descriptor: RawFd) -> Option<libc::stat> {
    // SAFETY: a structure of numbers, for which zero is a value, and a valid place for the answer.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        let (nothing, place) = (c"".as_ptr(), &raw mut stat);
        system_call!(libc::SYS_newfstatat, descriptor, nothing, place, libc::AT_EMPTY_PATH).ok()?;
        Some(stat)
    }
}

/// Which file, socket or memory it is, also under another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    file: u64,
}

/// What a descriptor leads to; `None` if it is not open.
pub fn identity(descriptor: RawFd) -> Option<FileIdentity> {
    stat(descriptor).map(|stat| FileIdentity { device: stat.st_dev, file: stat.st_ino })
}

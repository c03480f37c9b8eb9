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

/// When a process began, in the kernel's ticks since the host did.
pub fn start_of(pid: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before may have blanks and parentheses in it.
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

/// The real, effective, saved and file system's user of a process.
pub fn uids_of(pid: i32) -> Option<Vec<u32>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().map(|word| word.parse().ok()).collect()
}

/// Has the kernel run a process, and what it will start, before all others as soon as it can (`SCHED_FIFO`), with a
/// priority from 1 on.
///
/// # Errors
/// The kernel does not permit it.
pub fn run_first(pid: i32, priority: i32) -> io::Result<()> {
    set_policy(pid, libc::SCHED_FIFO, priority)
}

/// The priority of who gives jobs their turns, and of the daemon that tells it: before all jobs.
pub const SLICER_PRIORITY: i32 = 40;

/// The same for this process alone, not for what it will start.
///
/// # Errors
/// The kernel does not permit it.
pub fn run_before_jobs() -> io::Result<()> {
    set_policy(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, SLICER_PRIORITY)
}

/// How a job's processes are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPace {
    /// Before all that are not real-time, in turns among themselves.
    First,
    AsOthers,
}

/// Sets how a thread is run. One that runs in a way of its own choice is left alone.
///
/// # Errors
/// It has ended, or the kernel does not permit it.
pub fn set_pace(thread: i32, pace: RunPace, priority: i32) -> io::Result<()> {
    match (pace, policy_of(thread)?) {
        (RunPace::First, (libc::SCHED_OTHER, _)) => set_policy(thread, libc::SCHED_RR, priority),
        (RunPace::AsOthers, (libc::SCHED_RR, 1..SLICER_PRIORITY)) => set_policy(thread, libc::SCHED_OTHER, 0),
        _ => Ok(()),
    }
}

/// The policy and the priority of a thread.
///
/// # Errors
/// It has ended.
pub fn policy_of(thread: i32) -> io::Result<(i32, i32)> {
    // SAFETY: it takes no pointer.
    let policy = unsafe { libc::sched_getscheduler(thread) };
    let mut given = libc::sched_param { sched_priority: 0 };
    // SAFETY: the structure lives through the call, which writes it.
    if policy < 0 || unsafe { libc::sched_getparam(thread, &raw mut given) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((policy & !libc::SCHED_RESET_ON_FORK, given.sched_priority))
}

fn set_policy(pid: i32, policy: i32, priority: i32) -> io::Result<()> {
    let given = libc::sched_param { sched_priority: priority };
    // SAFETY: the structure lives through the call, which reads it.
    if unsafe { libc::sched_setscheduler(pid, policy, &raw const given) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    let why = match error.raw_os_error() {
        Some(libc::EPERM) => "neither root's rights, RLIMIT_RTPRIO nor the control group's real-time share permit it",
        _ => return Err(error),
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_one_that_has_its_number_later() {
        let pid = std::process::id() as i32;
        assert!(start_of(pid).expect("this process runs") > 0);
        assert_eq!(start_of(0), None);
        assert_eq!(uids_of(pid).expect("this process runs").len(), 4);
        assert_eq!(uids_of(0), None);
    }
    #[test]
    fn what_the_kernel_does_not_permit_is_said() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("started");
        let pid = child.id() as i32;
        let error = run_first(pid, 1000).expect_err("there is no such priority");
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
        match run_first(pid, 1) {
            // SAFETY: it takes no pointer.
            Ok(()) => assert_eq!(unsafe { libc::sched_getscheduler(pid) }, libc::SCHED_FIFO),
            Err(error) => assert!(error.to_string().contains("RLIMIT_RTPRIO"), "{error}"),
        }
        child.kill().and_then(|()| child.wait()).expect("ended");
    }
}

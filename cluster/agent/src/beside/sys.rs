//! The system calls of a command that stays beside its program.

use crate::sys::{self, Apart, SignalSet, check};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;

/// What has become of this child since it was last asked for, if anything: its raw wait status, also where it has stopped.
pub fn change_of(pid: i32) -> io::Result<Option<i32>> {
    let mut status = 0;
    // SAFETY: `status` takes the answer.
    let changed = check(unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG | libc::WUNTRACED) })?;
    Ok((changed != 0).then_some(status))
}

/// Ends this process by `signal`, without an image of its memory: it is not ours that matters.
pub fn end_by_signal(signal: i32) -> ! {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid limit.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
    sys::reset_signal(signal);
    let _ = SignalSet::of(&[]).block_only();
    let _ = sys::kill(std::process::id() as i32, signal);
    sys::exit_now(128 + signal)
}

/// Memory with these bytes whose length nobody can change.
pub fn memory_to_write(name: &CStr, bytes: &[u8]) -> io::Result<OwnedFd> {
    use std::io::Write as _;
    // SAFETY: `name` ends with a zero byte.
    let fd = check(unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) })?;
    // SAFETY: a new descriptor that nobody else owns.
    let mut file = std::fs::File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    file.write_all(bytes)?;
    let seals = libc::F_SEAL_SEAL | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
    // SAFETY: no memory is passed.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
    Ok(file.into())
}

/// The same description at a number where programs do not look: those that need it get it under the same one.
pub fn out_of_the_way(fd: OwnedFd) -> io::Result<OwnedFd> {
    let (soft, _) = sys::descriptor_limits()?;
    let lowest = soft.saturating_sub(64).min(900) as i32;
    // SAFETY: no memory is passed.
    let moved = check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, lowest) })?;
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(moved) })
}

/// Closes all descriptors but the standard error output and those to `keep`; the other standard streams lead nowhere then.
/// For a process that uses no others any more.
pub fn let_go_of_others(keep: &[RawFd]) -> io::Result<()> {
    let nowhere = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    sys::replace(libc::STDIN_FILENO, &nowhere)?;
    sys::replace(libc::STDOUT_FILENO, &nowhere)?;
    drop(nowhere);
    let mut keep = keep.to_vec();
    keep.sort_unstable();
    let mut from = libc::STDERR_FILENO + 1;
    for kept in keep.into_iter().chain([RawFd::MAX]) {
        if kept > from {
            // SAFETY: no memory is passed; the caller says that nobody uses them.
            unsafe { libc::syscall(libc::SYS_close_range, from, kept - 1, 0) };
        }
        from = kept.saturating_add(1);
    }
    Ok(())
}

/// Starts `command` in our process group, with this signal mask. The kernel kills it when we are gone.
pub fn spawn_beside(command: &mut std::process::Command, mask: SignalSet) -> io::Result<u32> {
    // Where it is ignored nobody is told of the end of a child. The program gets it as we got it.
    let ignored = sys::is_ignored(libc::SIGCHLD);
    sys::reset_signal(libc::SIGCHLD);
    let as_before = move || {
        if ignored {
            // SAFETY: no handler is installed.
            unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
        }
        mask.block_only().map(drop)
    };
    // SAFETY: system calls, and no memory is asked for: fit to run between fork and exec.
    unsafe { command.pre_exec(as_before) };
    sys::spawn(command, Apart::Beside)
}

/// A process of our group that blocks all signals, as its maker does, and waits for its end. While a signal is sent to a group
/// the kernel makes no process: what had come to us when one is made had come to those before it, too, and does not come to it.
pub struct Witness {
    pid: i32,
}

impl Witness {
    pub fn start() -> io::Result<Self> {
        let us = std::process::id() as i32;
        match sys::fork()? {
            sys::Fork::Parent { child } => Ok(Self { pid: child }),
            sys::Fork::Child => {
                // SAFETY: numbers only; this process uses no descriptor, and ends here.
                unsafe {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                    libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0);
                    while libc::getppid() == us {
                        libc::pause();
                    }
                }
                sys::exit_now(0)
            }
        }
    }

    /// The signals that have come to it, as bits.
    pub fn signals(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
        pending.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = sys::kill(self.pid, libc::SIGKILL);
        let _ = sys::status_of(self.pid);
    }
}

/// The process group of this process, or of ourselves for 0.
pub fn group_of(pid: i32) -> i32 {
    // SAFETY: numbers only.
    unsafe { libc::getpgid(pid) }
}

/// Whether whoever started us is a shell with job control: it has the same session, and has put us in another group.
pub fn has_shell() -> bool {
    // SAFETY: numbers only.
    unsafe {
        let parent = libc::getppid();
        libc::getsid(parent) == libc::getsid(0) && libc::getpgid(parent) != libc::getpgrp()
    }
}

/// The terminal of our session, if it has one.
pub fn terminal() -> Option<std::fs::File> {
    std::fs::File::options().read(true).write(true).open("/dev/tty").ok()
}

/// The process group that has the terminal.
pub fn foreground(terminal: &impl AsRawFd) -> Option<i32> {
    // SAFETY: numbers only.
    check(unsafe { libc::tcgetpgrp(terminal.as_raw_fd()) }).ok()
}

/// Gives it to this group. All signals are blocked, so that this is allowed from the background, too.
pub fn give_terminal(terminal: &impl AsRawFd, group: i32) {
    // SAFETY: numbers only.
    unsafe { libc::tcsetpgrp(terminal.as_raw_fd(), group) };
}

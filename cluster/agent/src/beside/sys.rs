//! The system calls of a command that stays beside its program.

use crate::sys::{self, Apart, SignalSet, check};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt as _;
use weft_kernel::system_call;

/// What has become of this child since it was last asked for, if anything: its raw wait status, also where it has
/// stopped.
pub fn change_of(pid: i32) -> io::Result<Option<i32>> {
    Ok(sys::wait(pid, libc::WNOHANG | libc::WUNTRACED)?.map(|(_, status)| status))
}

/// Ends this process by `signal`, without an image of its memory: it is not ours that matters.
pub fn end_by_signal(signal: i32) -> ! {
    let _ = weft_kernel::set_limits(libc::RLIMIT_CORE, 0, 0);
    sys::reset_signal(signal);
    let _ = SignalSet::of(&[]).block_only();
    let _ = sys::kill(std::process::id() as i32, signal);
    sys::exit_now(128 + signal)
}

/// Closes all descriptors but the standard error output and those to `keep`; the other standard streams lead nowhere
/// then. For a process that uses no others any more.
pub fn let_go_of_others(keep: &[RawFd]) -> io::Result<()> {
    let nowhere = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    sys::replace(libc::STDIN_FILENO, &nowhere)?;
    sys::replace(libc::STDOUT_FILENO, &nowhere)?;
    drop(nowhere);
    weft_kernel::close_all_but(libc::STDERR_FILENO + 1, keep);
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
    sys::spawn(command, Apart::Beside, None)
}

/// A process of our group that blocks all signals, as its maker does, and waits for its end. While a signal is sent to
/// a group the kernel makes no process: what had come to us when one is made had come to those before it, too, and does
/// not come to it.
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
                    let _ = system_call!(libc::SYS_close_range, 0, u32::MAX, 0);
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

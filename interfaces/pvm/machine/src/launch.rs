//! How processes are started that are to end with their daemon, or to outlive who has started them.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use weft_kernel::{Descriptor, system_call};

/// The process is killed when this one ends, however that is.
pub fn end_with_us(command: &mut Command) {
    let us = std::process::id();
    let prepare = move || {
        // SAFETY: numbers only.
        unsafe {
            system_call!(libc::SYS_prctl, libc::PR_SET_PDEATHSIG, libc::SIGKILL)?;
            // We may have ended before.
            if system_call!(libc::SYS_getppid)? != us as usize {
                return Err(io::Error::other("the daemon has ended"));
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec it makes two system calls, and allocates in no case that goes on.
    unsafe { command.pre_exec(prepare) };
}

/// The process has a session of its own, and no terminal.
pub fn detached(command: &mut Command) {
    // SAFETY: it makes one system call.
    unsafe {
        command.pre_exec(|| {
            // SAFETY: no arguments.
            system_call!(libc::SYS_setsid).map(drop)
        })
    };
}

/// A descriptor that can be read when the process has ended.
pub fn end_of(pid: u32) -> io::Result<Descriptor> {
    // SAFETY: numbers only.
    unsafe { system_call!(libc::SYS_pidfd_open, pid, 0) }.map(|file| Descriptor::own(file as RawFd))
}

pub fn send_signal(pid: i32, signal: i32) {
    // SAFETY: numbers only.
    let _ = unsafe { system_call!(libc::SYS_kill, pid, signal) };
}

/// From now on what is printed goes elsewhere.
pub fn replace_standard_output(to: std::os::fd::BorrowedFd<'_>) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    // SAFETY: numbers only; the standard library looks at none of what it has printed.
    unsafe { system_call!(libc::SYS_dup3, to.as_raw_fd(), libc::STDOUT_FILENO, 0) }.map(drop)
}

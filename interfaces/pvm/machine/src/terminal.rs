//! A terminal of which keys are read one by one.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use weft_kernel::system_call;

/// Gives the terminal back as it was when dropped.
pub struct Keys {
    terminal: RawFd,
    before: libc::termios,
}

fn ask(terminal: RawFd) -> io::Result<libc::termios> {
    // SAFETY: plain data, for which zero is a value; the kernel fills what it knows of it.
    unsafe {
        let mut state: libc::termios = std::mem::zeroed();
        system_call!(libc::SYS_ioctl, terminal, libc::TCGETS, &raw mut state)?;
        Ok(state)
    }
}

fn set(terminal: RawFd, state: &libc::termios) -> io::Result<()> {
    // SAFETY: the kernel reads it during the call.
    unsafe { system_call!(libc::SYS_ioctl, terminal, libc::TCSETSW, std::ptr::from_ref(state)) }.map(drop)
}

impl Keys {
    /// # Errors
    /// It is no terminal.
    pub fn of(terminal: &impl AsRawFd) -> io::Result<Self> {
        let terminal = terminal.as_raw_fd();
        let before = ask(terminal)?;
        let mut state = before;
        state.c_lflag &= !(libc::ICANON | libc::ECHO);
        set(terminal, &state)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        let _ = set(self.terminal, &self.before);
    }
}

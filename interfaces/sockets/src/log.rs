//! Lines for people on the standard error output: the log of connections, and the sums at the end.
//!
//! Written by one system call from the stack: no allocation, no lock, usable in any hook.

use std::ffi::c_int;
use std::fmt::{Arguments, Write};

use weft_fabric::stream::{KernelReason, REASON_MEANINGS, Reason, Sums};

use super::meet::STREAMS;
use super::{raw, settings};

/// A line on the stack; what does not fit is cut off.
struct LogLine {
    bytes: [u8; 512],
    used: usize,
}

impl Write for LogLine {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let room = self.bytes.len() - 1 - self.used;
        let taken = text.len().min(room);
        self.bytes[self.used..self.used + taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.used += taken;
        Ok(())
    }
}

/// Writes one line.
pub fn line(text: Arguments<'_>) {
    line_into(libc::STDERR_FILENO, text);
}

fn line_into(file: c_int, text: Arguments<'_>) {
    let mut line = LogLine { bytes: [0; 512], used: 0 };
    let _ = write!(line, "weft: {}: {text}", raw::process());
    line.bytes[line.used] = b'\n';
    raw::write(file, &line.bytes[..=line.used]);
}

pub fn attached(fd: c_int) {
    if settings::log_level() >= 2 {
        line(format_args!("descriptor {fd}: accelerated"));
    }
}

pub fn fell_back(fd: c_int, cause: impl Into<KernelReason>) {
    let KernelReason { reason, option } = cause.into();
    // That a connection leaves the host is no news.
    if settings::log_level() >= if reason == Reason::NotLocal { 2 } else { 1 } {
        match option {
            Some(option) => line(format_args!("descriptor {fd}: stays with the kernel: {option}")),
            None => line(format_args!("descriptor {fd}: stays with the kernel: {}", REASON_MEANINGS[reason as usize])),
        }
    }
}

/// The sums of this process, at its end, where it belongs to no command that adds them up; none where it had no
/// sockets.
pub fn sums() {
    let sums = Sums { begun: 1, processes: 1, counters: STREAMS.counters().numbers(), ..Sums::default() };
    if sums.has_sockets() {
        settings::to_report(|file| sums.lines(|text| line_into(file, text)));
    }
}

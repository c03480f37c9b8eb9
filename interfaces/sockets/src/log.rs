//! Lines for people on the standard error output: the log of connections, and the sums at the end.
//!
//! Written by one system call from the stack: no allocation, no lock, usable in any hook.

use std::ffi::c_int;
use std::fmt::{Arguments, Write};
use std::sync::atomic::Ordering;

use weft_fabric::stream::{REASONS, Reason};

use super::meet::STREAMS;
use super::{raw, settings};

/// A line on the stack; what does not fit is cut off.
struct Line {
    bytes: [u8; 400],
    used: usize,
}

impl Write for Line {
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
    let mut line = Line { bytes: [0; 400], used: 0 };
    let _ = write!(line, "weft: {}: {text}", raw::process_id());
    line.bytes[line.used] = b'\n';
    raw::write(libc::STDERR_FILENO, &line.bytes[..=line.used]);
}

pub fn attached(fd: c_int) {
    if settings::log_level() >= 2 {
        line(format_args!("descriptor {fd}: accelerated"));
    }
}

pub fn fell_back(fd: c_int, reason: Reason) {
    // That a connection leaves the host is no news.
    if settings::log_level() >= if reason == Reason::NotLocal { 2 } else { 1 } {
        line(format_args!("descriptor {fd}: stays with the kernel: {}", meaning(reason)));
    }
}

/// What a reason means, in words.
pub fn meaning(reason: Reason) -> &'static str {
    match reason {
        Reason::NotLocal => "no TCP connection between two addresses of this host",
        Reason::Unreachable => "no rendezvous answers",
        Reason::Uncountable => "the kernel has carried bytes that were not seen",
        Reason::Option => "urgent data, or an option that only the kernel has",
        Reason::Stdio => "standard input and output on it",
        Reason::Exec => "it stays open over exec",
        Reason::Passed => "it was passed to another process",
        Reason::KernelCall => "the kernel itself moves its bytes",
        Reason::Peer => "the other side asked for it",
        Reason::Broken => "the other side broke the rules",
        Reason::Rule => "the settings exclude it",
        Reason::Resources => "no memory or no descriptors left",
    }
}

const ALL: [Reason; REASONS] = [
    Reason::NotLocal,
    Reason::Unreachable,
    Reason::Uncountable,
    Reason::Option,
    Reason::Stdio,
    Reason::Exec,
    Reason::Passed,
    Reason::KernelCall,
    Reason::Peer,
    Reason::Broken,
    Reason::Rule,
    Reason::Resources,
];

/// The sums of this process, at its end.
pub fn sums() {
    let counters = STREAMS.counters();
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    line(format_args!(
        "sockets: accelerated {}, ring bytes in {} out {}, kernel bytes in {} out {}, bells {}, sleeps {}",
        count(&counters.accelerated),
        count(&counters.bytes_ring_in),
        count(&counters.bytes_ring_out),
        count(&counters.bytes_kernel_in),
        count(&counters.bytes_kernel_out),
        count(&counters.bells),
        count(&counters.sleeps),
    ));
    let (datagrams_in, datagrams_out) = (count(&counters.datagrams_ring_in), count(&counters.datagrams_ring_out));
    if datagrams_in + datagrams_out > 0 {
        line(format_args!("sockets: datagrams by ring in {datagrams_in} out {datagrams_out}"));
    }
    for reason in ALL {
        let times = count(&counters.fallen_back[reason as usize]);
        if times > 0 {
            line(format_args!("sockets: stayed with the kernel {times}: {}", meaning(reason)));
        }
    }
}

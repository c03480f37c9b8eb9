//! What the kernel says of a process.

use serde::Serialize;
use std::fs::{read_dir, read_to_string};
use std::path::Path;

/// What a process does with its core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Cpu {
    Running,
    Sleeping,
    /// In the kernel, where no signal reaches it.
    Disk,
    Stopped,
    /// Dead, not collected by its parent.
    Zombie,
    /// There is no such process.
    Gone,
}

impl Cpu {
    /// The state of a process: running when any of its threads is, else that of its first.
    pub fn of(pid: u32) -> Self {
        let of = |path: &Path| Self::parse(&read_to_string(path.join("stat")).unwrap_or_default());
        let process = Path::new("/proc").join(pid.to_string());
        let threads = read_dir(process.join("task")).into_iter().flatten().flatten();
        let mut states = threads.map(|thread| of(&thread.path()));
        if states.any(|state| state == Self::Running) { Self::Running } else { of(&process) }
    }

    /// The state stands behind the name, which is in parentheses and may hold anything.
    fn parse(stat: &str) -> Self {
        let state = stat.rfind(')').and_then(|end| stat[end + 1..].trim_start().chars().next());
        match state {
            Some('R') => Self::Running,
            Some('D') => Self::Disk,
            Some('T' | 't') => Self::Stopped,
            Some('Z' | 'X') => Self::Zombie,
            Some(_) => Self::Sleeping,
            None => Self::Gone,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Sleeping => "sleeping",
            Self::Disk => "in kernel",
            Self::Stopped => "stopped",
            Self::Zombie => "dead",
            Self::Gone => "gone",
        }
    }
}

/// Nanoseconds since the machine was switched on, on the clock in which ranks tell since when they are blocked. Read
/// from the kernel's text, so exact to 10 ms.
pub fn uptime_ns() -> u64 {
    let text = read_to_string("/proc/uptime").unwrap_or_default();
    let seconds = text.split(' ').next().and_then(|seconds| seconds.parse::<f64>().ok());
    seconds.map_or(0, |seconds| (seconds * 1e9) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_found_behind_any_name() {
        assert_eq!(Cpu::parse("12 (a) R (b) c) T 1 2"), Cpu::Stopped);
        assert_eq!(Cpu::parse("12 (x) R 1"), Cpu::Running);
        assert_eq!(Cpu::parse(""), Cpu::Gone);
        assert_eq!(Cpu::of(std::process::id()), Cpu::Running);
    }
}

//! On what machine: a table of figures without this is worth nothing.

use crate::process::allowed_cpus;
use serde::Serialize;
use std::fs::read_to_string;
use std::time::{SystemTime, UNIX_EPOCH};

/// Ranks of the crowded lines, and the cores they share.
pub const CROWD: u32 = 8;
pub const CORES: u32 = 2;

#[derive(Clone, Debug, Default, Serialize)]
pub struct MeasuredMachine {
    pub cpu: String,
    pub virtual_machine: bool,
    /// Processors this run may use.
    pub cpus: usize,
    /// The ones that measuring jobs are confined to, on different cores where there are any.
    pub cpus_used: Vec<usize>,
    pub kernel: String,
    pub memory_bytes: u64,
    /// One-minute load average before the run: other work disturbs every figure.
    pub load_before: f64,
    pub date: String,
}

impl MeasuredMachine {
    pub fn look() -> Self {
        let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line = cpuinfo.lines().find(|l| l.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_string())
        };
        let allowed = allowed_cpus();
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        Self {
            cpu: field("model name").unwrap_or_else(|| "unknown processor".into()),
            virtual_machine: field("flags").is_some_and(|f| f.split(' ').any(|w| w == "hypervisor")),
            cpus: allowed.len(),
            cpus_used: different_cores(&allowed, core_of),
            kernel: read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().into(),
            memory_bytes: memory_bytes(&read_to_string("/proc/meminfo").unwrap_or_default()),
            load_before: load(),
            date: date(now_s),
        }
    }

    /// One line for headings.
    pub fn text(&self) -> String {
        format!(
            "{}{}, {} of {} processors, {} GiB, Linux {}",
            self.cpu,
            if self.virtual_machine { " (virtual machine)" } else { "" },
            self.cpus_used.len(),
            self.cpus,
            (self.memory_bytes as f64 / f64::from(1 << 30)).round(),
            self.kernel,
        )
    }
}

/// One-minute load average.
pub fn load() -> f64 {
    first_number(&read_to_string("/proc/loadavg").unwrap_or_default())
}

fn first_number(text: &str) -> f64 {
    text.split_whitespace().next().and_then(|w| w.parse().ok()).unwrap_or(0.0)
}

fn memory_bytes(meminfo: &str) -> u64 {
    let kib = meminfo.lines().find_map(|l| l.strip_prefix("MemTotal:")).map_or(0.0, first_number);
    kib as u64 * 1024
}

/// (package, core) of a processor.
fn core_of(cpu: usize) -> Option<(u64, u64)> {
    let number = |name: &str| {
        read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/topology/{name}")).ok()?.trim().parse().ok()
    };
    Some((number("physical_package_id")?, number("core_id")?))
}

/// The first `CORES` processors of different cores of one package; fewer cores give fewer processors, at least one.
fn different_cores(allowed: &[usize], core_of: impl Fn(usize) -> Option<(u64, u64)>) -> Vec<usize> {
    let mut chosen: Vec<usize> = Vec::new();
    for &cpu in allowed {
        let core = core_of(cpu);
        let fits = |other: &usize| match (core, core_of(*other)) {
            (Some(a), Some(b)) => a.0 == b.0 && a.1 != b.1,
            _ => true,
        };
        if chosen.len() < CORES as usize && chosen.iter().all(fits) {
            chosen.push(cpu);
        }
    }
    chosen
}

/// Civil date (UTC) of so many seconds since 1970-01-01, by counting whole years and months.
fn date(since_1970_s: u64) -> String {
    let leap = |y: u64| (y.is_multiple_of(4) && !y.is_multiple_of(100)) || y.is_multiple_of(400);
    let (mut day, mut year) = (since_1970_s / 86400, 1970);
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let mut month = 1;
    for days in [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_across_leap_years() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(951_782_400), "2000-02-29");
        assert_eq!(date(1_767_225_599), "2025-12-31");
        assert_eq!(date(1_767_225_600), "2026-01-01");
    }

    #[test]
    fn hyperthreads_of_one_core_are_not_taken_for_two_cores() {
        let smt = |cpu: usize| Some((0, cpu as u64 % 4));
        assert_eq!(different_cores(&[0, 4, 1, 5], smt), [0, 1]);
        assert_eq!(different_cores(&[2, 6], smt), [2]);
    }

    #[test]
    fn both_processors_are_of_one_package() {
        let packages = |cpu: usize| Some((cpu as u64 % 2, cpu as u64 / 2));
        assert_eq!(different_cores(&[0, 1, 2, 3], packages), [0, 2]);
    }

    #[test]
    fn the_machine_of_this_test_is_described() {
        let m = MeasuredMachine::look();
        assert!(m.cpus >= 1 && !m.cpus_used.is_empty() && m.memory_bytes > 0 && !m.kernel.is_empty(), "{m:?}");
    }
}

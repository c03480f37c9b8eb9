//! What a daemon says of its host again and again: how much there is to do, and which jobs were started here.

use serde::{Deserialize, Serialize};
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};
use weft_requests::{JobView, LoadView};

/// Daemons say how their hosts are so often, and at once when somebody changes their slots.
pub const EVERY: std::time::Duration = std::time::Duration::from_secs(1);

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostReport {
    pub member: String,
    /// What it takes now.
    pub slots: usize,
    pub load: LoadView,
    /// What is wrong with its database, if something is.
    pub trouble: Option<String>,
    pub jobs: Vec<RunningJob>,
}

/// A job whose launcher is on this host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunningJob {
    pub view: JobView,
    /// When it ends at the latest, in seconds since 1970.
    pub until: Option<u64>,
}

/// How this host is; what the kernel does not say is left out.
pub fn load(version: u64) -> LoadView {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let memory = text("/proc/meminfo");
    LoadView {
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        load: text("/proc/loadavg").split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0),
        pressure: pressure(&text("/proc/pressure/cpu")),
        memory_bytes: kib(&memory, "MemTotal:") << 10,
        free_bytes: kib(&memory, "MemAvailable:") << 10,
        weft: env!("CARGO_PKG_VERSION").to_owned(),
        version,
    }
}

/// The average of ten seconds.
fn pressure(text: &str) -> Option<f64> {
    text.strip_prefix("some avg10=")?.split(' ').next()?.parse().ok()
}

fn kib(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_read() {
        assert_eq!(pressure("some avg10=12.50 avg60=3.00 avg300=0.00 total=1\n"), Some(12.5));
        assert_eq!(pressure(""), None);
        assert_eq!(kib("MemTotal:       24000 kB\nMemFree: 1 kB\n", "MemTotal:"), 24000);
        let here = load(3);
        assert!(here.cores > 0 && here.memory_bytes > here.free_bytes && here.version == 3);
    }
}

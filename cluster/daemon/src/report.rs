//! What a daemon says of its host again and again: how much there is to do, and which jobs were started here.

use serde::{Deserialize, Serialize};
use std::fs;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use weft_requests::{JobView, LoadView};

/// Daemons look so often whether there is something to tell, and at once when somebody changes their slots.
pub const EVERY: Duration = Duration::from_secs(1);

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
    /// Which text of its version its database is; 0 where that is not said.
    #[serde(default)]
    pub text: u64,
}

impl HostReport {
    /// Whether this is no news to somebody who has heard that: small changes of the load are none.
    pub fn says_the_same(&self, that: &Self) -> bool {
        let (one, other) = (&self.load, &that.load);
        let near = |one: f64, other: f64, step: f64| (one - other).abs() < step;
        let facts = |report: &Self| (report.slots, report.load.cores, report.load.memory_bytes, report.load.version);
        facts(self) == facts(that)
            && self.trouble == that.trouble
            && self.jobs == that.jobs
            && self.text == that.text
            && near(one.load, other.load, one.cores as f64 / 4.0)
            && near(one.free_bytes as f64, other.free_bytes as f64, one.memory_bytes as f64 / 16.0)
            && near(one.pressure.unwrap_or(0.0), other.pressure.unwrap_or(0.0), 10.0)
    }
}

/// A job whose launcher is on this host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunningJob {
    pub view: JobView,
    /// When it ends at the latest, in seconds since 1970.
    pub until: Option<u64>,
}

/// The kernel counts its load anew so often; more looks would show nothing new.
pub const LOADED: Duration = Duration::from_secs(5);

/// How this host is, but for the version of its database; what the kernel does not say is left out.
pub fn load() -> LoadView {
    // To count them takes longer than all the rest.
    static CORES: LazyLock<usize> = LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let memory = text("/proc/meminfo");
    LoadView {
        cores: *CORES,
        load: text("/proc/loadavg").split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0),
        pressure: pressure(&text("/proc/pressure/cpu")),
        memory_bytes: kib(&memory, "MemTotal:") << 10,
        free_bytes: kib(&memory, "MemAvailable:") << 10,
        weft: env!("CARGO_PKG_VERSION").to_owned(),
        version: 0,
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
        let here = load();
        assert!(here.cores > 0 && here.memory_bytes > here.free_bytes);
    }

    #[test]
    fn little_more_to_do_is_no_news_and_another_job_is() {
        let load = LoadView { cores: 8, load: 1.0, memory_bytes: 16 << 30, ..LoadView::default() };
        let before = HostReport { member: "a".to_owned(), slots: 8, load, trouble: None, jobs: Vec::new(), text: 1 };
        let changed = |change: fn(&mut HostReport)| {
            let mut after = before.clone();
            change(&mut after);
            !before.says_the_same(&after)
        };
        assert!(!changed(|report| report.load.load = 2.9));
        assert!(changed(|report| report.load.load = 3.1));
        assert!(changed(|report| report.load.free_bytes = 2 << 30));
        assert!(changed(|report| report.load.version = 1));
        assert!(changed(|report| report.text = 2));
        assert!(changed(|report| report.slots = 0));
        assert!(changed(|report| report.trouble = Some("its disk is full".to_owned())));
        let view = weft_requests::made::view(4, 0).jobs.remove(0);
        let mut after = before.clone();
        after.jobs.push(RunningJob { view, until: None });
        assert!(!before.says_the_same(&after));
    }
}

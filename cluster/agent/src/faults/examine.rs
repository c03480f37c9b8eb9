//! What an examiner does: a child of the keeper that reads what may be anything, and says what it has found in a few
//! lines.

use super::CorePattern;
use crate::sys;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use weft_backtrace::{StackFrame, ThreadRegisters};
use weft_cluster::failure::FailureReport;
use weft_wire::distress::{self, DistressCall};

/// Of memory and of processor time, in bytes and seconds.
const MEMORY_MAX: u64 = 4 << 30;
const SECONDS_MAX: u64 = 20;
/// A core that was written just before the job began is of another one; clocks of file systems are not that exact.
const CLOCK_ERROR: Duration = Duration::from_secs(2);

/// Lives as the examiner.
pub fn live(report: OwnedFd, look: impl FnOnce() -> FailureReport) -> ! {
    let _ = sys::die_with_parent();
    let _ = weft_kernel::set_limits(libc::RLIMIT_AS, MEMORY_MAX, MEMORY_MAX);
    let _ = weft_kernel::set_limits(libc::RLIMIT_CPU, SECONDS_MAX, SECONDS_MAX);
    let _ = weft_kernel::set_limits(libc::RLIMIT_CORE, 0, 0);
    sys::set_name(c"weft-examiner");
    // The end of the keeper's link must show to the launcher when the keeper goes.
    weft_kernel::close_all_but(libc::STDERR_FILENO + 1, &[report.as_raw_fd()]);
    let found = look();
    let _ = File::from(report).write_all(found.encode().as_bytes());
    sys::exit_now(0)
}

/// The process stands still, and goes on when it is released.
pub fn look_at_process(call: &DistressCall) -> FailureReport {
    let processor = if call.processor == distress::ARM { 183 } else { 62 };
    let registers = ThreadRegisters::of_numbers(processor, &call.registers, call.instruction);
    let frames = registers.and_then(|registers| weft_backtrace::of_process(call.pid, &registers).ok());
    release(call);
    report(frames.unwrap_or_default())
}

/// Lets the process go on, to its end.
pub fn release(call: &DistressCall) {
    let memory = File::options().write(true).open(format!("/proc/{}/mem", call.pid));
    // Otherwise it waits until it has waited long enough.
    let _ = memory.and_then(|memory| memory.write_all_at(&1u32.to_le_bytes(), call.release));
}

fn report(frames: Vec<StackFrame>) -> FailureReport {
    let failed = weft_backtrace::FailedThread { frames, ..Default::default() };
    FailureReport {
        function: failed.function().map(str::to_owned),
        frames: failed.frames.iter().map(ToString::to_string).collect(),
        ..FailureReport::default()
    }
}

/// Looking for the core of a rank that has ended.
pub struct CoreHunt {
    pub pid: i32,
    /// The kernel says that it has written one.
    pub dumped: bool,
    /// Where the rank started.
    pub start: PathBuf,
    pub since: SystemTime,
    /// The directory that it is to be moved to.
    pub to: Option<PathBuf>,
    /// Whether it is missed where there is none.
    pub says_why_not: bool,
    /// Whether it is read.
    pub looks: bool,
    /// Whether the limit lets there be one.
    pub may_be: bool,
}

impl CoreHunt {
    pub fn run(self) -> FailureReport {
        let pattern = CorePattern::of_this_host();
        match (self.find(&pattern), &self.to) {
            (Some(core), to) => {
                let looked = self.looks.then(|| weft_backtrace::of_core(&core).ok()).flatten();
                let mut found = looked.map(|failed| report(failed.frames)).unwrap_or_default();
                match to.as_ref().map(|to| moved(&core, to)) {
                    None => found.core = Some(core.display().to_string()),
                    Some(Ok(place)) => found.core = Some(place.display().to_string()),
                    Some(Err(why)) => {
                        found.note = Some(why);
                        found.core = Some(core.display().to_string());
                    }
                }
                found
            }
            (None, Some(_)) if self.says_why_not => {
                FailureReport { note: Some(self.why_not(&pattern)), ..FailureReport::default() }
            }
            (None, _) => FailureReport::default(),
        }
    }

    /// The newest core that is of this rank, or of what a wrapper has run in its group or session.
    fn find(&self, pattern: &CorePattern) -> Option<PathBuf> {
        let mut found: Vec<(SystemTime, PathBuf)> = Vec::new();
        for path in pattern.candidates(&self.start) {
            let Ok(changed) = path.metadata().and_then(|data| data.modified()) else { continue };
            if changed + CLOCK_ERROR < self.since {
                continue;
            }
            let is_its = |head: weft_backtrace::CoreHead| [head.pid, head.group, head.session].contains(&self.pid);
            if weft_backtrace::core::head(&path).is_ok_and(is_its) {
                found.push((changed, path));
            }
        }
        found.into_iter().max().map(|(_, path)| path)
    }

    fn why_not(&self, pattern: &CorePattern) -> String {
        match pattern {
            CorePattern::Piped(program) if self.dumped => {
                format!(
                    "this host pipes cores to '{program}' (kernel.core_pattern), so its core is there and not in a file"
                )
            }
            _ if !self.may_be => "no core was written: the limit for cores is 0 (ulimit -Hc)".to_owned(),
            CorePattern::Piped(program) => {
                format!("no core: this host pipes cores to '{program}' (kernel.core_pattern)")
            }
            CorePattern::File { text, .. } if self.dumped => {
                let place = self.start.display();
                format!(
                    "its core was not found in '{place}' (kernel.core_pattern is '{text}', and it may have gone elsewhere)"
                )
            }
            CorePattern::File { .. } => "the kernel has written no core of it".to_owned(),
        }
    }
}

/// Moves a core into a directory, or copies it where that is on another file system.
fn moved(core: &Path, to: &Path) -> Result<PathBuf, String> {
    let failed = |error: std::io::Error| format!("its core cannot be moved to '{}': {error}", to.display());
    std::fs::create_dir_all(to).map_err(failed)?;
    let place = to.join("core");
    if std::fs::rename(core, &place).is_err() {
        std::fs::copy(core, &place).map_err(failed)?;
        // What stays of it is one file too many, and no reason to say that it is not there.
        let _ = std::fs::remove_file(core);
    }
    Ok(std::fs::canonicalize(&place).unwrap_or(place))
}

//! `weft time`: a command, and what it and the ranks of all jobs that it starts have used, on all hosts.
//!
//! What this host's kernel has counted for the command holds the ranks that ran here, below their launchers; ranks of
//! other hosts it does not hold, or holds as well where a "host" is a container of this machine. So what launchers had
//! below them is taken off, and what their ranks have used is added, which is the same wherever they ran.

use clap::Args;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;
use weft_agent::beside;
use weft_agent::told::Told;
use weft_cluster::job::Program;
use weft_records::show::bytes;
use weft_records::total::{HostTotal, JobTotal};

const FRONT: &str = "weft time";

/// What `weft time --help` begins with.
pub const LONG_ABOUT: &str = "\
Runs a command, and then says on standard error how long it took and what it has used: as time(1) does, with the ranks \
of all jobs that the command has started, on all hosts, whether by weft run or mpiexec, in a script, or by a program's \
own name (WEFT_RANKS, WEFT_PARTITION):
  weft time weft run --hosts node1:4,node2:4 ./program
  WEFT_PARTITION=night weft time ./program

Jobs that still run when the command has ended are not counted. The exit code is that of the command.";

/// Options of `weft time`.
#[derive(Args)]
pub struct TimeArguments {
    /// A line for each host as well
    #[arg(short, long)]
    verbose: bool,

    /// Write JSON
    #[arg(long)]
    json: bool,

    /// Write to this file and not to standard error
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What a command has used.
#[derive(Debug, PartialEq, serde::Serialize)]
struct UsedTimes {
    real_seconds: f64,
    user_seconds: f64,
    system_seconds: f64,
    /// Of the largest rank, or of the largest process where no job was started.
    peak_bytes: u64,
    jobs: usize,
    ranks: usize,
    hosts: std::collections::BTreeMap<String, HostTotal>,
}

/// Runs the command, and ends as it does.
pub fn main(given: &TimeArguments) -> i32 {
    let wanted = Program { program: given.command[0].to_string_lossy().into_owned(), ..Program::default() };
    let path = match weft_agent::find(&wanted) {
        Ok(path) => path,
        Err(error) => return fail(error.exit_code(), &error),
    };
    let output = match given.output.as_ref().map(|path| (path, File::create(path))) {
        Some((path, Err(error))) => {
            return fail(1, &format!("the file '{}' cannot be written: {error}", path.display()));
        }
        Some((_, Ok(file))) => Some(file),
        None => None,
    };
    let told = match Told::new() {
        Ok(told) => told,
        Err(error) => return fail(1, &format!("no memory for what launchers tell: {error}")),
    };
    let mut command = Command::new(&path);
    let (name, value) = told.variable();
    command.arg0(&given.command[0]).args(&given.command[1..]).env(name, value);
    let keep = [Some(told.descriptor()), output.as_ref().map(AsRawFd::as_raw_fd)];
    let begun = Instant::now();
    let end = match beside::run_plain(&mut command, &keep.into_iter().flatten().collect::<Vec<_>>()) {
        Ok(end) => end,
        Err(error) => return fail(126, &format!("program '{}' cannot be started: {error}", path.display())),
    };
    let real = begun.elapsed().as_secs_f64();
    let times = UsedTimes::new(real, beside::used(), told.total().unwrap_or_default());
    let text = if given.json { times.json() } else { times.text(given.verbose) };
    // Nobody is left to be told where it cannot be written.
    let _ = match output {
        Some(mut file) => file.write_all(text.as_bytes()),
        None => std::io::stderr().write_all(text.as_bytes()),
    };
    // What outlives the command would tell nobody any more.
    drop(told);
    end.imitate()
}

fn fail(code: i32, error: &dyn std::fmt::Display) -> i32 {
    eprintln!("{FRONT}: {error}");
    code
}

impl UsedTimes {
    /// `used`: user and system time of the command on this host, in microseconds, and its largest process.
    fn new(real_seconds: f64, (used, largest): ([u64; 2], u64), total: JobTotal) -> Self {
        let ranks = [total.user_us, total.system_us];
        let seconds = |kind: usize| {
            let own = used[kind].saturating_sub(total.below_launchers_us[kind]);
            own.saturating_add(ranks[kind]) as f64 / 1e6
        };
        Self {
            real_seconds,
            user_seconds: seconds(0),
            system_seconds: seconds(1),
            peak_bytes: if total.jobs > 0 { total.peak_bytes } else { largest },
            jobs: total.jobs,
            ranks: total.ranks,
            hosts: total.hosts,
        }
    }

    fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }

    fn text(&self, by_host: bool) -> String {
        let line = |name: &str, seconds: f64| format!("{name}\t{}m{:.3}s\n", seconds as u64 / 60, seconds % 60.0);
        let mut text = String::from("\n");
        text += &line("real", self.real_seconds);
        text += &line("user", self.user_seconds);
        text += &line("sys", self.system_seconds);
        let whose = if self.jobs > 0 { "largest rank" } else { "largest process" };
        text += &format!("peak\t{} ({whose})\n", bytes(self.peak_bytes));
        if by_host {
            use crate::counted::counted;
            text += &format!("jobs\t{}, {}\n", self.jobs, counted(self.ranks, "rank"));
            for (name, HostTotal { ranks, user_us, system_us, peak_bytes }) in &self.hosts {
                let [user, system] = [user_us, system_us].map(|us| *us as f64 / 1e6);
                let ranks = counted(*ranks, "rank");
                let peak = bytes(*peak_bytes);
                text += &format!("host\t{name}: {ranks}, user {user:.3} s, sys {system:.3} s, largest {peak}\n");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total() -> JobTotal {
        let host = HostTotal { ranks: 2, user_us: 1_500_000, system_us: 0, peak_bytes: 1 << 20 };
        JobTotal {
            jobs: 1,
            ranks: 4,
            user_us: 3_000_000,
            system_us: 250_000,
            peak_bytes: 2 << 20,
            hosts: [("a".to_owned(), host), ("b".to_owned(), host)].into(),
            below_launchers_us: [1_500_000, 100_000],
        }
    }

    #[test]
    fn ranks_count_once_wherever_they_ran() {
        // Of the launcher's two seconds, half of its ranks' time was counted here, too.
        let times = UsedTimes::new(61.5, ([2_000_000, 100_000], 9 << 20), total());
        assert_eq!((times.user_seconds, times.system_seconds, times.peak_bytes), (3.5, 0.25, 2 << 20));
        let text = times.text(true);
        let wanted =
            "\nreal\t1m1.500s\nuser\t0m3.500s\nsys\t0m0.250s\npeak\t2.0 MiB (largest rank)\njobs\t1, 4 ranks\n";
        assert!(text.starts_with(wanted), "{text}");
        assert!(text.contains("host\tb: 2 ranks, user 1.500 s, sys 0.000 s, largest 1.0 MiB\n"), "{text}");
        assert!(!times.text(false).contains("host"));
    }

    #[test]
    fn a_command_without_jobs_is_timed_as_ever() {
        let times = UsedTimes::new(1.0, ([5_000, 0], 3 << 20), JobTotal::default());
        assert_eq!((times.user_seconds, times.peak_bytes, times.ranks), (0.005, 3 << 20, 0));
    }
}

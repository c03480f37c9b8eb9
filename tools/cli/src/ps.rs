//! `weft ps`: the jobs of this user on this host, and what each rank is doing.
//!
//! The ranks do not help: their status pages stand in the job's shared memory, which is found through `/proc` and read
//! like a file. What stands there is a claim of a program that may be broken, and is treated as one.

mod find;
mod process;
mod read;
mod show;

use anyhow::{Context, Result, ensure};
use read::Job;
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// Options of `weft ps`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Show again and again, every so many seconds, until Ctrl-C
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1")]
    watch: Option<f64>,

    /// Write JSON, with every counter (with --watch: one line each time)
    #[arg(long)]
    json: bool,

    /// A line for each rank, however many there are
    #[arg(long, conflicts_with = "json")]
    all: bool,
}

/// Jobs with more ranks than this are shown in groups of ranks that do the same.
const RANKS_SINGLY: usize = 16;

/// Prints what runs now; with `--watch`, until interrupted.
pub fn run(given: Arguments) -> Result<i32> {
    let Some(seconds) = given.watch else {
        print(&given, &snapshot()?, false)?;
        return Ok(0);
    };
    ensure!((0.05..=86_400.0).contains(&seconds), "--watch is '{seconds}', allowed are 0.05 to 86400 seconds");
    let in_place = std::io::stdout().is_terminal() && !given.json;
    loop {
        if print(&given, &snapshot()?, in_place).is_err() {
            // Nobody reads any more.
            return Ok(0);
        }
        std::thread::sleep(Duration::from_secs_f64(seconds));
    }
}

fn snapshot() -> Result<Vec<Job>> {
    let mut jobs: Vec<Job> =
        find::segments().context("cannot look for processes in /proc")?.iter().map(Job::read).collect();
    jobs.sort_by(|a, b| (a.started_ns, &a.name).cmp(&(b.started_ns, &b.name)));
    Ok(jobs)
}

fn print(given: &Arguments, jobs: &[Job], in_place: bool) -> Result<()> {
    let text = match given.json {
        true if given.watch.is_some() => serde_json::to_string(jobs)? + "\n",
        true => serde_json::to_string_pretty(jobs)? + "\n",
        false => show::text(jobs, if given.all { usize::MAX } else { RANKS_SINGLY }),
    };
    let text = if in_place { over_the_last(&text) } else { text };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// The text in the place of the one before: from the top, line by line, the rest cleared. Nothing of the terminal is
/// changed that would have to be restored, so it does not matter how this program ends.
fn over_the_last(text: &str) -> String {
    format!("\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n"))
}

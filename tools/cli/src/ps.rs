//! `weft ps`: the jobs of this user on this host, and what each rank is doing.

mod show;
mod sockets;

use anyhow::{Context, Result};
use std::io::{IsTerminal, Write};
use std::time::Duration;
use weft_ranks::{SeenJob, Whose, segments};
use weft_wire::status::{COUNTERS, Counter};

/// Options of `weft ps`.
#[derive(clap::Args)]
pub struct PsArguments {
    /// Show again and again, every so many seconds, until Ctrl-C
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", value_parser = parse_seconds)]
    watch: Option<f64>,

    /// Write JSON, with every counter (with --watch: one line each time)
    #[arg(long)]
    json: bool,

    /// A line for each rank, however many there are
    #[arg(long, conflicts_with = "json")]
    all: bool,

    /// Show the network connections that go over shared memory (see weft sock), and why others do not
    #[arg(long, conflicts_with = "all")]
    sockets: bool,

    /// Show all hosts and jobs of the cluster, and what waits; its daemons know
    #[arg(long, conflicts_with_all = ["all", "sockets"])]
    cluster: bool,
}

/// What `weft ps --help` ends with.
pub fn after_help() -> String {
    let line = |counter: &Counter| format!("  {:<20}  {counter}\n", counter.name);
    format!("Counters of a rank (--json):\n{}", COUNTERS.iter().map(line).collect::<String>())
}

/// Jobs with more ranks than this are shown in groups of ranks that do the same.
const RANKS_SINGLY: usize = 16;

fn parse_seconds(given: &str) -> Result<f64, String> {
    let seconds = given.parse().ok().filter(|seconds| (0.05..=86_400.0).contains(seconds));
    seconds.ok_or_else(|| "accepted are 0.05 to 86400 seconds".to_owned())
}

/// Prints what runs now; with `--watch`, until interrupted.
pub fn run(given: PsArguments) -> Result<i32> {
    if given.cluster {
        crate::ask::say_whose();
    }
    let Some(seconds) = given.watch else {
        show(&given, false)?;
        return Ok(0);
    };
    let in_place = std::io::stdout().is_terminal() && !given.json;
    loop {
        show(&given, in_place)?;
        std::thread::sleep(Duration::from_secs_f64(seconds));
    }
}

fn snapshot() -> Result<Vec<SeenJob>> {
    let mut jobs: Vec<SeenJob> =
        segments(Whose::Own).context("cannot look for processes in /proc")?.iter().map(SeenJob::read).collect();
    jobs.sort_by(|a, b| (a.started_ns, &a.name).cmp(&(b.started_ns, &b.name)));
    Ok(jobs)
}

/// One look at what was asked for.
fn show(given: &PsArguments, in_place: bool) -> Result<()> {
    if given.sockets {
        let sockets = sockets::look()?;
        return print(given, &sockets, || sockets.text(), in_place);
    }
    if given.cluster {
        let view = crate::ask::look(given.json)?;
        return print(given, &view, || crate::ask::text(&view), in_place);
    }
    let jobs = snapshot()?;
    print(given, &jobs, || show::text(&jobs, if given.all { usize::MAX } else { RANKS_SINGLY }), in_place)
}

fn print(given: &PsArguments, what: &impl serde::Serialize, text: impl Fn() -> String, in_place: bool) -> Result<()> {
    let text = match given.json {
        true if given.watch.is_some() => serde_json::to_string(what)? + "\n",
        true => serde_json::to_string_pretty(what)? + "\n",
        false => text(),
    };
    let text = if in_place { over_the_last(&text) } else { text };
    print!("{text}");
    Ok(std::io::stdout().flush()?)
}

/// The text in the place of the one before: from the top, line by line, the rest cleared. Nothing of the terminal is
/// changed that would have to be restored, so it does not matter how this program ends.
fn over_the_last(text: &str) -> String {
    format!("\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_is_explained_with_its_unit() {
        let help = after_help();
        for Counter { name, unit, meaning } in COUNTERS {
            assert!(!unit.is_empty() && !meaning.is_empty(), "{name}");
            let line = help.lines().find(|line| line.trim_start().starts_with(&format!("{name} "))).expect(name);
            assert!(line.ends_with(&format!("{unit} {meaning}")), "{line}");
        }
    }
}

//! Runs the lines, each way by turns.

use super::SockArgs;
use super::lines::{self, Job, Line, Way};
use super::programs::{self, Programs};
use super::report::{LineReport, Report};
use crate::lines::Unit;
use crate::machine::Machine;
use crate::{limits, process};
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const SOURCE: &str = include_str!("../../c/sockbench.c");

/// What all jobs of a run need.
pub struct Bench {
    /// The pair program.
    pub pairs: PathBuf,
    pub machine: Machine,
    pub seconds: f64,
    /// `weft`, `None` when the kernel is measured alone.
    weft: Option<PathBuf>,
    programs: Programs,
}

impl Bench {
    /// The beginning of a command that runs `program` in this way.
    pub fn words(&self, way: Way, program: &Path) -> Vec<std::ffi::OsString> {
        let mut words = Vec::new();
        if let (Way::Weft, Some(weft)) = (way, &self.weft) {
            words.extend([weft.into(), "sock".into(), "--".into()]);
        }
        words.push(program.into());
        words
    }

    fn measure(&self, line: &Line, way: Way) -> anyhow::Result<f64> {
        match line.job {
            Job::Pair { what, wait, bytes } => self.measure_pair(line, way, what, wait, bytes),
            job => programs::measure(self, &self.programs, job, way),
        }
    }

    fn measure_pair(&self, line: &Line, way: Way, what: &str, wait: &str, bytes: u64) -> anyhow::Result<f64> {
        let wait = if way == Way::Polled { "spin" } else { wait };
        let family = if way == Way::Unix { "unix" } else { "tcp" };
        let cpu = |at: Option<&usize>| at.copied().unwrap_or(0).to_string();
        let words = self.words(way, &self.pairs);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args([what, wait, family, &bytes.to_string(), &self.seconds.to_string()]);
        command.args([cpu(self.machine.cpus_used.first()), cpu(self.machine.cpus_used.last())]);
        let outcome = process::run(command, self.limit())?;
        outcome.check()?;
        let value = figure(&outcome.stdout, line.figure)?;
        // A stream is measured in bytes, and may be shown in calls.
        let calls = what == "stream" && line.unit == Unit::PerSecond;
        Ok(if calls { value / bytes as f64 } else { value })
    }

    /// After which a job counts as hanging.
    pub fn limit(&self) -> Duration {
        Duration::from_secs_f64(60.0 + 20.0 * self.seconds)
    }
}

/// The value that a job printed under this name.
pub fn figure(stdout: &str, name: &str) -> anyhow::Result<f64> {
    let mut lines = stdout.lines().filter_map(|line| line.strip_prefix("figure "));
    let values = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let value = values.and_then(|rest| rest.split(' ').next()?.parse().ok());
    value.with_context(|| format!("no figure {name:?} in {:?}", stdout.trim()))
}

/// Measures every line that is wanted.
pub fn run(args: &SockArgs) -> anyhow::Result<Report> {
    let wanted: Vec<Line> = lines::all().into_iter().filter(|line| args.wants(line.id)).collect();
    if wanted.is_empty() {
        bail!("no line begins with {}; --list shows them all", args.only.join(" or "));
    }
    let folder = tempfile::tempdir().context("a temporary folder")?;
    let machine = Machine::look();
    let weft = if args.kernel_only { None } else { Some(weft(args)?) };
    let bench = Bench {
        pairs: compile(folder.path())?,
        programs: Programs::look(folder.path())?,
        seconds: args.line_seconds(),
        machine,
        weft,
    };
    let limits = limits::compile(folder.path())?;
    let mut cache_line = limits::all();
    let mut left_out = Vec::new();
    let mut lines: Vec<(Line, BTreeMap<Way, Vec<f64>>)> = Vec::new();
    for line in wanted {
        match bench.programs.missing(line.job) {
            Some(program) => left_out.push(format!("{}: {program} is not installed", line.title)),
            None => lines.push((line, BTreeMap::new())),
        }
    }
    let mut failures = Vec::new();
    for turn in 0..args.turns() {
        limits::measure(&limits, &bench.machine, bench.seconds.min(0.2), &mut cache_line)?;
        take_turn(&bench, turn, args.turns(), &mut lines, &mut failures)?;
    }
    let cache_line_s = limits::against(&cache_line).cache_line_s;
    let lines = lines.iter().map(|(line, samples)| LineReport::of(line, samples.clone(), cache_line_s)).collect();
    Ok(Report {
        machine: bench.machine,
        turns: args.turns(),
        seconds: bench.seconds,
        cache_line_s,
        lines,
        left_out,
        failures,
    })
}

/// One sample for each line and way. What failed once is not tried again.
fn take_turn(
    bench: &Bench,
    turn: u32,
    turns: u32,
    lines: &mut [(Line, BTreeMap<Way, Vec<f64>>)],
    failures: &mut Vec<String>,
) -> anyhow::Result<()> {
    for (line, samples) in lines {
        for &way in line.ways.iter().filter(|way| **way != Way::Weft || bench.weft.is_some()) {
            let what = format!("{}, {}", line.title, way.title());
            if failures.iter().any(|failure| failure.starts_with(&format!("{what}: "))) {
                continue;
            }
            eprintln!("turn {}/{turns}: {what}", turn + 1);
            process::check_interrupt()?;
            match bench.measure(line, way) {
                Ok(value) => samples.entry(way).or_default().push(value),
                Err(error) => failures.push(format!("{what}: {error:#}")),
            }
        }
    }
    Ok(())
}

fn weft(args: &SockArgs) -> anyhow::Result<PathBuf> {
    let weft = match &args.weft_prefix {
        Some(prefix) => prefix.join("bin/weft"),
        None => std::env::current_exe().context("this program's own file")?.with_file_name("weft"),
    };
    if !weft.is_file() {
        bail!("{} is missing; --weft-prefix says where Weft is installed", weft.display());
    }
    Ok(weft)
}

fn compile(folder: &Path) -> anyhow::Result<PathBuf> {
    let (source, program) = (folder.join("sockbench.c"), folder.join("sockbench"));
    std::fs::write(&source, SOURCE)?;
    let mut command = Command::new("cc");
    command.arg("-O2").arg(&source).arg("-o").arg(&program);
    process::run(command, Duration::from_secs(120))
        .and_then(|outcome| outcome.check())
        .context("cannot compile with cc")?;
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_by_their_whole_name() {
        let out = "noise\nfigure idle-memory 4096.5 B\nfigure idle-cpu 0.25 %\n";
        assert_eq!(figure(out, "idle-cpu").unwrap(), 0.25);
        assert_eq!(figure(out, "idle-memory").unwrap(), 4096.5);
        assert!(figure(out, "idle").is_err());
    }

    #[test]
    fn the_pair_program_measures_every_way_on_the_kernel() {
        let folder = tempfile::tempdir().unwrap();
        let bench = Bench {
            pairs: compile(folder.path()).unwrap(),
            programs: Programs::look(folder.path()).unwrap(),
            machine: Machine::look(),
            seconds: 0.02,
            weft: None,
        };
        for mut line in lines::all().into_iter().filter(|line| matches!(line.job, Job::Pair { .. })) {
            if let Job::Pair { what: "idle", bytes, .. } = &mut line.job {
                *bytes = 50;
            }
            for way in line.ways.iter().filter(|way| **way != Way::Weft) {
                let value = bench.measure(&line, *way).unwrap_or_else(|error| panic!("{} {way:?}: {error:#}", line.id));
                assert!(value > 0.0 || line.id.starts_with("idle"), "{} {way:?}: {value}", line.id);
            }
        }
    }
}

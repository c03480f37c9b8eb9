//! Runs the lines, each way by turns.

mod programs;

use super::SockArgs;
use super::lines::{self, SockJob, SockLine, SockWay};
use super::report::{Samples, SockLineReport, SockReport};
use crate::format::Unit;
use crate::machine::MeasuredMachine;
use crate::state::{self, Sample};
use crate::{limits, process, progress};
use anyhow::{Context, bail};
use indicatif::ProgressBar;
use programs::Programs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SOURCE: &str = include_str!("../../c/sockbench.c");
const HEADER: &str = include_str!("../../c/sockbench.h");

/// Lines that were not measured in one state so often as asked for get more turns only while a run is younger than
/// this.
const LONG: Duration = Duration::from_secs(600);
/// A piece of a turn is no shorter, if the turn is not: TCP must have found its pace.
const SHORTEST_S: f64 = 0.1;
/// Seconds after which the rendezvous that a run has started ends, when nobody is there.
const RENDEZVOUS_IDLE: &str = "20";

/// What all jobs of a run need.
pub struct SockBench {
    /// The pair program.
    pub pairs: PathBuf,
    pub machine: MeasuredMachine,
    pub seconds: f64,
    /// `weft`, `None` when the kernel is measured alone.
    weft: Option<PathBuf>,
    programs: Programs,
}

/// What a job printed, and its figure where that is not among it.
struct Printed {
    rate: Option<f64>,
    text: String,
}

impl SockBench {
    /// The beginning of a command that runs `program` in this way.
    pub fn words(&self, way: SockWay, program: &Path) -> Vec<std::ffi::OsString> {
        let mut words = Vec::new();
        if let (SockWay::Weft, Some(weft)) = (way, &self.weft) {
            words.extend([weft.into(), "sock".into(), "--".into()]);
        }
        words.push(program.into());
        words
    }

    /// The two processors of the run, as the pair program takes them.
    pub fn cpus(&self) -> [String; 2] {
        let cpu = |at: Option<&usize>| at.copied().unwrap_or(0).to_string();
        [cpu(self.machine.cpus_used.first()), cpu(self.machine.cpus_used.last())]
    }

    fn has(&self, way: SockWay) -> bool {
        way != SockWay::Weft || self.weft.is_some()
    }

    fn measure(&self, job: SockJob, way: SockWay) -> anyhow::Result<Printed> {
        match job {
            SockJob::Pair { what, wait, bytes } => {
                let seconds = (self.seconds / f64::from(job.pieces())).max(SHORTEST_S.min(self.seconds));
                self.measure_pair(way, [what, wait], bytes, seconds)
            }
            job => {
                programs::measure(self, &self.programs, job, way).map(|(rate, text)| Printed { rate: Some(rate), text })
            }
        }
    }

    fn measure_pair(&self, way: SockWay, [what, wait]: [&str; 2], bytes: u64, seconds: f64) -> anyhow::Result<Printed> {
        let wait = if way == SockWay::Polled { "spin" } else { wait };
        let family = if way == SockWay::Unix { "unix" } else { "tcp" };
        let words = self.words(way, &self.pairs);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args([what, wait, family, &bytes.to_string(), &seconds.to_string()]);
        command.args(self.cpus());
        let outcome = process::run(command, self.limit())?;
        outcome.check()?;
        Ok(Printed { rate: None, text: outcome.stdout })
    }

    /// After which a job counts as hanging.
    pub fn limit(&self) -> Duration {
        Duration::from_secs_f64(40.0 + 10.0 * self.seconds)
    }
}

/// The sample of a line in what its job printed.
fn sample(line: &SockLine, printed: &Printed) -> anyhow::Result<Sample> {
    let value = match printed.rate {
        Some(rate) => rate,
        None => figure(&printed.text, line.figure)?,
    };
    // A stream is measured in bytes, and may be shown in calls.
    let value = match line.job {
        SockJob::Pair { what: "stream", bytes, .. } if line.unit == Unit::PerSecond => value / bytes as f64,
        _ => value,
    };
    if !line.job.is_between_cores() {
        return Ok(Sample::plain(value));
    }
    let line_ns = |name| figure(&printed.text, name).map(|seconds| seconds * 1e9);
    Ok(Sample { value, line_ns_before: Some(line_ns("line-before")?), line_ns_after: Some(line_ns("line-after")?) })
}

/// The value that a job printed under this name.
pub fn figure(stdout: &str, name: &str) -> anyhow::Result<f64> {
    let mut lines = stdout.lines().filter_map(|line| line.strip_prefix("figure "));
    let values = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let value = values.and_then(|rest| rest.split(' ').next()?.parse().ok());
    value.with_context(|| format!("no figure {name:?} in {:?}", stdout.trim()))
}

/// A run under way.
struct SockRun {
    bench: SockBench,
    turns: u32,
    lines: Vec<(SockLine, Samples)>,
    failures: Vec<String>,
    bar: ProgressBar,
}

/// Measures every line that is wanted.
pub fn run(args: &SockArgs) -> anyhow::Result<SockReport> {
    let start = Instant::now();
    let wanted: Vec<SockLine> = lines::all().into_iter().filter(|line| args.wants(line.id)).collect();
    if wanted.is_empty() {
        bail!("no line begins with {}; --list shows them all", args.only.join(" or "));
    }
    let folder = tempfile::Builder::new().prefix("weft-bench-").tempdir().context("a temporary folder")?;
    let limits = limits::compile(folder.path())?;
    let bench = SockBench {
        pairs: compile(folder.path())?,
        programs: Programs::look(folder.path())?,
        seconds: args.line_seconds(),
        machine: MeasuredMachine::look(),
        weft: if args.kernel_only { None } else { Some(weft(args)?) },
    };
    let (mut lines, mut left_out) = (Vec::new(), Vec::new());
    for line in wanted {
        match bench.programs.missing(line.job) {
            Some(package) => left_out.push((line, package)),
            None => lines.push((line, Samples::new())),
        }
    }
    let mut run = SockRun { bench, turns: args.turns(), lines, failures: Vec::new(), bar: ProgressBar::hidden() };
    run.bar = progress::bar(run.samples_expected() as u64);
    let mut cache_line = limits::all();
    for turn in 0..run.turns {
        run.start_rendezvous()?;
        limits::measure(&limits, &run.bench.machine, run.bench.seconds.min(0.1), &mut cache_line)?;
        run.turn(turn, |_, _| true)?;
    }
    let turns_taken = run.more_turns(args.quick, start)?;
    run.bar.finish_and_clear();
    let shortest_ns = state::shortest_ns(run.lines.iter().flat_map(|(_, samples)| samples.values().flatten()));
    let report = |(line, samples): &(SockLine, Samples)| SockLineReport::of(line, samples, run.turns, shortest_ns);
    let mut lines: Vec<SockLineReport> = run.lines.iter().map(report).collect();
    lines.extend(left_out.iter().map(|(line, package)| SockLineReport::left_out(line, package)));
    Ok(SockReport {
        turns: run.turns,
        turns_taken,
        seconds: run.bench.seconds,
        took_s: start.elapsed().as_secs_f64(),
        cache_line_s: limits::against(&cache_line).cache_line_s,
        shortest_line_ns: shortest_ns.is_finite().then_some(shortest_ns),
        lines,
        failures: run.failures,
        machine: run.bench.machine,
    })
}

impl SockRun {
    /// Before the first job needs it, and outside of all jobs: a job that started it would be waited for until it ends.
    fn start_rendezvous(&self) -> anyhow::Result<()> {
        self.bench.weft.as_deref().map_or(Ok(()), start_rendezvous)
    }

    fn samples_expected(&self) -> usize {
        let ways = |line: &SockLine| line.ways.iter().filter(|way| self.bench.has(**way)).count();
        let turns = |line: &SockLine| if line.job.is_once() { 1 } else { (self.turns * line.job.pieces()) as usize };
        self.lines.iter().map(|(line, _)| ways(line) * turns(line)).sum()
    }

    /// After the turns asked for: more of them for the lines that were measured in changing states, all ways alike.
    /// Returns how many turns there were in all.
    fn more_turns(&mut self, quick: bool, start: Instant) -> anyhow::Result<u32> {
        let most = if quick { self.turns } else { state::MOST * self.turns };
        for turn in self.turns..most {
            let unsettled = self.lines.iter().filter(|(line, samples)| !is_settled(line, samples, self.turns));
            let unsettled: Vec<&str> = unsettled.map(|(line, _)| line.id).collect();
            if unsettled.is_empty() || start.elapsed() > LONG {
                return Ok(turn);
            }
            self.bar.inc_length(3 * unsettled.len() as u64);
            self.turn(turn, |line, _| unsettled.contains(&line.id))?;
        }
        Ok(most)
    }

    /// One sample for each way of the lines that are `wanted`. Lines of the same job share it.
    fn turn(&mut self, turn: u32, wanted: impl Fn(&SockLine, &Samples) -> bool) -> anyhow::Result<()> {
        let mut lines = std::mem::take(&mut self.lines);
        let mut result = Ok(());
        for same in lines.chunk_by_mut(|(a, _), (b, _)| a.job == b.job) {
            let once = same[0].0.job.is_once() && turn > 0;
            if once || !same.iter().any(|(line, samples)| wanted(line, samples)) {
                continue;
            }
            result = self.job_turn(turn, same);
            if result.is_err() {
                break;
            }
        }
        self.lines = lines;
        result
    }

    /// A job in each way. What failed once is not tried again; only an interrupt ends the run.
    fn job_turn(&mut self, turn: u32, lines: &mut [(SockLine, Samples)]) -> anyhow::Result<()> {
        let (ways, title) = (lines[0].0.ways, lines[0].0.title);
        let pieces = lines[0].0.job.pieces() as usize;
        for i in 0..pieces * ways.len() {
            // Nobody is always first.
            let way = ways[(i + i / ways.len() + turn as usize) % ways.len()];
            let what = format!("{title}, {}", way.title());
            if !self.bench.has(way) || self.failures.iter().any(|failure| failure.starts_with(&format!("{what}: "))) {
                continue;
            }
            progress::note(&self.bar, turn, &what);
            let result = self.take_samples(lines, way);
            process::check_interrupt()?;
            self.bar.inc(1);
            if let Err(error) = result {
                self.bar.suspend(|| eprintln!("{what} failed: {error:#}"));
                self.failures.push(format!("{what}: {error:#}"));
            }
        }
        Ok(())
    }

    fn take_samples(&self, lines: &mut [(SockLine, Samples)], way: SockWay) -> anyhow::Result<()> {
        let printed = self.bench.measure(lines[0].0.job, way)?;
        for (line, samples) in lines {
            samples.entry(way).or_default().push(sample(line, &printed)?);
        }
        Ok(())
    }
}

/// Starts the rendezvous where none answers.
pub fn start_rendezvous(weft: &Path) -> anyhow::Result<()> {
    let mut command = Command::new(weft);
    command.args(["rendezvous", "--ensure", "--idle", RENDEZVOUS_IDLE]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status().with_context(|| format!("cannot start {}", weft.display()))?;
    if !status.success() {
        bail!("'{} rendezvous --ensure' failed with {status}", weft.display());
    }
    Ok(())
}

fn is_settled(line: &SockLine, samples: &Samples, turns: u32) -> bool {
    let all: Vec<&[Sample]> = samples.values().map(Vec::as_slice).collect();
    !line.job.is_between_cores() || state::settled(&all, turns)
}

fn weft(args: &SockArgs) -> anyhow::Result<PathBuf> {
    let weft = match &args.output.weft_prefix {
        Some(prefix) => prefix.join("bin/weft"),
        None => std::env::current_exe().context("this program's own file")?.with_file_name("weft"),
    };
    if !weft.is_file() {
        bail!("{} is missing; --weft-prefix says where Weft is installed", weft.display());
    }
    Ok(weft)
}

/// Compiles the pair program. The cache line's header lies there already: `limits::compile` needs it, too.
pub fn compile(folder: &Path) -> anyhow::Result<PathBuf> {
    let (source, program) = (folder.join("sockbench.c"), folder.join("sockbench"));
    std::fs::write(&source, SOURCE)?;
    std::fs::write(folder.join("sockbench.h"), HEADER)?;
    let mut command = Command::new("cc");
    command.arg("-O2").arg(&source).arg("-o").arg(&program);
    process::compile(command).context("cannot compile with cc")?;
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
        limits::compile(folder.path()).unwrap();
        let bench = SockBench {
            pairs: compile(folder.path()).unwrap(),
            programs: Programs::look(folder.path()).unwrap(),
            machine: MeasuredMachine::look(),
            seconds: 0.02,
            weft: None,
        };
        for mut line in lines::all().into_iter().filter(|line| matches!(line.job, SockJob::Pair { .. })) {
            if let SockJob::Pair { what: "idle" | "talked", bytes, .. } = &mut line.job {
                *bytes = 50;
            }
            for way in line.ways.iter().filter(|way| **way != SockWay::Weft) {
                let sample = bench.measure(line.job, *way).and_then(|printed| sample(&line, &printed));
                let sample = sample.unwrap_or_else(|error| panic!("{} {way:?}: {error:#}", line.id));
                assert!(sample.value > 0.0 || line.job.is_once(), "{} {way:?}: {sample:?}", line.id);
                assert_eq!(sample.lines_ns().count(), if line.job.is_between_cores() { 2 } else { 0 }, "{}", line.id);
            }
        }
    }
}

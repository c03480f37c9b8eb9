//! The run: libraries found and compiled for, then turn after turn, group after group, one library after the other.

use crate::args::BenchArgs;
use crate::library::{self, Library, LibraryName, Placement};
use crate::lines::{self, BenchLine, LineGroup};
use crate::machine::MeasuredMachine;
use crate::machine::{CORES, CROWD};
use crate::report::Conditions;
use crate::report::{BenchFailure, BenchReport, LeftOut, LibraryReport, LineReport};
use crate::state::{self, Sample};
use crate::{leftovers, limits, parse, peers, process, progress};
use anyhow::{Context, ensure};
use indicatif::ProgressBar;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const SOURCE: &str = include_str!("../c/mpibench.c");
/// Least number of start-up samples over all turns.
const STARTS: u32 = 20;

struct PlanRun {
    turns: u32,
    seconds: f64,
    quick: bool,
    corrupt: bool,
    machine: MeasuredMachine,
    lines: Vec<BenchLine>,
    libraries: Vec<Library>,
    programs: HashMap<LibraryName, PathBuf>,
    directory: tempfile::TempDir,
    loaded: HashMap<LibraryName, String>,
    samples: HashMap<(String, LibraryName), Vec<Sample>>,
    /// Lines that need no more turns.
    settled: HashSet<String>,
    failures: Vec<BenchFailure>,
    /// A library that failed a group is not asked again.
    given_up: HashSet<(LibraryName, LineGroup)>,
    bar: ProgressBar,
}

pub fn run(args: &BenchArgs) -> anyhow::Result<BenchReport> {
    let start = Instant::now();
    let idle_seconds = if args.quick { 1.0 } else { 10.0 };
    let lines = lines::select(lines::all(idle_seconds), args.quick, &args.only)?;
    let machine = MeasuredMachine::look();
    let directory = tempfile::Builder::new().prefix("weft-bench-").tempdir().context("no temporary directory")?;
    let limits_program = limits::compile(directory.path())?;
    let (libraries, mut left_out) = find_libraries(args)?;
    let mut run = PlanRun {
        turns: args.turns(),
        seconds: args.line_seconds(),
        quick: args.quick,
        corrupt: args.corrupt,
        machine,
        lines,
        libraries,
        programs: HashMap::new(),
        directory,
        loaded: HashMap::new(),
        samples: HashMap::new(),
        settled: HashSet::new(),
        failures: Vec::new(),
        given_up: HashSet::new(),
        bar: ProgressBar::hidden(),
    };
    run.compile(&mut left_out)?;
    announce(&left_out);
    ensure!(!run.libraries.is_empty(), "no library can take part");
    let mut limits = limits::all();
    run.bar = progress::bar((run.expected_s() * 1000.0) as u64);
    for turn in 0..run.turns {
        run.note(turn, "the machine's limits");
        let measured = limits::measure(&limits_program, &run.machine, (run.seconds / 5.0).min(0.5), &mut limits);
        process::check_interrupt()?;
        if let Err(e) = measured {
            run.fail(turn, "the machine's limits".into(), &e);
        }
        run.turn(turn)?;
    }
    let turns_taken = run.more_turns()?;
    run.bar.finish_and_clear();
    Ok(run.report(limits, left_out, turns_taken, start))
}

/// The libraries asked for that are there or can be installed, and why not the others.
fn find_libraries(args: &BenchArgs) -> anyhow::Result<(Vec<Library>, Vec<LeftOut>)> {
    let directory = match &args.peers_dir {
        Some(d) => std::path::absolute(d)?,
        None => peers::default_directory()?,
    };
    let mode = match (args.offline, args.update_peers) {
        (true, _) => peers::InstallMode::Offline,
        (_, true) => peers::InstallMode::Update,
        _ => peers::InstallMode::Missing,
    };
    let (mut found, mut left_out) = (Vec::new(), Vec::new());
    for name in args.libraries() {
        let library = match name {
            LibraryName::Weft => library::find_weft(args.output.weft_prefix.as_deref()),
            _ => peers::provide(name, &directory, mode, args.tuned),
        };
        process::check_interrupt()?;
        match library {
            Ok(l) => found.push(l),
            Err(e) => left_out.push(LeftOut { name, reason: format!("{e:#}") }),
        }
    }
    Ok((found, left_out))
}

fn announce(left_out: &[LeftOut]) {
    for l in left_out {
        eprintln!("{} is left out: {}", l.name.title(), l.reason);
    }
}

impl PlanRun {
    /// The measuring program, once per library, beside the header that `limits::compile` left there. A library that
    /// cannot compile it is left out.
    fn compile(&mut self, left_out: &mut Vec<LeftOut>) -> anyhow::Result<()> {
        let source = self.directory.path().join("mpibench.c");
        std::fs::write(&source, SOURCE)?;
        for library in std::mem::take(&mut self.libraries) {
            let program = self.directory.path().join(format!("mpibench-{}", library.name as usize));
            let outcome = process::compile(library.compile(&source, &program));
            process::check_interrupt()?;
            match outcome {
                Ok(()) => {
                    self.programs.insert(library.name, program);
                    self.libraries.push(library);
                }
                Err(e) => left_out.push(LeftOut { name: library.name, reason: format!("its mpicc failed: {e:#}") }),
            }
        }
        Ok(())
    }

    /// After the turns asked for: more of them for the lines that were measured in changing states, all libraries
    /// alike. Returns how many turns there were in all.
    fn more_turns(&mut self) -> anyhow::Result<u32> {
        for turn in self.turns..state::MOST * self.turns {
            self.settle();
            if self.settled.len() == self.lines.len() {
                return Ok(turn);
            }
            self.bar.inc_length((self.turn_s() * 1000.0) as u64);
            self.turn(turn)?;
        }
        Ok(state::MOST * self.turns)
    }

    /// Finds out which lines need no more turns.
    fn settle(&mut self) {
        let settled = |l: &&BenchLine| {
            let all: Vec<_> = self.samples_of(l).into_iter().map(|(_, samples)| samples).collect();
            state::settled(&all, self.turns)
        };
        self.settled = self.lines.iter().filter(settled).map(|l| l.id.clone()).collect();
    }

    fn samples_of(&self, line: &BenchLine) -> Vec<(LibraryName, &[Sample])> {
        let of = |l: &Library| (l.name, self.samples.get(&(line.id.clone(), l.name)).map_or(&[][..], Vec::as_slice));
        self.libraries.iter().map(of).collect()
    }

    /// The groups that have lines to measure, in the order of the table.
    fn groups(&self) -> Vec<LineGroup> {
        let mut groups: Vec<LineGroup> = self.unsettled().map(|l| l.group).collect();
        groups.dedup();
        groups
    }

    fn turn(&mut self, turn: u32) -> anyhow::Result<()> {
        let mut groups = self.groups();
        // Memory is a matter of design and not of time: it is the same in every turn.
        groups.retain(|g| turn == 0 || !matches!(g, LineGroup::Memory(_)));
        for group in groups {
            let repeat = if group == LineGroup::Start { self.starts_per_turn() } else { 1 };
            for k in 0..repeat {
                for i in 0..self.libraries.len() {
                    // Nobody is always first.
                    let which = (i + turn as usize + k as usize) % self.libraries.len();
                    self.library_turn(turn, group, which)?;
                }
            }
        }
        Ok(())
    }

    fn starts_per_turn(&self) -> u32 {
        let starts = if self.quick { STARTS / 2 } else { STARTS };
        starts.div_ceil(self.turns)
    }

    /// One group of one library. A failure is noted; only an interrupt ends the run.
    fn library_turn(&mut self, turn: u32, group: LineGroup, which: usize) -> anyhow::Result<()> {
        let library = self.libraries[which].clone();
        if self.given_up.contains(&(library.name, group)) {
            return Ok(());
        }
        self.note(turn, &format!("{} {}", library.name.title(), group_text(group)));
        let shared_memory = leftovers::Before::look();
        let result = match group {
            LineGroup::Start => self.measure_start(&library),
            _ => self.measure_group(&library, group),
        };
        self.bar.inc((self.job_s(group) * 1000.0) as u64);
        if result.is_err() {
            shared_memory.clean();
        }
        process::check_interrupt()?;
        if let Err(e) = result {
            self.given_up.insert((library.name, group));
            self.fail(turn, format!("{}, {}", library.name.title(), group_text(group)), &e);
        }
        Ok(())
    }

    fn fail(&mut self, turn: u32, what: String, error: &anyhow::Error) {
        let reason = format!("{error:#}");
        self.bar.suspend(|| eprintln!("{what} failed: {reason}"));
        self.failures.push(BenchFailure { what, turn: turn + 1, reason });
    }

    fn measure_group(&mut self, library: &Library, group: LineGroup) -> anyhow::Result<()> {
        let mut command = self.launch(library, group);
        command.arg(&self.programs[&library.name]).args(self.corrupt.then_some("--corrupt"));
        if group.is_between_cores() && self.placement(group).bound {
            let page = self.directory.path().join("cache-line");
            std::fs::write(&page, [0; 4096])?;
            command.arg("--cache-line").arg(page);
        }
        command.arg(self.seconds.to_string());
        command.args(self.lines_of(group).map(|l| &l.spec));
        let outcome = process::run(command, self.limit(group))?;
        let ended = outcome.check();
        let output = parse::output("mpibench", &outcome.stdout)?;
        if let Some(text) = &output.library {
            library.check_loaded(text)?;
            self.loaded.entry(library.name).or_insert_with(|| parse::short_library_name(text));
        }
        // What was measured before a failure counts.
        let missing = self.keep(library.name, group, &output.figures);
        ended?;
        ensure!(missing.is_empty(), "no figure for {}", missing.join(", "));
        Ok(())
    }

    /// Takes the figures of a job's lines; returns the lines that have none.
    fn keep(&mut self, name: LibraryName, group: LineGroup, figures: &[parse::Figure]) -> Vec<String> {
        let mut missing = Vec::new();
        let lines: Vec<BenchLine> = self.lines_of(group).cloned().collect();
        for line in lines {
            // The crowded ping-pong and the plain one print under the spec that was asked for.
            match parse::sample(figures, &line.spec, line.unit.symbol()) {
                Some(sample) => self.samples.entry((line.id, name)).or_default().push(sample),
                None => missing.push(line.id),
            }
        }
        missing
    }

    /// Whole times of the launcher, each start-up line once.
    fn measure_start(&mut self, library: &Library) -> anyhow::Result<()> {
        let lines: Vec<String> = self.lines_of(LineGroup::Start).map(|l| l.id.clone()).collect();
        for id in lines {
            let mut command = self.launch(library, LineGroup::Start);
            match id.as_str() {
                "start/true" => command.arg("true"),
                _ => command.arg(&self.programs[&library.name]).arg("start"),
            };
            let outcome = process::run(command, self.limit(LineGroup::Start))?;
            outcome.check().with_context(|| id.clone())?;
            self.samples.entry((id, library.name)).or_default().push(Sample::plain(outcome.seconds));
        }
        Ok(())
    }

    fn launch(&self, library: &Library, group: LineGroup) -> Command {
        let mut command = library.launch(self.placement(group));
        // Session directories and the like of a killed launcher go with ours.
        command.env("TMPDIR", self.directory.path());
        process::confine(&mut command, &self.machine.cpus_used);
        command
    }

    fn placement(&self, group: LineGroup) -> Placement {
        let ranks = group.ranks();
        Placement { ranks, bound: ranks as usize <= self.machine.cpus_used.len() }
    }

    fn unsettled(&self) -> impl Iterator<Item = &BenchLine> {
        self.lines.iter().filter(|l| !self.settled.contains(&l.id))
    }

    /// The lines of a group that are measured in this turn.
    fn lines_of(&self, group: LineGroup) -> impl Iterator<Item = &BenchLine> {
        self.unsettled().filter(move |l| l.group == group)
    }

    /// About how long a job takes.
    fn job_s(&self, group: LineGroup) -> f64 {
        let lines = self.lines_of(group).count() as f64;
        match group {
            LineGroup::Latency | LineGroup::Stream | LineGroup::Collective => 1.0 + 1.25 * lines * self.seconds,
            LineGroup::Crowd => 2.0 + 1.5 * lines * self.seconds,
            LineGroup::Idle => 1.0 + if self.quick { 1.0 } else { 10.0 },
            LineGroup::Memory(ranks) => 0.5 + f64::from(ranks) / 8.0,
            LineGroup::Start => 0.5 * lines,
        }
    }

    /// When a job hangs. Generous: a crowded job under a spinning library is slow, not broken.
    fn limit(&self, group: LineGroup) -> Duration {
        Duration::from_secs_f64(120.0 + 10.0 * self.job_s(group))
    }

    fn expected_s(&self) -> f64 {
        let times = |g: &LineGroup| match g {
            LineGroup::Memory(_) => 1,
            LineGroup::Start => self.turns * self.starts_per_turn(),
            _ => self.turns,
        };
        let per_library: f64 = self.groups().iter().map(|g| f64::from(times(g)) * self.job_s(*g)).sum();
        per_library * self.libraries.len() as f64
    }

    /// About how long one more turn takes; only groups of one job per library get more.
    fn turn_s(&self) -> f64 {
        self.groups().into_iter().map(|g| self.job_s(g)).sum::<f64>() * self.libraries.len() as f64
    }

    fn note(&self, turn: u32, text: &str) {
        let of = if turn < self.turns { self.turns } else { state::MOST * self.turns };
        self.bar.set_message(format!("turn {} of {of}: {text}", turn + 1));
        self.bar.tick();
    }

    fn report(
        self,
        limits: Vec<limits::Limit>,
        left_out: Vec<LeftOut>,
        turns_taken: u32,
        start: Instant,
    ) -> BenchReport {
        let library = |l: &Library| LibraryReport {
            name: l.name,
            version: self.loaded.get(&l.name).cloned().unwrap_or_else(|| format!("{} {}", l.name.title(), l.version)),
            pair: l.launch_text(self.placement(LineGroup::Latency)),
            crowd: l.launch_text(self.placement(LineGroup::Crowd)),
        };
        let shortest = state::shortest_ns(self.samples.values().flatten());
        let run = Conditions { limits: &limits, turns: self.turns, shortest_line_ns: shortest };
        let lines = self.lines.iter().map(|l| LineReport::of(l, &self.samples_of(l), &run)).collect();
        BenchReport {
            format: 2,
            command: command_text(),
            turns: self.turns,
            turns_taken,
            shortest_line_ns: shortest.is_finite().then_some(shortest),
            seconds_per_line: self.seconds,
            took_s: start.elapsed().as_secs_f64(),
            libraries: self.libraries.iter().map(library).collect(),
            lines,
            left_out,
            limits,
            machine: self.machine,
            failures: self.failures,
        }
    }
}

fn group_text(group: LineGroup) -> String {
    match group {
        LineGroup::Latency => "ping-pong".into(),
        LineGroup::Stream => "windows of messages".into(),
        LineGroup::Collective => "collectives".into(),
        LineGroup::Crowd => format!("{} ranks on {CORES} cores", CROWD),
        LineGroup::Idle => "idle rank".into(),
        LineGroup::Memory(ranks) => format!("memory of {ranks} ranks"),
        LineGroup::Start => "start-up".into(),
    }
}

/// The command line that made the report, without the directories it was given.
pub fn command_text() -> String {
    let mut words = vec!["weft".to_string(), "bench".to_string()];
    let mut arguments = std::env::args().skip(1).skip_while(|a| a == "bench");
    while let Some(word) = arguments.next() {
        let of_interest = !["--weft-prefix", "--peers-dir"].iter().any(|o| word.starts_with(o));
        match of_interest {
            true if Path::new(&word).is_absolute() => {
                words.push(Path::new(&word).file_name().map_or(word.clone(), |f| f.to_string_lossy().into_owned()));
            }
            true => words.push(word),
            false if word.contains('=') => {}
            false => drop(arguments.next()),
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two libraries whose launcher is a script: it prints one latency, after and before cache lines that
    /// `lines` prints, a piece of shell that knows the number of the job as $n, from 1 on.
    fn run_with(lines: &str, turns: u32) -> PlanRun {
        let directory = tempfile::tempdir().unwrap();
        let libraries = [LibraryName::Mpich, LibraryName::Openmpi].map(|name| {
            let prefix = directory.path().join(name.title());
            let launcher = prefix.join("bin/mpiexec");
            std::fs::create_dir_all(prefix.join("bin")).unwrap();
            let script = format!(
                "#!/bin/sh\necho >> $0.jobs; n=$(wc -l < $0.jobs); set -- $({lines})\n\
                 printf 'mpibench: %s\\n' \"cache-line $1 s\" 'latency:8 1e-7 s' \"cache-line $2 s\"\n"
            );
            // Written by another process: while a child of another test holds a file open for writing, it cannot run.
            let write = ["-c", "printf %s \"$1\" > \"$0\" && chmod +x \"$0\"", launcher.to_str().unwrap(), &script];
            assert!(Command::new("sh").args(write).status().unwrap().success());
            Library { name, prefix, version: "1".into(), tuned: false }
        });
        PlanRun {
            turns,
            seconds: 0.001,
            quick: true,
            corrupt: false,
            machine: MeasuredMachine::look(),
            lines: lines::select(lines::all(1.0), true, &["latency/8".into()]).unwrap(),
            programs: libraries.iter().map(|l| (l.name, PathBuf::new())).collect(),
            libraries: libraries.to_vec(),
            directory,
            loaded: HashMap::new(),
            samples: HashMap::new(),
            settled: HashSet::new(),
            failures: Vec::new(),
            given_up: HashSet::new(),
            bar: ProgressBar::hidden(),
        }
    }

    /// How many turns there were, and how many samples each library has then.
    fn turns_of(lines: &str, turns: u32) -> (u32, Vec<usize>) {
        let mut run = run_with(lines, turns);
        (0..turns).for_each(|turn| run.turn(turn).unwrap());
        let taken = run.more_turns().unwrap();
        assert!(run.failures.is_empty(), "{:?}", run.failures);
        (taken, run.samples_of(&run.lines[0]).iter().map(|(_, samples)| samples.len()).collect())
    }

    #[test]
    fn a_quiet_machine_gets_the_turns_asked_for() {
        assert_eq!(turns_of("echo 60e-9 62e-9", 2), (2, vec![2, 2]));
    }

    #[test]
    fn more_turns_go_on_until_all_libraries_have_enough_of_one_state() {
        assert_eq!(turns_of("[ $n = 1 ] && echo 280e-9 280e-9 || echo 60e-9 62e-9", 2), (3, vec![3, 3]));
    }

    #[test]
    fn a_bound_ends_what_does_not_settle() {
        assert_eq!(turns_of("echo 60e-9 280e-9", 2), (6, vec![6, 6]));
    }
}

//! Runs the lines of all tables, each way by turns.

use super::NetArgs;
use super::hosts::{BenchHosts, Cable, MODE_VARIABLE};
use super::lines::{NetJob, NetLine, Wire};
use super::report::{NetLeftOut, NetLineReport, NetReport, Samples, WayReport};
use super::ways::NetWay;
use crate::library::{self, Library, LibraryName};
use crate::machine::MeasuredMachine;
use crate::sock::run::{compile as compile_pairs, figure};
use crate::state::{self, Sample};
use crate::{leftovers, limits, parse, peers, plan, process, progress};
use anyhow::{Context, bail, ensure};
use indicatif::ProgressBar;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const SOURCE: &str = include_str!("../../c/mpibench.c");
/// The application, as users compile it.
const HEAT: [(&str, &str); 15] = [
    ("check.c", include_str!("../../../../apps/heat/check.c")),
    ("heat.c", include_str!("../../../../apps/heat/heat.c")),
    ("options.c", include_str!("../../../../apps/heat/options.c")),
    ("options.h", include_str!("../../../../apps/heat/options.h")),
    ("picture.c", include_str!("../../../../apps/heat/picture.c")),
    ("picture.h", include_str!("../../../../apps/heat/picture.h")),
    ("plate.c", include_str!("../../../../apps/heat/plate.c")),
    ("plate.h", include_str!("../../../../apps/heat/plate.h")),
    ("run.c", include_str!("../../../../apps/heat/run.c")),
    ("run.h", include_str!("../../../../apps/heat/run.h")),
    ("scene.c", include_str!("../../../../apps/heat/scene.c")),
    ("scene.h", include_str!("../../../../apps/heat/scene.h")),
    ("screen.c", include_str!("../../../../apps/heat/screen.c")),
    ("screen.h", include_str!("../../../../apps/heat/screen.h")),
    ("table.c", include_str!("../../../../apps/heat/table.c")),
];
/// Iterations of each of its plates, for a second of a line.
const HEAT_STEPS: f64 = 400.0;
/// Bytes of half its largest plate, which crosses the cable whenever the plate is gathered.
const HALF_PLATE: u64 = 1024 * 512 * 8;
/// Lines that were not measured in one state so often as asked for get more turns only while a run is younger than
/// this.
const LONG: Duration = Duration::from_secs(360);
/// The kernel detaches the filter of a job that has ended when it gets to it.
const PATIENCE: Duration = Duration::from_secs(5);
/// Seconds after which the rendezvous of a host ends, when nobody is there.
const RENDEZVOUS_IDLE: &str = "1";
/// Messages of a window of `mpibench`.
const WINDOW: u64 = 64;

/// A library with what was compiled for it.
struct Compiled {
    library: Library,
    bench: PathBuf,
    /// Why the application could not be compiled.
    heat: Result<PathBuf, String>,
}

/// What all jobs of a run need.
struct NetBench {
    // Namespaces go before the folder with their launch script.
    hosts: BenchHosts,
    machine: MeasuredMachine,
    seconds: f64,
    libraries: HashMap<LibraryName, Compiled>,
    /// `weft` itself, which holds filters.
    weft: PathBuf,
    pairs: PathBuf,
    folder: tempfile::TempDir,
}

/// What a job said of its lines, in their order, and how many bytes must have crossed the cable for that.
struct Measured {
    samples: Vec<Sample>,
    least_bytes: u64,
    loaded: Option<String>,
}

impl NetBench {
    fn has(&self, way: NetWay) -> bool {
        way.library().is_none_or(|name| self.libraries.contains_key(&name))
    }

    fn compiled(&self, way: NetWay) -> anyhow::Result<&Compiled> {
        way.library().and_then(|name| self.libraries.get(&name)).context("no MPI library")
    }

    /// The two processors of the run.
    fn cpus(&self) -> [usize; 2] {
        cpus(&self.machine)
    }

    /// A job in this state of the cable. That its bytes went there and nowhere else is looked at.
    fn measure(&self, lines: &[&NetLine], way: NetWay) -> anyhow::Result<Measured> {
        let (job, wire) = (lines[0].job, lines[0].wire);
        let held = wire.has_filter() && !way.attaches();
        let _holders = if held { Some(self.hosts.attach(&self.weft, wire.mode())?) } else { None };
        let before = self.cable(held)?;
        ensure!(!held || before.is_native == (wire == Wire::Native), "the XDP program is attached in another way");
        let measured = match job {
            NetJob::Short | NetJob::Long | NetJob::Collective | NetJob::Pairs => self.measure_mpi(lines, way),
            NetJob::Heat => self.measure_heat(wire, way),
            NetJob::Ping(bytes) => self.measure_connection(wire, "pingpong", bytes, way),
            NetJob::Stream(bytes) => self.measure_connection(wire, "stream", bytes, way),
        }?;
        let crossed = self.cable(held)?.received.saturating_sub(before.received);
        let least = measured.least_bytes;
        ensure!(crossed >= least, "{crossed} bytes have crossed the cable, where there must be {least}");
        Ok(measured)
    }

    /// The cable, once the filter of others is gone, or ours is there.
    fn cable(&self, held: bool) -> anyhow::Result<Cable> {
        let end = Instant::now() + PATIENCE;
        loop {
            let cable = self.hosts.cable()?;
            if cable.has_program == held {
                return Ok(cable);
            }
            let what = if held { "no XDP program is" } else { "an XDP program is still" };
            ensure!(Instant::now() < end, "{what} attached to the cable");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn measure_mpi(&self, lines: &[&NetLine], way: NetWay) -> anyhow::Result<Measured> {
        let compiled = self.compiled(way)?;
        let mut command = self.launch(lines[0].wire, way)?;
        command.arg(&compiled.bench);
        let [first, second] = self.cpus();
        // Among many hosts nobody has a core to himself.
        if first != second && lines[0].wire != Wire::Bridge {
            let page = self.folder.path().join("cache-line");
            std::fs::write(&page, [0; 4096])?;
            command.arg("--cache-line").arg(page);
        }
        command.arg(self.seconds.to_string()).args(lines.iter().map(|line| &line.spec));
        let outcome = process::run(command, self.limit(lines.len()))?;
        outcome.check()?;
        check_quiet(way, &outcome.stderr)?;
        let output = parse::output("mpibench", &outcome.stdout)?;
        if let Some(text) = &output.library {
            compiled.library.check_loaded(text)?;
        }
        let sample = |line: &&NetLine| {
            let sample = parse::sample(&output.figures, &line.spec, line.unit.symbol());
            sample.with_context(|| format!("no figure for {}", line.id))
        };
        Ok(Measured {
            samples: lines.iter().map(sample).collect::<anyhow::Result<_>>()?,
            least_bytes: output.figures.iter().map(least_bytes).sum(),
            loaded: output.library.as_deref().map(parse::short_library_name),
        })
    }

    fn launch(&self, wire: Wire, way: NetWay) -> anyhow::Result<Command> {
        let mut command = way.launch(&self.compiled(way)?.library, &self.hosts);
        command.env(MODE_VARIABLE, wire.mode());
        // What a launcher leaves that is killed goes with ours.
        command.env("TMPDIR", self.folder.path());
        Ok(command)
    }

    fn measure_heat(&self, wire: Wire, way: NetWay) -> anyhow::Result<Measured> {
        let program = self.compiled(way)?.heat.as_ref().map_err(|why| anyhow::anyhow!("{why}"))?;
        let steps = (HEAT_STEPS * self.seconds).ceil().max(20.0);
        let mut command = self.launch(wire, way)?;
        command.arg(program).args(["--table", "--steps", &steps.to_string()]);
        let outcome = process::run(command, self.limit(10))?;
        outcome.check()?;
        check_quiet(way, &outcome.stderr)?;
        let samples = vec![Sample::plain(speed_up(&outcome.stdout)?)];
        Ok(Measured { samples, least_bytes: HALF_PLATE, loaded: None })
    }

    fn measure_connection(&self, wire: Wire, what: &str, bytes: u64, way: NetWay) -> anyhow::Result<Measured> {
        let wait = if way == NetWay::PolledTcp { "spin" } else { "block" };
        let there = format!("tcp@{}@/run/netns/{}", BenchHosts::address(1), self.hosts.name(1));
        let is_ours = matches!(way, NetWay::WeftSock | NetWay::WeftSockLane);
        let program = if is_ours { &self.weft } else { &self.pairs };
        let mut command = self.hosts.command(0, program);
        let by_lane = way == NetWay::WeftSockLane;
        let meet = || self.hosts.meet_by_lanes(&self.weft, self.folder.path(), wire.mode());
        let _meeting = if by_lane { Some(meet()?) } else { None };
        if is_ours {
            if !by_lane {
                self.ensure_rendezvous()?;
            }
            command.args(["sock", "--"]).arg(&self.pairs);
        }
        command.args([what, wait, &there, &bytes.to_string(), &self.seconds.to_string()]);
        command.args(self.cpus().map(|cpu| cpu.to_string()));
        let outcome = process::run(command, self.limit(1))?;
        outcome.check()?;
        let value = figure(&outcome.stdout, what)?;
        let line_ns = |name| figure(&outcome.stdout, name).map(|seconds| seconds * 1e9).ok();
        let sample = Sample { value, line_ns_before: line_ns("line-before"), line_ns_after: line_ns("line-after") };
        Ok(Measured { samples: vec![sample], least_bytes: bytes, loaded: None })
    }

    /// One that ends soon: it would keep its host for as long as it lives.
    fn ensure_rendezvous(&self) -> anyhow::Result<()> {
        let mut command = self.hosts.command(0, &self.weft);
        command.args(["rendezvous", "--ensure", "--idle", RENDEZVOUS_IDLE]);
        process::run(command, self.limit(0))?.check()
    }

    /// After which a job counts as hanging.
    fn limit(&self, lines: usize) -> Duration {
        Duration::from_secs_f64(60.0 + 10.0 * self.seconds * lines as f64)
    }
}

fn cpus(machine: &MeasuredMachine) -> [usize; 2] {
    [machine.cpus_used.first(), machine.cpus_used.last()].map(|cpu| cpu.copied().unwrap_or(0))
}

/// Weft says what it could not do as it was asked to, such as past the kernel. Launchers of others like to talk.
fn check_quiet(way: NetWay, stderr: &str) -> anyhow::Result<()> {
    match stderr.trim() {
        said if way.library() == Some(LibraryName::Weft) && !said.is_empty() => bail!("it said: {said}"),
        _ => Ok(()),
    }
}

/// What the iterations of a figure must have brought over the cable at least, whatever they are wrapped in.
fn least_bytes(figure: &parse::Figure) -> u64 {
    let (kind, bytes) = figure.spec.split_once(':').unwrap_or((&figure.spec, "1"));
    // Of pairs of hosts those of the first one, whose cable is looked at.
    let (kind, pair) = kind.split_once('-').unwrap_or((kind, "0-1"));
    let messages = match kind {
        _ if !pair.starts_with("0-") => 0,
        "rate" | "bandwidth" => WINDOW,
        _ => 1,
    };
    figure.iterations.saturating_mul(messages).saturating_mul(bytes.parse().unwrap_or(0))
}

/// The last figure in the application's line for its largest plate: how many times as fast both ranks are as one.
fn speed_up(table: &str) -> anyhow::Result<f64> {
    let line = table.lines().find(|line| line.trim_start().starts_with("1024 |"));
    let word = line.and_then(|line| line.split_whitespace().last()).context("no line for n = 1024")?;
    word.parse().with_context(|| format!("{word:?} is no speed-up"))
}

/// A run under way.
struct NetRun {
    bench: NetBench,
    turns: u32,
    lines: Vec<(NetLine, Samples)>,
    loaded: HashMap<LibraryName, String>,
    failures: Vec<String>,
    /// What failed once is not tried again: the first line of a job, and who.
    given_up: HashSet<(String, NetWay)>,
    bar: ProgressBar,
}

/// Measures every line that is wanted.
pub fn run(args: &NetArgs) -> anyhow::Result<NetReport> {
    let start = Instant::now();
    let lines = select(args.lines(), &args.only)?;
    let machine = MeasuredMachine::look();
    let folder = tempfile::Builder::new().prefix("weft-bench-").tempdir().context("a temporary folder")?;
    let all_cpus = if args.hosts.is_some() { &machine.cpus_used[..] } else { &cpus(&machine) };
    let hosts = BenchHosts::up(folder.path(), args.hosts, all_cpus)?;
    limits::compile(folder.path())?;
    let mut left_out = Vec::new();
    let libraries = libraries(args, folder.path(), &mut left_out)?;
    let weft = libraries.get(&LibraryName::Weft).context("Weft cannot take part")?.library.prefix.join("bin/weft");
    let pairs = compile_pairs(folder.path())?;
    let bench = NetBench { hosts, machine, seconds: args.line_seconds(), libraries, weft, pairs, folder };
    let mut run = NetRun {
        bench,
        turns: args.turns(),
        lines: lines.into_iter().map(|line| (line, Samples::new())).collect(),
        loaded: HashMap::new(),
        failures: Vec::new(),
        given_up: HashSet::new(),
        bar: ProgressBar::hidden(),
    };
    run.bar = progress::bar(u64::from(run.turns) * run.samples_of_a_turn());
    for turn in 0..run.turns {
        run.turn(turn, |_| true)?;
    }
    let turns_taken = run.more_turns(args.quick, start)?;
    run.bar.finish_and_clear();
    Ok(run.report(left_out, turns_taken, start))
}

/// The lines that match a pattern, all without one.
fn select(all: Vec<NetLine>, patterns: &[String]) -> anyhow::Result<Vec<NetLine>> {
    for pattern in patterns {
        let known = all.iter().any(|line| crate::lines::matches(pattern, &line.id));
        ensure!(known, "--only {pattern}: no line has such a name; --list shows them all");
    }
    let wanted = |line: &NetLine| patterns.is_empty() || patterns.iter().any(|p| crate::lines::matches(p, &line.id));
    Ok(all.into_iter().filter(wanted).collect())
}

/// Weft and, if wanted, MPICH, with the programs compiled for each.
fn libraries(
    args: &NetArgs,
    folder: &Path,
    left_out: &mut Vec<NetLeftOut>,
) -> anyhow::Result<HashMap<LibraryName, Compiled>> {
    let mut found = HashMap::new();
    let weft = library::find_weft(args.output.weft_prefix.as_deref())?;
    found.insert(LibraryName::Weft, compile(weft, folder)?);
    if args.without_peers {
        return Ok(found);
    }
    let directory = match &args.peers_dir {
        Some(directory) => std::path::absolute(directory)?,
        None => peers::default_directory()?,
    };
    let mode = if args.offline { peers::InstallMode::Offline } else { peers::InstallMode::Missing };
    let mpich =
        peers::provide(LibraryName::Mpich, &directory, mode, false).and_then(|library| compile(library, folder));
    process::check_interrupt()?;
    match mpich {
        Ok(mpich) => drop(found.insert(LibraryName::Mpich, mpich)),
        Err(error) => {
            let reason = format!("{error:#}");
            eprintln!("MPICH is left out: {reason}");
            left_out.push(NetLeftOut { name: LibraryName::Mpich, reason });
        }
    }
    Ok(found)
}

fn compile(library: Library, folder: &Path) -> anyhow::Result<Compiled> {
    let source = folder.join("mpibench.c");
    std::fs::write(&source, SOURCE)?;
    let program = |what: &str| folder.join(format!("{what}-{}", library.name as usize));
    let bench = program("mpibench");
    process::compile(library.compile(&source, &bench))
        .with_context(|| format!("mpicc of {} failed", library.name.title()))?;
    let heat = program("heat");
    let compiled = compile_heat(&library, folder, &heat);
    process::check_interrupt()?;
    let heat = compiled.map(|()| heat).map_err(|error| format!("apps/heat cannot be compiled: {error:#}"));
    Ok(Compiled { library, bench, heat })
}

fn compile_heat(library: &Library, folder: &Path, program: &Path) -> anyhow::Result<()> {
    let sources = folder.join("heat");
    std::fs::create_dir_all(&sources)?;
    let mut command = library.command("mpicc");
    command.arg("-O2");
    for (name, text) in HEAT {
        std::fs::write(sources.join(name), text)?;
        if name.ends_with(".c") {
            command.arg(sources.join(name));
        }
    }
    command.arg("-o").arg(program).args(["-lpng", "-lm"]);
    process::compile(command).context("it needs libpng (Debian: apt-get install libpng-dev)")
}

impl NetRun {
    fn samples_of_a_turn(&self) -> u64 {
        let ways = |lines: &[(NetLine, Samples)]| lines[0].0.ways.iter().filter(|way| self.bench.has(**way)).count();
        self.lines.chunk_by(|a, b| same_job(&a.0, &b.0)).map(|lines| ways(lines) as u64).sum()
    }

    /// After the turns asked for: more of them for the lines that were measured in changing states, all ways alike.
    /// Returns how many turns there were in all.
    fn more_turns(&mut self, quick: bool, start: Instant) -> anyhow::Result<u32> {
        let most = if quick { self.turns } else { state::MOST * self.turns };
        for turn in self.turns..most {
            let unsettled = self.lines.iter().filter(|(_, samples)| !is_settled(samples, self.turns));
            let unsettled: HashSet<String> = unsettled.map(|(line, _)| line.id.clone()).collect();
            if unsettled.is_empty() || start.elapsed() > LONG {
                return Ok(turn);
            }
            self.bar.inc_length(3 * unsettled.len() as u64);
            self.turn(turn, |line| unsettled.contains(&line.id))?;
        }
        Ok(most)
    }

    /// One sample for each way of the lines that are `wanted`. Lines of the same job share it.
    fn turn(&mut self, turn: u32, wanted: impl Fn(&NetLine) -> bool) -> anyhow::Result<()> {
        let mut lines = std::mem::take(&mut self.lines);
        let mut result = Ok(());
        for same in lines.chunk_by_mut(|a, b| same_job(&a.0, &b.0)) {
            let mut same: Vec<_> = same.iter_mut().filter(|(line, _)| wanted(line)).collect();
            if !same.is_empty() && result.is_ok() {
                result = self.job_turn(turn, &mut same);
            }
        }
        self.lines = lines;
        result
    }

    /// A job in each way. Only an interrupt ends the run.
    fn job_turn(&mut self, turn: u32, lines: &mut [&mut (NetLine, Samples)]) -> anyhow::Result<()> {
        let first = lines[0].0.clone();
        for i in 0..first.ways.len() {
            // Nobody is always first.
            let way = first.ways[(i + turn as usize) % first.ways.len()];
            if !self.bench.has(way) || self.given_up.contains(&(first.id.clone(), way)) {
                continue;
            }
            let what = format!("{}, {}", first.id, way.title());
            progress::note(&self.bar, turn, &what);
            let shared_memory = leftovers::Before::look();
            let result = self.bench.measure(&lines.iter().map(|line| &line.0).collect::<Vec<_>>(), way);
            self.bar.inc(1);
            if result.is_err() {
                shared_memory.clean();
            }
            process::check_interrupt()?;
            match result {
                Ok(measured) => self.keep(lines, way, measured),
                Err(error) => {
                    self.bar.suspend(|| eprintln!("{what} failed: {error:#}"));
                    self.failures.push(format!("{what}: {error:#}"));
                    self.given_up.insert((first.id.clone(), way));
                }
            }
        }
        Ok(())
    }

    fn keep(&mut self, lines: &mut [&mut (NetLine, Samples)], way: NetWay, measured: Measured) {
        if let (Some(name), Some(text)) = (way.library(), measured.loaded) {
            self.loaded.entry(name).or_insert(text);
        }
        for (line, sample) in lines.iter_mut().zip(measured.samples) {
            line.1.entry(way).or_default().push(sample);
        }
    }

    fn report(self, left_out: Vec<NetLeftOut>, turns_taken: u32, start: Instant) -> NetReport {
        let shortest_ns = state::shortest_ns(self.lines.iter().flat_map(|(_, samples)| samples.values().flatten()));
        let measured = |way: &NetWay| self.lines.iter().any(|(_, samples)| samples.contains_key(way));
        let way = |way: NetWay| WayReport {
            way,
            title: way.title(),
            version: way.library().and_then(|name| self.loaded.get(&name).cloned()),
            command: way.launch_text(self.bench.hosts.count()),
        };
        NetReport {
            format: 2,
            hosts: self.bench.hosts.count(),
            command: plan::command_text(),
            turns: self.turns,
            turns_taken,
            seconds: self.bench.seconds,
            took_s: start.elapsed().as_secs_f64(),
            shortest_line_ns: shortest_ns.is_finite().then_some(shortest_ns),
            ways: NetWay::ALL.into_iter().filter(measured).map(way).collect(),
            left_out,
            lines: self.lines.iter().map(|(l, s)| NetLineReport::of(l, s, self.turns, shortest_ns)).collect(),
            failures: self.failures,
            machine: self.bench.machine,
        }
    }
}

fn same_job(a: &NetLine, b: &NetLine) -> bool {
    a.wire == b.wire && a.job == b.job
}

fn is_settled(samples: &Samples, turns: u32) -> bool {
    let all: Vec<&[Sample]> = samples.values().map(Vec::as_slice).collect();
    state::settled(&all, turns)
}

#[cfg(test)]
mod tests;

//! Runs the rows by turns, column by column.

use super::LayersArgs;
use super::report::{ColumnReport, LayersReport, RowReport, Samples};
use super::rows::{Column, LayerSizes, Row, TrafficPattern};
use crate::library::{self, Library, Placement};
use crate::machine::MeasuredMachine;
use crate::net::{BenchHosts, launch_between};
use crate::sock::run::{compile, figure, start_rendezvous};
use crate::state::{self, Sample};
use crate::{limits, parse, process, progress};
use anyhow::{Context, bail, ensure};
use indicatif::ProgressBar;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const MPI_SOURCE: &str = include_str!("../../c/mpibench.c");
const INTERFACE_SOURCE: &str = include_str!("../../c/interfacebench.c");
const LINE_LIMIT: Duration = Duration::from_secs(60);

/// What all jobs of a run need.
struct LayersBench {
    machine: MeasuredMachine,
    /// For the programs, and what libraries leave behind.
    folder: tempfile::TempDir,
    /// The pair program of the sockets.
    pairs: PathBuf,
    /// Weft and the MPI program, `None` where only the kernel is measured (tests).
    weft: Option<(Library, PathBuf)>,
    /// Two hosts with the devices between them, where not all is here.
    hosts: Option<(BenchHosts, String)>,
    seconds: f64,
    sizes: LayerSizes,
}

impl LayersBench {
    fn new(args: &LayersArgs, weft: Option<Library>) -> anyhow::Result<(Self, PathBuf)> {
        let folder = tempfile::Builder::new().prefix("weft-bench-").tempdir().context("a temporary folder")?;
        let limits = limits::compile(folder.path())?;
        let weft = match weft {
            Some(library) => Some(compile_mpi(library, folder.path())?),
            None => None,
        };
        let pairs = compile(folder.path())?;
        let machine = MeasuredMachine::look();
        let hosts = match &args.between {
            Some(devices) => Some((BenchHosts::up(folder.path(), None, &machine.cpus_used)?, devices.clone())),
            None => None,
        };
        Ok((Self { machine, folder, pairs, weft, hosts, seconds: args.figure_seconds(), sizes: args.sizes() }, limits))
    }

    /// The two processors of the run, as the measuring programs take them.
    fn cpus(&self) -> [String; 2] {
        let cpu = |at: Option<&usize>| at.copied().unwrap_or(0).to_string();
        [cpu(self.machine.cpus_used.first()), cpu(self.machine.cpus_used.last())]
    }

    fn weft(&self) -> anyhow::Result<&(Library, PathBuf)> {
        self.weft.as_ref().context("Weft is not installed")
    }

    fn weft_command(&self) -> anyhow::Result<Command> {
        Ok(Command::new(self.weft()?.0.prefix.join("bin/weft")))
    }

    /// One sample, with the cache line around it where it is between two cores.
    fn sample(&self, column: Column, row: Row) -> anyhow::Result<Sample> {
        let value = |seconds: f64| {
            ensure!(seconds > 0.0, "{seconds} s is no measurement");
            Ok(column.value(seconds, self.sizes.long))
        };
        if row.is_to_self() || self.machine.cpus_used.len() < 2 {
            return self.time(column, row).and_then(value).map(Sample::plain);
        }
        let before = self.cache_line_ns()?;
        let value = self.time(column, row).and_then(value)?;
        Ok(Sample { value, line_ns_before: Some(before), line_ns_after: Some(self.cache_line_ns()?) })
    }

    fn cache_line_ns(&self) -> anyhow::Result<f64> {
        let mut command = Command::new(&self.pairs);
        command.arg("line").args(self.cpus());
        let outcome = process::run(command, LINE_LIMIT)?;
        outcome.check().context("the cache line")?;
        figure(&outcome.stdout, "line").map(|seconds| seconds * 1e9)
    }

    /// Seconds of a message one way, or of an exchange.
    fn time(&self, column: Column, row: Row) -> anyhow::Result<f64> {
        let (pattern, bytes) = (column.pattern(), column.bytes(self.sizes));
        match row {
            Row::Raw => self.time_fabric("raw", pattern, bytes),
            Row::Port => self.time_fabric("port", pattern, bytes),
            Row::Mpi => self.time_mpi(pattern, bytes),
            _ if row.interface().is_some() => self.time_interface(row, pattern, bytes),
            _ => self.time_socket(row, pattern, bytes),
        }
    }

    fn time_fabric(&self, layer: &str, pattern: TrafficPattern, bytes: u32) -> anyhow::Result<f64> {
        let mut command = self.weft_command()?;
        command.args(["bench", "fabric-pair", layer, pattern.word(), &bytes.to_string(), &self.seconds.to_string()]);
        command.args(self.cpus());
        let outcome = process::run(command, self.limit())?;
        outcome.check()?;
        figure(&outcome.stdout, pattern.word())
    }

    /// The launcher of two processes, up to the program.
    fn launch(&self) -> anyhow::Result<Command> {
        let library = &self.weft()?.0;
        if let Some((hosts, devices)) = &self.hosts {
            return Ok(launch_between(library, hosts, devices, &hosts.names()));
        }
        let mut command = library.launch(Placement { ranks: 2, bound: self.machine.cpus_used.len() > 1 });
        process::confine(&mut command, &self.machine.cpus_used);
        Ok(command)
    }

    fn time_mpi(&self, pattern: TrafficPattern, bytes: u32) -> anyhow::Result<f64> {
        let program = &self.weft()?.1;
        let mut command = self.launch()?;
        command.env("TMPDIR", self.folder.path());
        let kind = if pattern == TrafficPattern::PingPong { "latency" } else { "exchange" };
        let spec = format!("{kind}:{bytes}");
        command.arg(program).args([&self.seconds.to_string(), &spec]);
        let outcome = process::run(command, self.limit())?;
        outcome.check()?;
        let output = parse::output("mpibench", &outcome.stdout)?;
        let sample = parse::sample(&output.figures, &spec, "s");
        sample.map(|sample| sample.value).with_context(|| format!("no figure for {spec}"))
    }

    fn time_interface(&self, row: Row, pattern: TrafficPattern, bytes: u32) -> anyhow::Result<f64> {
        let library = &self.weft()?.0;
        let program = compile_interface(library, row, self.folder.path())?;
        let mut command = self.launch()?;
        command.arg(program).args([pattern.word(), &bytes.to_string(), &self.seconds.to_string()]);
        let outcome = process::run(command, self.limit())?;
        outcome.check()?;
        figure(&outcome.stdout, pattern.word())
    }

    fn time_socket(&self, row: Row, pattern: TrafficPattern, bytes: u32) -> anyhow::Result<f64> {
        let family = if matches!(row, Row::Unix | Row::UnixSelf) { "unix" } else { "tcp" };
        let what = format!("{}{}", if row.is_to_self() { "self-" } else { "" }, pattern.word());
        let mut command = if row.is_preloaded() { self.weft_command()? } else { Command::new(&self.pairs) };
        if row.is_preloaded() {
            command.args(["sock", "--stats", "--"]).arg(&self.pairs);
        }
        command.args([&what, "block", family, &bytes.to_string(), &self.seconds.to_string()]).args(self.cpus());
        let outcome = process::run(command, self.limit())?;
        outcome.check()?;
        if row.is_preloaded() {
            check_accelerated(&outcome.stderr)?;
        }
        figure(&outcome.stdout, pattern.word())
    }

    /// After which a job counts as hanging.
    fn limit(&self) -> Duration {
        Duration::from_secs_f64(60.0 + 10.0 * self.seconds)
    }
}

/// A figure of a connection that the kernel carried would be another row's.
fn check_accelerated(said: &str) -> anyhow::Result<()> {
    let lines = || said.lines().filter_map(|line| line.split_once(": sockets: ")).map(|(_, rest)| rest);
    let count = |text: &str| text.strip_prefix("accelerated ")?.split(' ').next()?.parse::<u64>().ok();
    if lines().filter_map(count).sum::<u64>() > 0 {
        return Ok(());
    }
    match lines().find(|line| line.starts_with("stayed")) {
        Some(why) => bail!("the connection {why}"),
        None => bail!("the connection stayed with the kernel: it was offered and not taken up"),
    }
}

fn compile_mpi(library: Library, folder: &Path) -> anyhow::Result<(Library, PathBuf)> {
    let (source, program) = (folder.join("mpibench.c"), folder.join("mpibench"));
    std::fs::write(&source, MPI_SOURCE)?;
    process::compile(library.compile(&source, &program)).context("mpicc failed")?;
    Ok((library, program))
}

/// The program of an interface, which is compiled once.
fn compile_interface(library: &Library, row: Row, folder: &Path) -> anyhow::Result<PathBuf> {
    let (define, links) = row.interface().context("the row has a program of its own")?;
    let (source, program) = (folder.join("interfacebench.c"), folder.join(format!("interfacebench-{links}")));
    if program.exists() {
        return Ok(program);
    }
    std::fs::write(&source, INTERFACE_SOURCE)?;
    let [include, lib] = ["include", "lib"].map(|part| library.prefix.join(part));
    let mut command = Command::new("cc");
    command.arg("-O2").arg(format!("-D{define}")).arg(&source).arg("-o").arg(&program);
    command.arg(format!("-I{}", include.display())).arg(format!("-L{}", lib.display())).arg(format!("-l{links}"));
    command.arg(format!("-Wl,-rpath,{}", lib.display()));
    process::compile(command).with_context(|| format!("the program for {} cannot be compiled", row.title()))?;
    Ok(program)
}

/// A run under way.
struct LayersRun {
    bench: LayersBench,
    samples: Samples,
    failures: Vec<String>,
    /// What failed once is not tried again.
    given_up: BTreeSet<(Column, Row)>,
    bar: ProgressBar,
}

/// Measures every row in every column.
pub fn run(args: &LayersArgs) -> anyhow::Result<LayersReport> {
    let start = Instant::now();
    let library = library::find_weft(args.output.weft_prefix.as_deref())?;
    let weft = library.prefix.join("bin/weft");
    let (bench, limits_program) = LayersBench::new(args, Some(library))?;
    let (turns, rows) = (args.turns(), args.rows());
    let mut run = LayersRun {
        bench,
        samples: Samples::new(),
        failures: Vec::new(),
        given_up: BTreeSet::new(),
        bar: progress::bar(u64::from(turns) * (Column::ALL.len() * rows.len()) as u64),
    };
    let mut limits = limits::all();
    let most = if args.quick { turns } else { state::MOST * turns };
    let mut taken = 0;
    while taken < most {
        let columns = run.unsettled(turns);
        if taken >= turns && columns.is_empty() {
            break;
        }
        start_rendezvous(&weft)?;
        if taken < turns {
            limits::measure(&limits_program, &run.bench.machine, run.bench.seconds.min(0.1), &mut limits)?;
        }
        for column in if taken < turns { Column::ALL.to_vec() } else { columns } {
            run.turn(taken, column, &rows)?;
        }
        taken += 1;
    }
    run.bar.finish_and_clear();
    let shortest_ns = state::shortest_ns(run.samples.values().flatten());
    Ok(LayersReport {
        turns,
        turns_taken: taken,
        seconds: run.bench.seconds,
        bytes: run.bench.sizes,
        between: args.between.clone(),
        took_s: start.elapsed().as_secs_f64(),
        shortest_line_ns: shortest_ns.is_finite().then_some(shortest_ns),
        columns: Column::ALL.map(|column| ColumnReport::of(column, &run.samples, turns, shortest_ns)).to_vec(),
        rows: rows.into_iter().map(|row| RowReport::of(row, &run.samples)).collect(),
        limits,
        failures: run.failures,
        machine: run.bench.machine,
    })
}

impl LayersRun {
    /// Columns whose rows have not been measured in one state so often.
    fn unsettled(&self, turns: u32) -> Vec<Column> {
        let settled = |column: &Column| state::settled(&super::report::between_cores(*column, &self.samples), turns);
        Column::ALL.into_iter().filter(|column| !settled(column)).collect()
    }

    /// One sample of each row. A failure is noted; only an interrupt ends the run.
    fn turn(&mut self, turn: u32, column: Column, rows: &[Row]) -> anyhow::Result<()> {
        for i in 0..rows.len() {
            // Nobody is always first.
            let row = rows[(i + turn as usize) % rows.len()];
            if self.given_up.contains(&(column, row)) {
                continue;
            }
            let what = format!("{}, {}", row.title(), column.title(self.bench.sizes));
            progress::note(&self.bar, turn, &what);
            let sample = self.bench.sample(column, row);
            process::check_interrupt()?;
            self.bar.inc(1);
            match sample {
                Ok(sample) => self.samples.entry((column, row)).or_default().push(sample),
                Err(error) => {
                    self.bar.suspend(|| eprintln!("{what} failed: {error:#}"));
                    self.failures.push(format!("{what}: {error:#}"));
                    self.given_up.insert((column, row));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preloaded_program_that_stayed_with_the_kernel_is_found_out() {
        let none = "weft sock: sockets: accelerated 0 ends of connections; over shared memory 0 bytes in, 0 bytes out; and so on\n";
        let why = "weft sock: sockets: stayed with the kernel 1: no rendezvous answers\n";
        assert!(check_accelerated(none).unwrap_err().to_string().contains("stayed with the kernel"));
        let error = check_accelerated(&format!("{none}{why}")).unwrap_err().to_string();
        assert_eq!(error, "the connection stayed with the kernel 1: no rendezvous answers");
        check_accelerated(&none.replace("accelerated 0", "accelerated 2")).unwrap();
        assert!(check_accelerated("").is_err());
    }

    #[test]
    fn every_row_of_the_kernel_is_measured_in_every_column() {
        let args = LayersArgs {
            quick: true,
            turns: Some(1),
            seconds: Some(0.02),
            bytes: 1 << 20,
            short: 8,
            between: None,
            output: crate::output::TablesTo::default(),
        };
        let (bench, _) = LayersBench::new(&args, None).unwrap();
        for column in Column::ALL {
            for row in [Row::Tcp, Row::TcpSelf, Row::Unix, Row::UnixSelf] {
                let sample = bench.sample(column, row).unwrap_or_else(|error| panic!("{row:?} {column:?}: {error:#}"));
                let between = !row.is_to_self() && bench.machine.cpus_used.len() > 1;
                assert!(sample.value > 0.0, "{row:?} {column:?}: {sample:?}");
                assert_eq!(sample.lines_ns().count(), if between { 2 } else { 0 }, "{row:?} {column:?}");
            }
            assert!(bench.sample(column, Row::Raw).unwrap_err().to_string().contains("not installed"));
        }
    }
}

//! The run: suite after suite, in each turn after turn, one library after the other.

use super::programs::{self, OwnProgram};
use super::report::{ImbLibraryReport, ImbReport, Samples, SuiteReport};
use super::suites::{Selected, Suite};
use super::{ImbArgs, ImbFigure, output, suites};
use crate::library::{self, Library, LibraryName, Placement};
use crate::machine::MeasuredMachine;
use crate::{leftovers, peers, process, progress};
use anyhow::{Context, ensure};
use indicatif::ProgressBar;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Lengths of a crowd, and of a quick run.
const FEW_LENGTHS: [u64; 9] = [0, 8, 64, 512, 4096, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
/// Among more ranks than cores a repetition may take milliseconds.
const CROWD_REPETITIONS: &str = "300,20";
const REPETITIONS: &str = "5000,50";
const QUICK_REPETITIONS: &str = "100,5";
/// A job that takes longer hangs. MPICH takes minutes for a crowd.
const JOB_LIMIT: Duration = Duration::from_secs(300);

struct ImbRun<'a> {
    args: &'a ImbArgs,
    machine: MeasuredMachine,
    folder: tempfile::TempDir,
    libraries: Vec<Library>,
    /// Where Intel's binaries are.
    intel: Option<PathBuf>,
    samples: Samples,
    failures: Vec<String>,
    /// A library that failed a suite is not asked again.
    given_up: HashSet<(LibraryName, Suite)>,
    bar: ProgressBar,
}

pub fn run(args: &ImbArgs) -> anyhow::Result<ImbReport> {
    let start = Instant::now();
    let selected = suites::select(&args.only)?;
    let (libraries, intel, left_out) = find_libraries(args)?;
    ensure!(!libraries.is_empty(), "no library can take part");
    let jobs = selected.len() * libraries.len() * args.turns() as usize;
    let folder = tempfile::Builder::new().prefix("weft-bench-").tempdir().context("no temporary directory")?;
    let mut run = ImbRun {
        args,
        machine: MeasuredMachine::look(),
        folder,
        libraries,
        intel,
        samples: Samples::new(),
        failures: Vec::new(),
        given_up: HashSet::new(),
        bar: progress::bar(jobs as u64),
    };
    for suite in &selected {
        for turn in 0..args.turns() {
            for at in 0..run.libraries.len() {
                // Nobody is always first.
                let which = (at + turn as usize) % run.libraries.len();
                run.job(turn, suite, which)?;
            }
        }
    }
    run.bar.finish_and_clear();
    let suite = |selected: &Selected| SuiteReport::of(selected.suite, run.ranks(selected.suite), &run.samples);
    Ok(ImbReport {
        turns: args.turns(),
        seconds: args.sample_seconds(),
        took_s: start.elapsed().as_secs_f64(),
        libraries: run.libraries.iter().map(|library| ImbLibraryReport::of(library, args)).collect(),
        left_out,
        suites: selected.iter().map(suite).collect(),
        failures: run.failures,
        machine: run.machine,
    })
}

/// The libraries asked for, where Intel's binaries are, and who is left out.
type Found = (Vec<Library>, Option<PathBuf>, Vec<String>);

fn find_libraries(args: &ImbArgs) -> anyhow::Result<Found> {
    let directory = match &args.peers_dir {
        Some(directory) => std::path::absolute(directory)?,
        None => peers::default_directory()?,
    };
    let mode = if args.offline { peers::InstallMode::Offline } else { peers::InstallMode::Missing };
    let (mut found, mut intel, mut left_out) = (Vec::new(), None, Vec::new());
    for name in LibraryName::ALL {
        let asked = args.libs.is_empty() || args.libs.contains(&name);
        // Intel's package has the benchmarks in it.
        if !asked && name != LibraryName::Intel {
            continue;
        }
        let library = match name {
            LibraryName::Weft => library::find_weft(args.output.weft_prefix.as_deref()),
            _ => peers::provide_runtime(name, &directory, mode),
        };
        process::check_interrupt()?;
        match library {
            Ok(library) => {
                if name == LibraryName::Intel {
                    intel = Some(library.prefix.join("bin"));
                }
                if asked {
                    found.push(library);
                }
            }
            Err(error) => {
                eprintln!("{} is left out: {error:#}", name.title());
                left_out.push(format!("{} is left out: {error:#}", name.title()));
            }
        }
    }
    Ok((found, intel, left_out))
}

impl ImbRun<'_> {
    fn ranks(&self, suite: Suite) -> u32 {
        match suite {
            Suite::Mpi1 | Suite::Nbc | Suite::Rma | Suite::P2p => self.args.ranks,
            Suite::Crowd => self.args.crowd,
            Suite::Pack => 1,
            _ => 2,
        }
    }

    /// One suite of one library. A failure is noted; only an interrupt ends the run.
    fn job(&mut self, turn: u32, selected: &Selected, which: usize) -> anyhow::Result<()> {
        let (library, suite) = (self.libraries[which].clone(), selected.suite);
        self.bar.inc(1);
        let foreign = suite.intel_program().is_some() || suite == Suite::Xdlu;
        if self.given_up.contains(&(library.name, suite)) || (foreign && library.name == LibraryName::Openmpi) {
            return Ok(());
        }
        let what = format!("{} {}", library.name.title(), suite.title());
        progress::note(&self.bar, turn, &what);
        let shared_memory = leftovers::Before::look();
        let result = self.measure(&library, selected);
        if result.is_err() {
            shared_memory.clean();
        }
        process::check_interrupt()?;
        match result {
            Ok(figures) => figures.into_iter().for_each(|figure| {
                let lines = self.samples.entry((suite, figure.name, figure.bytes)).or_default();
                lines.entry(library.name).or_default().push(figure.value);
            }),
            Err(error) => {
                self.bar.suspend(|| eprintln!("{what} failed: {error:#}"));
                self.failures.push(format!("{what}: {error:#}"));
                self.given_up.insert((library.name, suite));
            }
        }
        Ok(())
    }

    fn measure(&self, library: &Library, selected: &Selected) -> anyhow::Result<Vec<ImbFigure>> {
        let figures = match selected.suite {
            Suite::OneSided => self.own(library, OwnProgram::OneSided),
            Suite::Pack => self.own(library, OwnProgram::Pack),
            Suite::Xdlu => {
                let mut command = self.launch(library, Suite::Xdlu)?;
                programs::xdlu(&mut command, self.folder.path(), self.args.quick)?;
                programs::xdlu_figures(&self.finish(command)?)
            }
            Suite::Mpi4py => {
                let mut command = self.launch(library, Suite::Mpi4py)?;
                programs::mpi4py(&mut command, &self.args.python, library.name);
                programs::mpi4py_figures(&self.finish(command)?)
            }
            _ => self.intel(library, selected).and_then(|command| output::figures(&self.finish(command)?)),
        }?;
        ensure!(!figures.is_empty(), "it printed no figures");
        Ok(figures)
    }

    /// A program of Intel's with its options.
    fn intel(&self, library: &Library, selected: &Selected) -> anyhow::Result<Command> {
        let folder = self.intel.as_ref().context("the package impi-rt, which has it, is not installed")?;
        let (suite, quick) = (selected.suite, self.args.quick);
        let program = folder.join(suite.intel_program().context("none of Intel's")?);
        let crowd = suite == Suite::Crowd;
        let mut command = self.launch(library, suite)?;
        let repetitions = match (quick, crowd) {
            (true, _) => QUICK_REPETITIONS,
            (_, true) => CROWD_REPETITIONS,
            _ => REPETITIONS,
        };
        command.arg(program).args(["-npmin", &self.ranks(suite).to_string(), "-iter", repetitions]);
        command.args(["-time", &self.args.sample_seconds().to_string()]);
        if quick || crowd {
            let lengths = self.folder.path().join("lengths");
            std::fs::write(&lengths, FEW_LENGTHS.map(|bytes| format!("{bytes}\n")).concat())?;
            command.arg("-msglen").arg(lengths);
        }
        command.args(&selected.benchmarks);
        Ok(command)
    }

    /// A program of ours, compiled for the library.
    fn own(&self, library: &Library, own: OwnProgram) -> anyhow::Result<Vec<ImbFigure>> {
        let compiler = match library.prefix.join("bin/mpicc").is_file() {
            true => library,
            // Intel's package for running has none; its library has the ABI of MPICH.
            false => self
                .libraries
                .iter()
                .find(|l| l.name == LibraryName::Mpich)
                .context("MPICH, to compile for it, is missing")?,
        };
        let program = programs::compile(own, compiler, self.folder.path())?;
        let mut command = self.launch(library, own.suite())?;
        command.arg(program).arg(self.args.seconds.unwrap_or(if self.args.quick { 0.01 } else { 0.1 }).to_string());
        programs::own_figures(own, &self.finish(command)?)
    }

    /// The launcher, everything up to the program, which finds this library whichever of the ABI's it was linked to.
    fn launch(&self, library: &Library, suite: Suite) -> anyhow::Result<Command> {
        let ranks = self.ranks(suite);
        let bound = ranks as usize <= self.machine.cpus_used.len();
        let mut command = library.launch(Placement { ranks, bound });
        command.env("TMPDIR", self.folder.path());
        process::confine(&mut command, &self.machine.cpus_used);
        if library.name.is_peer() {
            let lib = library.prefix.join("lib");
            let paths = [debian_names(library, self.folder.path())?, lib.clone(), lib.join("mpich")];
            command.env("LD_LIBRARY_PATH", std::env::join_paths(paths)?);
        }
        Ok(command)
    }

    fn finish(&self, command: Command) -> anyhow::Result<String> {
        let outcome = process::run(command, JOB_LIMIT)?;
        outcome.check()?;
        Ok(outcome.stdout)
    }
}

/// A folder in which the library has the name too that Debian's programs ask for.
fn debian_names(library: &Library, folder: &Path) -> anyhow::Result<PathBuf> {
    let names = folder.join(format!("names-{}", library.name as usize));
    if !names.exists() {
        std::fs::create_dir(&names)?;
        std::os::unix::fs::symlink(library.prefix.join("lib/libmpi.so.12"), names.join("libmpich.so.12"))?;
    }
    Ok(names)
}

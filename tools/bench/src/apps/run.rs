//! Runs the applications by turns: one process, then all of them on each device.

use super::AppsArgs;
use super::build::{self, AppBuild};
use super::report::{AppReport, AppsReport};
use super::table::{PaperApp, seconds};
use crate::kernels::kernel::KernelName;
use crate::kernels::{BenchPlaces, KernelsReport, Via};
use crate::model::{ThroughputCurve, Volume};
use crate::plan::command_text;
use crate::{process, progress};
use anyhow::{Context, ensure};
use indicatif::ProgressBar;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use weft_records::lines;

/// One run of a program: longer is stuck.
const LIMIT: Duration = Duration::from_secs(600);
/// How collective operations inside a host travel: on memory that ranks share they are no messages.
const COLLECTIVES: &str = "WEFT_COLLECTIVES";

/// The programs, and where they run.
pub struct Built {
    pub places: BenchPlaces,
    programs: Vec<(&'static PaperApp, PathBuf)>,
    left_out: Vec<String>,
}

impl Built {
    /// Compiles and finds them. Those that cannot be had are left out.
    ///
    /// # Errors
    /// There is none at all, or what [`BenchPlaces::make`] says.
    pub fn new(args: &AppsArgs) -> anyhow::Result<Self> {
        let places = BenchPlaces::make(args.output.weft_prefix.as_deref(), &args.devices)?;
        let mut left_out: Vec<String> = places.lack.iter().cloned().collect();
        ensure!(
            args.interface == AppBuild::Mpi || places.devices == [Via::Shm],
            "--interface pvm goes with --device shm: tasks of two hosts talk over TCP, whatever the device"
        );
        let folders = match &args.programs {
            Some(folder) => vec![std::path::absolute(folder)?],
            None => vec![places.library.prefix.join("bin")],
        };
        let mut programs = Vec::new();
        for app in args.apps() {
            match build::program(app, &places.library, args.interface, places.folder.path(), &folders) {
                Ok(program) => programs.push((app, program)),
                Err(why) => left_out.push(format!("{} is left out: {why:#}", app.title)),
            }
            process::check_interrupt()?;
        }
        ensure!(!programs.is_empty(), "nothing can be measured: {}", left_out.join("; "));
        Ok(Self { places, programs, left_out })
    }

    /// The kernels that these programs look like.
    pub fn patterns(&self) -> Vec<KernelName> {
        let used = |kernel: &KernelName| self.programs.iter().any(|(app, _)| app.patterns.contains(kernel));
        KernelName::ALL.into_iter().filter(used).collect()
    }
}

/// What one run of a program was.
struct AppSample {
    seconds: f64,
    volume: Volume,
}

/// One run: by which device, on how many ranks. For counting, all that they say to each other goes as messages.
#[derive(Clone, Copy)]
struct AppJob {
    via: Via,
    ranks: u32,
    counts: bool,
}

/// Measures every application, and predicts with these curves.
pub fn run(args: &AppsArgs, built: Built, curves: &KernelsReport) -> anyhow::Result<AppsReport> {
    let start = Instant::now();
    let turns = args.turns();
    let mut reports: Vec<AppReport> =
        built.programs.iter().map(|(app, _)| AppReport::new(app, args.input(), &built.places.devices)).collect();
    let mut failures = Vec::new();
    let interrupted = by_turns(args, &built, &mut reports, &mut failures).is_err();
    for (report, (app, _)) in reports.iter_mut().zip(&built.programs) {
        report.predict(args.processes, |via| curves_of(curves, app, via, args.processes));
    }
    if interrupted {
        reports.retain(AppReport::has_times);
        ensure!(!reports.is_empty(), "interrupted");
    }
    Ok(AppsReport {
        command: command_text(),
        load_after: crate::machine::load(),
        machine: built.places.machine,
        turns,
        processes: args.processes,
        input: args.input(),
        interface: args.interface,
        took_s: start.elapsed().as_secs_f64(),
        applications: reports,
        left_out: built.left_out,
        failures,
        interrupted,
    })
}

/// Measures every application in every turn; an error says that the user has interrupted it.
fn by_turns(
    args: &AppsArgs,
    built: &Built,
    reports: &mut [AppReport],
    failures: &mut Vec<String>,
) -> anyhow::Result<()> {
    let (turns, devices) = (args.turns(), built.places.devices.len());
    let bar = progress::bar(u64::from(turns) * (reports.len() * (1 + devices)) as u64 + reports.len() as u64);
    for turn in 0..turns {
        for (report, (app, program)) in reports.iter_mut().zip(&built.programs) {
            let words: Vec<&str> = app.arguments(args.input()).collect();
            let mut run = |job: AppJob| attempt(&built.places, (app, program), &words, job, (&bar, turn), failures);
            if turn == 0 {
                let via = built.places.devices[0];
                let counted = run(AppJob { via, ranks: args.processes, counts: true })?;
                report.volume = counted.map_or_else(Volume::default, |sample| sample.volume);
            }
            let alone = run(AppJob { via: Via::Shm, ranks: 1, counts: false })?;
            report.sequential_s.extend(alone.map(|sample| sample.seconds));
            for at in 0..devices {
                // Nobody is always first.
                let device = &mut report.devices[(at + turn as usize) % devices];
                let together = run(AppJob { via: device.via, ranks: args.processes, counts: false })?;
                device.parallel_s.extend(together.map(|sample| sample.seconds));
            }
        }
    }
    bar.finish_and_clear();
    Ok(())
}

/// The curves of an application's patterns on a device, if all were measured.
fn curves_of(report: &KernelsReport, app: &PaperApp, via: Via, processes: u32) -> Option<Vec<ThroughputCurve>> {
    let curve = |kernel: &KernelName| {
        let there = kernel.processes(processes);
        let curve = report.curves_of(*kernel).find(|curve| curve.via == via && curve.processes == there)?;
        ThroughputCurve::new(curve.medians())
    };
    app.patterns.iter().map(curve).collect()
}

/// One run. A failure is noted; only an interrupt ends everything.
fn attempt(
    places: &BenchPlaces,
    (app, program): (&PaperApp, &PathBuf),
    words: &[&str],
    job: AppJob,
    (bar, turn): (&ProgressBar, u32),
    failures: &mut Vec<String>,
) -> anyhow::Result<Option<AppSample>> {
    let what = match job {
        AppJob { counts: true, .. } => format!("{}, messages counted", app.title),
        AppJob { ranks: 1, .. } => format!("{}, one process", app.title),
        AppJob { via, .. } => format!("{}, {}", app.title, via.title()),
    };
    // What failed once is not tried again.
    if failures.iter().any(|failure| failure.starts_with(&format!("{what}: "))) {
        return Ok(None);
    }
    progress::note(bar, turn, &what);
    let sample = one_run(places, app.name, program, words, job);
    process::check_interrupt()?;
    bar.inc(1);
    match sample {
        Ok(sample) => Ok(Some(sample)),
        Err(error) => {
            let what = format!("{what}: {error:#}");
            bar.suspend(|| eprintln!("failed: {what}"));
            failures.push(what);
            Ok(None)
        }
    }
}

fn one_run(
    places: &BenchPlaces,
    name: &str,
    program: &PathBuf,
    words: &[&str],
    job: AppJob,
) -> anyhow::Result<AppSample> {
    let record = places.folder.path().join("record");
    // The launcher appends; nothing stands there before the first run.
    let _ = std::fs::remove_file(&record);
    let mut command = places.launch(job.via, job.ranks)?;
    if job.counts {
        command.env(COLLECTIVES, "messages");
    }
    command.env("PVM_VMID", format!("weft-bench-{}", std::process::id()));
    command.arg("--record").arg(&record).arg(program).args(words);
    let outcome = process::run(command, LIMIT)?;
    outcome.check()?;
    let seconds = seconds(name, &outcome.stdout)?;
    let text = std::fs::read_to_string(&record).context("the record of the job")?;
    let record = lines::read(&text)?.pop().context("the job has no record")?;
    let sent = record.messages().context("the record of the job has no messages")?;
    Ok(AppSample { seconds, volume: Volume { bytes: sent.bytes as f64, messages: sent.count as f64 } })
}

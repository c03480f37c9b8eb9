//! Runs the kernels by turns, device by device.

use super::KernelsArgs;
use super::kernel::KernelName;
use super::report::{KernelCurve, KernelsReport};
use super::via::{BenchPlaces, Via};
use crate::plan::command_text;
use crate::sock::run::figure;
use crate::{limits, process, progress};
use anyhow::ensure;
use indicatif::ProgressBar;
use std::time::{Duration, Instant};

/// A kernel on a device among so many processes: one job of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KernelStage {
    kernel: KernelName,
    via: Via,
    processes: u32,
}

impl KernelStage {
    fn text(self) -> String {
        format!("{}, {}, {} processes", self.kernel.title(), self.via.title(), self.processes)
    }
}

/// One job: the values of all sizes.
fn measure(places: &BenchPlaces, stage: KernelStage, sizes: &[u32], seconds: f64) -> anyhow::Result<Vec<f64>> {
    let mut command = places.launch(stage.via, stage.processes)?;
    let word = stage.kernel.word();
    command.arg(places.weft().as_ref()).args(["bench", "kernel-rank", word, &seconds.to_string()]);
    command.args(sizes.iter().map(u32::to_string));
    // Generous: ranks that outnumber cores are slow, not broken.
    let limit = Duration::from_secs_f64(60.0 + 20.0 * seconds * sizes.len() as f64);
    let outcome = process::run(command, limit)?;
    outcome.check()?;
    let value = |bytes: &u32| {
        let value = figure(&outcome.stdout, &format!("{word}/{bytes}"))?;
        ensure!(value > 0.0, "{value} is no figure");
        Ok(value)
    };
    sizes.iter().map(value).collect()
}

/// Which jobs a turn has.
fn stages(args: &KernelsArgs, devices: &[Via]) -> Vec<KernelStage> {
    let mut stages = Vec::new();
    for kernel in args.kernels() {
        for &there in &args.processes {
            for &via in devices {
                let stage = KernelStage { kernel, via, processes: kernel.processes(there) };
                if !stages.contains(&stage) {
                    stages.push(stage);
                }
            }
        }
    }
    stages
}

/// Measures every kernel that is wanted.
pub fn run(args: &KernelsArgs, places: &BenchPlaces) -> anyhow::Result<KernelsReport> {
    let start = Instant::now();
    let (turns, sizes, seconds) = (args.turns(), args.sizes(), args.figure_seconds());
    let curve = |stage: KernelStage| KernelCurve::new(stage.kernel, stage.via, stage.processes, &sizes);
    let mut curves: Vec<(KernelStage, KernelCurve)> =
        stages(args, &places.devices).into_iter().map(|stage| (stage, curve(stage))).collect();
    let limits_program = limits::compile(places.folder.path())?;
    let mut limits = limits::all();
    let mut failures = Vec::new();
    let bar = progress::bar(u64::from(turns) * curves.len() as u64);
    for turn in 0..turns {
        limits::measure(&limits_program, &places.machine, seconds.min(0.05), &mut limits)?;
        for at in 0..curves.len() {
            // Nobody is always first.
            let at = (at + turn as usize) % curves.len();
            let (stage, curve) = &mut curves[at];
            if curve.has_failed {
                continue;
            }
            progress::note(&bar, turn, &stage.text());
            let values = measure(places, *stage, &sizes, seconds);
            process::check_interrupt()?;
            bar.inc(1);
            match values {
                Ok(values) => curve.add(&values),
                Err(error) => {
                    curve.has_failed = true;
                    fail(&bar, &mut failures, format!("{}: {error:#}", stage.text()));
                }
            }
        }
    }
    bar.finish_and_clear();
    Ok(KernelsReport {
        command: command_text(),
        load_after: crate::machine::load(),
        machine: places.machine.clone(),
        turns,
        seconds,
        took_s: start.elapsed().as_secs_f64(),
        curves: curves.into_iter().map(|(_, curve)| curve).collect(),
        limits,
        left_out: places.lack.clone(),
        failures,
    })
}

fn fail(bar: &ProgressBar, failures: &mut Vec<String>, what: String) {
    bar.suspend(|| eprintln!("failed: {what}"));
    failures.push(what);
}

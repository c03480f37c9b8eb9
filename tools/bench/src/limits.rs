//! The machine's own limits, measured in the same run by a small C program without MPI.

use crate::bars::Against;
use crate::format::{Unit, figure};
use crate::machine::MeasuredMachine;
use crate::stats::Summary;
use crate::{parse, process};
use anyhow::Context;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const SOURCE: &str = include_str!("../c/limits.c");
const HEADER: &str = include_str!("../c/cache_line.h");

#[derive(Clone, Debug, Serialize)]
pub struct Limit {
    pub id: &'static str,
    pub title: &'static str,
    pub unit: Unit,
    /// One per turn, base units.
    pub samples: Vec<f64>,
}

impl Limit {
    /// Its median, if it was measured.
    pub fn text(&self) -> Option<String> {
        let median = Summary::of(&self.samples)?.median;
        Some(format!("{}: {}", self.title, figure(median, self.unit)))
    }
}

/// What is measured, in the order of the table.
pub fn all() -> Vec<Limit> {
    let rows = [
        ("cache-line", "cache line one way between two cores", Unit::Seconds),
        ("switch", "switch between two processes on one core", Unit::Seconds),
        ("memcpy-1MiB", "memcpy, 1 MiB", Unit::BytesPerSecond),
        ("memcpy-64MiB", "memcpy, 64 MiB", Unit::BytesPerSecond),
        ("system-call", "system call that does nothing", Unit::Seconds),
    ];
    rows.into_iter().map(|(id, title, unit)| Limit { id, title, unit, samples: Vec::new() }).collect()
}

/// Compiles the program into `dir` with the system's C compiler. The header stays there: the measuring program includes
/// it too.
pub fn compile(dir: &Path) -> anyhow::Result<PathBuf> {
    let (source, program) = (dir.join("limits.c"), dir.join("limits"));
    std::fs::write(&source, SOURCE)?;
    std::fs::write(dir.join("cache_line.h"), HEADER)?;
    let mut command = Command::new("cc");
    command.arg("-O2").arg(&source).arg("-o").arg(&program);
    process::compile(command).context("cannot compile with cc, which the libraries' wrappers call too")?;
    Ok(program)
}

/// One turn: each limit for `seconds`, a sample each.
pub fn measure(program: &Path, machine: &MeasuredMachine, seconds: f64, limits: &mut [Limit]) -> anyhow::Result<()> {
    let (Some(first), Some(second)) = (machine.cpus_used.first(), machine.cpus_used.last()) else {
        anyhow::bail!("no processor may be used");
    };
    let mut command = Command::new(program);
    command.args([seconds.to_string(), first.to_string(), second.to_string()]);
    let outcome = process::run(command, Duration::from_secs_f64(60.0 + 50.0 * seconds))?;
    outcome.check().context("the machine's limits")?;
    for figure in parse::output("limits", &outcome.stdout)?.figures {
        let limit = limits.iter_mut().find(|l| l.id == figure.spec && l.unit.symbol() == figure.unit);
        limit
            .with_context(|| format!("unknown limit {:?} in {}", figure.spec, figure.unit))?
            .samples
            .push(figure.value);
    }
    Ok(())
}

/// The medians that bars refer to; the best peer is added per line.
pub fn against(limits: &[Limit]) -> Against {
    let median = |id| {
        let limit = limits.iter().find(|l| l.id == id)?;
        Summary::of(&limit.samples).map(|s| s.median)
    };
    Against { best_peer: None, cache_line_s: median("cache-line"), switch_s: median("switch") }
}

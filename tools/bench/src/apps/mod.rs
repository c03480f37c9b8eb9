//! `weft bench apps`: table 1 and figure 7 of *Challenging Applications on Fast Networks* (1998): what the ten
//! applications take and send, and their efficiency on each device, measured and predicted by the paper's model.
//!
//! Programs say their own time; messages and bytes are those of their ranks' counters, from the record of the job.
//! Curves for the model are measured in the same run.
//!
//! What must hold: a time counts only if the program found its result right. A program that is not there is said in one
//! line and left out.

mod build;
mod figure;
mod report;
mod run;
mod table;

pub use report::AppsReport;

use crate::kernels::{self, KernelsReport, Via};
use crate::output::TablesTo;
use anyhow::{Context, ensure};
use build::AppBuild;
use std::path::{Path, PathBuf};
use table::{APPS, AppInput, PaperApp};

/// The ten hard applications: sequential time, volume, messages, and efficiency, measured and predicted.
///
/// These are table 1 and figure 7 of "Challenging Applications on Fast Networks" (Langendoen, Hofman, Bal, 1998).
/// Integer sort, 3D-FFT, multigrid and shallow water are compiled here, for MPI or, as in the paper, for PVM; the
/// others are programs that were built before. Efficiency is the time of one process on one core by that of all and
/// their number; the model predicts it from time, volume and messages with the curves of the communication kernels,
/// which are measured first. Devices but shm need root and iproute2.
#[derive(Clone, Debug, clap::Args)]
pub struct AppsArgs {
    /// Short run for a first look: the quick inputs, 1 turn
    #[arg(long)]
    pub quick: bool,
    /// How often each application gets its turn on each device [default: 3, quick: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub turns: Option<u32>,
    /// Only these applications
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = app_names())]
    pub only: Vec<String>,
    /// Which inputs [default: paper, quick: quick]
    #[arg(long, value_enum)]
    pub input: Option<AppInput>,
    /// By these devices [default: all that can be had here]
    #[arg(long = "device", value_name = "DEVICES", value_delimiter = ',', value_enum)]
    pub devices: Vec<Via>,
    /// On so many processes
    #[arg(long, short = 'n', value_name = "N", default_value_t = 2,
          value_parser = clap::value_parser!(u32).range(2..=64))]
    pub processes: u32,
    /// What the programs in C are compiled for
    #[arg(long, value_enum, default_value = "mpi")]
    pub interface: AppBuild,
    /// Where programs are that were built before [default: where `weft` is]
    #[arg(long, value_name = "DIR")]
    pub programs: Option<PathBuf>,
    /// Draw figure 7 into this folder (SVG)
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
    #[command(flatten)]
    pub output: TablesTo,
}

fn app_names() -> clap::builder::PossibleValuesParser {
    clap::builder::PossibleValuesParser::new(APPS.iter().map(|app| app.name))
}

impl AppsArgs {
    pub fn turns(&self) -> u32 {
        self.turns.unwrap_or(if self.quick { 1 } else { 3 })
    }

    fn input(&self) -> AppInput {
        self.input.unwrap_or(if self.quick { AppInput::Quick } else { AppInput::Paper })
    }

    fn apps(&self) -> Vec<&'static PaperApp> {
        APPS.iter().filter(|app| self.only.is_empty() || self.only.iter().any(|name| name == app.name)).collect()
    }
}

/// Measures and writes what is asked for.
///
/// # Errors
/// Nothing could be measured, an application failed, the user has interrupted it, or the output cannot be written.
pub fn run(args: &AppsArgs) -> anyhow::Result<()> {
    crate::process::watch_for_interrupts();
    let built = run::Built::new(args)?;
    let curves = kernels::measure(&kernels_of(args, &built), &built.places)?;
    let report = run::run(args, built, &curves)?;
    if let Some(folder) = &args.figures {
        draw(&report, folder)?;
    }
    args.output.finish(&report).and_then(|()| ended_by_itself(&report))
}

fn ended_by_itself(report: &AppsReport) -> anyhow::Result<()> {
    ensure!(!report.interrupted, "interrupted");
    Ok(())
}

/// The curves that the model asks for.
fn kernels_of(args: &AppsArgs, built: &run::Built) -> kernels::KernelsArgs {
    kernels::KernelsArgs {
        quick: args.quick,
        turns: Some(args.turns()),
        seconds: Some(if args.quick { 0.02 } else { 0.05 }),
        only: built.patterns(),
        devices: Vec::new(),
        processes: vec![args.processes],
        bytes: Vec::new(),
        figures: None,
        output: TablesTo::default(),
    }
}

fn draw(report: &AppsReport, folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let path = folder.join("figure-7.svg");
    std::fs::write(&path, figure::svg(report)).with_context(|| format!("cannot write {}", path.display()))
}

/// All figures of the paper, 2 to 7, in one run.
#[derive(Clone, Debug, clap::Args)]
pub struct FiguresArgs {
    /// Where the pictures go (SVG), and the figures in them (JSON)
    folder: PathBuf,
    /// Short run for a first look: few sizes, quick inputs, 1 turn
    #[arg(long)]
    quick: bool,
    /// By these devices [default: all that can be had here]
    #[arg(long = "device", value_name = "DEVICES", value_delimiter = ',', value_enum)]
    devices: Vec<Via>,
    /// Which inputs the applications get [default: paper, quick: quick]
    #[arg(long, value_enum)]
    input: Option<AppInput>,
    /// Where programs are that were built before [default: where `weft` is]
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
    #[command(flatten)]
    output: TablesTo,
}

/// Measures the kernels and the applications, and draws them.
///
/// # Errors
/// As [`run`], and as the kernels have them.
pub fn run_figures(args: &FiguresArgs) -> anyhow::Result<()> {
    crate::process::watch_for_interrupts();
    ensure!(args.output.json.is_none(), "--json: the folder gets a file for the kernels and one for the applications");
    let FiguresArgs { folder, quick, devices, input, programs, output } = args.clone();
    let apps = AppsArgs {
        quick,
        turns: None,
        only: Vec::new(),
        input,
        devices: devices.clone(),
        processes: 2,
        interface: AppBuild::Mpi,
        programs,
        figures: Some(folder.clone()),
        output: TablesTo { json: Some(folder.join("applications.json")), ..output.clone() },
    };
    let kernels = kernels::KernelsArgs {
        quick,
        turns: None,
        seconds: None,
        only: Vec::new(),
        devices,
        processes: vec![2, 8],
        bytes: Vec::new(),
        figures: Some(folder.clone()),
        output: TablesTo { json: Some(folder.join("kernels.json")), ..output },
    };
    let built = run::Built::new(&apps)?;
    let curves: KernelsReport = kernels::measure(&kernels, &built.places)?;
    kernels::draw(&curves, &folder)?;
    let of_kernels = kernels.output.finish(&curves);
    println!();
    let report = run::run(&apps, built, &curves)?;
    draw(&report, &folder)?;
    apps.output.finish(&report).and(of_kernels).and_then(|()| ended_by_itself(&report))
}

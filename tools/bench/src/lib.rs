//! `weft bench`: Weft and the other MPI libraries side by side, and the machine's own limits under them.
//!
//! One C program ([`c/mpibench.c`](../c/mpibench.c)) is compiled by each library's own wrapper and started by each
//! library's own launcher, by turns in one run. This crate installs the peers, starts the jobs, reads what they print
//! and shows it: table, JSON, plot.
//!
//! What is deliberately not here: any MPI call, any timing of messages (the C programs do both; only the fabric's own
//! layers, which have no C interface, are timed in [`layers`]), any absolute judgement of a time. Bars are ratios to
//! the best peer or to a limit measured in the same run.
//!
//! Invariants: libraries are compared by samples of one state of the machine, or the table says that it could not be
//! ([`state`]); libraries never see each other's environment ([`library`]); whatever ends a run, no process that it
//! started and no temporary file outlives it ([`process`]); a library that cannot take part is named with the reason.
//!
//! Test: `cargo test -p weft-bench`; one test runs MPICH for real when it is installed in the peers directory.

#[macro_use]
mod named;

mod apps;
mod args;
mod bars;
mod chart;
mod format;
mod imb;
mod kernels;
mod layers;
mod leftovers;
mod library;
mod limits;
mod lines;
mod machine;
mod model;
mod net;
mod output;
mod parse;
mod payload;
mod peers;
mod plan;
mod plot;
mod process;
mod progress;
mod report;
mod seconds;
mod sock;
mod state;
mod stats;
mod table;
mod tune;

pub use args::BenchArgs;
pub use layers::{Distance, run_distance};
pub use report::BenchReport;
pub use tune::{Tuned, shown as tune_table, tune};

use anyhow::Context;

/// Runs the whole comparison and writes the outputs asked for. Exits with an error when a line could not be measured
/// (wrong data, a job that failed or hung); a missed bar is a result, not an error.
pub fn run(args: BenchArgs) -> anyhow::Result<()> {
    match &args.what {
        Some(args::MeasuredWhat::Sock(args)) => return sock::run(args),
        Some(args::MeasuredWhat::Layers(args)) => return layers::run(args),
        Some(args::MeasuredWhat::Net(args)) => return net::run(args),
        Some(args::MeasuredWhat::Imb(args)) => return imb::run(args),
        Some(args::MeasuredWhat::Kernels(args)) => return kernels::run(args),
        Some(args::MeasuredWhat::Apps(args)) => return apps::run(args),
        Some(args::MeasuredWhat::Figures(args)) => return apps::run_figures(args),
        Some(args::MeasuredWhat::KernelRank(args)) => return kernels::run_rank(args),
        Some(args::MeasuredWhat::FabricPair(args)) => return layers::run_pair(args),
        Some(args::MeasuredWhat::HoldFilter(args)) => return net::hold(args),
        Some(args::MeasuredWhat::TunePair(args)) => return tune::run_tune_pair(args),
        None => {}
    }
    if args.list {
        print!("{}", table::line_list());
        return Ok(());
    }
    process::watch_for_interrupts();
    let report = plan::run(&args)?;
    if let Some(path) = &args.plot {
        std::fs::write(path, plot::svg(&report)).with_context(|| format!("cannot write {}", path.display()))?;
    }
    args.output.finish(&report)
}

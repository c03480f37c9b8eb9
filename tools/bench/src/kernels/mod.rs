//! `weft bench kernels`: the primitives and communication kernels of *Challenging Applications on Fast Networks*
//! (1998), figures 2 to 6, over the layers that our Panda stands on, by turns on each device.
//!
//! A kernel is a job of `weft run` in which each rank is this command again ([`rank`]). Between hosts these are two
//! network namespaces with a core each.
//!
//! What must hold: a figure counts only if the data was right and, between hosts, nobody's filter was left on the
//! cable.

mod figures;
pub mod kernel;
mod rank;
mod report;
mod run;
mod via;

pub use rank::{KernelRankArgs, run as run_rank};
pub use report::KernelsReport;
pub use run::run as measure;
pub use via::{BenchPlaces, Via};

use crate::output::TablesTo;
use anyhow::Context;
use kernel::KernelName;
use std::path::{Path, PathBuf};

/// The longest message that is measured.
pub const MOST_BYTES: i64 = 1 << 26;

/// Communication kernels against the size of messages: RPC, messages, groups, ring, all-to-all exchanges.
///
/// These are figures 2 to 6 of "Challenging Applications on Fast Networks" (Langendoen, Hofman, Bal, 1998). Latency
/// of a remote procedure call is there and back with an empty answer; of a group, from sending to being delivered
/// at another member. Throughput of a ring and of the personalised exchange is what all send in a second; that of a
/// group and of the exchange by multicast is what senders send, each message counted once. Devices but shm need
/// root and iproute2: they are measured between two network namespaces, which the run makes and deletes. Every
/// figure is the median over the turns.
#[derive(Clone, Debug, clap::Args)]
pub struct KernelsArgs {
    /// Short run for a first look: 0.02 s per figure, 1 turn, few sizes
    #[arg(long)]
    pub quick: bool,
    /// How often each kernel gets its turn on each device [default: 3, quick: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub turns: Option<u32>,
    /// Time of a figure per turn [default: 0.1, quick: 0.02]
    #[arg(long, value_name = "S", value_parser = crate::seconds::seconds)]
    pub seconds: Option<f64>,
    /// Only these kernels
    #[arg(long, value_name = "KERNELS", value_delimiter = ',', value_enum)]
    pub only: Vec<KernelName>,
    /// By these devices [default: all that can be had here]
    #[arg(long = "device", value_name = "DEVICES", value_delimiter = ',', value_enum)]
    pub devices: Vec<Via>,
    /// Among so many processes
    #[arg(long, short = 'n', value_name = "N", value_delimiter = ',', default_value = "2,8",
          value_parser = clap::value_parser!(u32).range(2..=64))]
    pub processes: Vec<u32>,
    /// Sizes of messages [default: powers of 4 from 1 to 1048576, quick: 64,4096,65536]
    #[arg(long, value_name = "BYTES", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(1..=MOST_BYTES))]
    pub bytes: Vec<u32>,
    /// Draw figures 2 to 6 into this folder (SVG)
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
    #[command(flatten)]
    pub output: TablesTo,
}

impl KernelsArgs {
    fn turns(&self) -> u32 {
        self.turns.unwrap_or(if self.quick { 1 } else { 3 })
    }

    fn figure_seconds(&self) -> f64 {
        self.seconds.unwrap_or(if self.quick { 0.02 } else { 0.1 })
    }

    fn sizes(&self) -> Vec<u32> {
        match (self.bytes.is_empty(), self.quick) {
            (false, _) => self.bytes.clone(),
            (true, true) => vec![64, 4096, 65536],
            (true, false) => (0..=10).map(|power| 1 << (2 * power)).collect(),
        }
    }

    fn kernels(&self) -> Vec<KernelName> {
        KernelName::ALL.into_iter().filter(|kernel| self.only.is_empty() || self.only.contains(kernel)).collect()
    }
}

/// Measures and writes what is asked for.
///
/// # Errors
/// Nothing could be measured, a kernel failed, or the output cannot be written.
pub fn run(args: &KernelsArgs) -> anyhow::Result<()> {
    crate::process::watch_for_interrupts();
    let places = BenchPlaces::make(args.output.weft_prefix.as_deref(), &args.devices)?;
    let report = run::run(args, &places)?;
    if let Some(folder) = &args.figures {
        draw(&report, folder)?;
    }
    args.output.finish(&report)
}

/// Writes the figures that the report has curves for into a folder.
///
/// # Errors
/// A file cannot be written.
pub fn draw(report: &KernelsReport, folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, svg) in figures::all(report) {
        let path = folder.join(name);
        std::fs::write(&path, svg).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

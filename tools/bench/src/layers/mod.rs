//! `weft bench layers`: what each layer adds to the one below it, by ping-pong and by pairwise exchange, by turns.
//!
//! The layers of the fabric are timed in a process of our own ([`pair`]), sockets by `c/sockbench.c`, MPI by
//! `c/mpibench.c`, the other interfaces by `c/interfacebench.c`. All move messages that carry their number and check
//! them.

mod pair;
mod report;
mod rows;
mod run;

pub use pair::{Distance, PairArgs, bind_to, run as run_pair, run_distance};

use crate::output::TablesTo;
use rows::{LayerSizes, Row};

/// The layers one above the other: raw channel, port, socket, MPI and the other interfaces, beside the kernel's
/// sockets.
///
/// Ping-pong: half of the time there and back. Pairwise exchange: both processes send, then both receive; the time of
/// one exchange, and the bytes of both messages in it. A socket to itself has both ends in one process. Every figure
/// is the median over the turns.
#[derive(Clone, Debug, clap::Args)]
pub struct LayersArgs {
    /// Short run for a first look: 0.1 s per figure, 3 turns
    #[arg(long)]
    pub quick: bool,
    /// How often each layer gets its turn [default: 5, quick: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub turns: Option<u32>,
    /// Time of a figure per turn [default: 0.5, quick: 0.1]
    #[arg(long, value_name = "S", value_parser = crate::seconds::seconds)]
    pub seconds: Option<f64>,
    /// Size of the messages for throughput
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(1..=1 << 26))]
    pub bytes: u32,
    /// Size of the messages whose time counts
    #[arg(long, value_name = "BYTES", default_value_t = 8, value_parser = clap::value_parser!(u32).range(8..=1 << 26))]
    pub short: u32,
    /// Between two hosts, which the run makes and deletes, by these devices: MPI and the other interfaces for messages
    #[arg(long, value_name = "DEVICES")]
    pub between: Option<String>,
    #[command(flatten)]
    pub output: TablesTo,
}

impl LayersArgs {
    fn turns(&self) -> u32 {
        self.turns.unwrap_or(if self.quick { 3 } else { 5 })
    }

    fn sizes(&self) -> LayerSizes {
        LayerSizes { short: self.short, long: self.bytes }
    }

    fn rows(&self) -> Vec<Row> {
        Row::ALL.into_iter().filter(|row| self.between.is_none() || row.goes_between_hosts()).collect()
    }

    fn figure_seconds(&self) -> f64 {
        self.seconds.unwrap_or(if self.quick { 0.1 } else { 0.5 })
    }
}

/// Measures and writes what is asked for.
///
/// # Errors
/// Nothing could be measured, a layer failed, or the output cannot be written.
pub fn run(args: &LayersArgs) -> anyhow::Result<()> {
    crate::process::watch_for_interrupts();
    args.output.finish(&run::run(args)?)
}

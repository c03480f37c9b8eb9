//! `weft bench net`: MPI between two hosts, beside MPICH and kernel TCP on the same cable, by turns.
//!
//! The hosts are network namespaces ([`hosts`]), which the run makes and deletes, with one cable between them and a
//! core each. An XDP filter on that cable costs everybody's TCP something, and one in the driver its segmentation
//! offload. So there are three tables, one for each of these states and one for the bare cable, and libraries are
//! compared inside a table only.
//!
//! With `--hosts N` they are more, with cables into one bridge, and what is measured are communication kernels among
//! all of them and what lies between every two (`report/matrix.rs`).
//!
//! What must hold: a figure counts only if its bytes have crossed the cable ([`run`]); nobody is measured with a filter
//! attached that others have not; whatever ends a run, the namespaces go with it.

mod hosts;
mod lines;
mod report;
mod run;
mod ways;

use crate::output::TablesTo;
use std::path::PathBuf;

pub use hosts::{BenchHosts, HoldArgs, hold};
pub use ways::launch_between;

/// MPI between two hosts with a core each, beside MPICH and kernel TCP on the same cable.
///
/// The hosts are network namespaces, which the run makes and deletes: it needs root and iproute2. Everybody is measured
/// three times: on the bare cable, with the filter attached to both ends that Weft's device xdp needs, and with that
/// attached in the driver, as a native XDP program, which takes segmentation offload from TCP. Samples are told apart
/// by the cache line between the two cores, as `weft bench` does. MPICH is installed as there, and measured in both of
/// its ways over TCP, libfabric and UCX.
#[derive(Clone, Debug, clap::Args)]
pub struct NetArgs {
    /// Short run for a first look: 0.1 s per line, 3 turns
    #[arg(long)]
    pub quick: bool,
    /// How often each way gets its turn [default: 5, quick: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub turns: Option<u32>,
    /// Time of a line per turn [default: 1, quick: 0.1]
    #[arg(long, value_name = "S", value_parser = crate::seconds::seconds)]
    pub seconds: Option<f64>,
    /// Only these lines; a first part stands for all below it, `*` for anything: plain,xdp/latency,*/rate/8
    #[arg(long, visible_alias = "lines", value_name = "PATTERNS", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Measure kernels among so many hosts, and every pair of them: ring, all-to-all, broadcast, incast
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..=64))]
    pub hosts: Option<u32>,
    /// List the lines with their bars and stop
    #[arg(long)]
    pub list: bool,
    /// Leave MPICH out
    #[arg(long)]
    pub without_peers: bool,
    /// Where MPICH is installed [default: weft/peers in the user's cache directory]
    #[arg(long, value_name = "DIR")]
    pub peers_dir: Option<PathBuf>,
    /// Use the MPICH that is installed and install none
    #[arg(long)]
    pub offline: bool,
    #[command(flatten)]
    pub output: TablesTo,
}

impl NetArgs {
    fn lines(&self) -> Vec<lines::NetLine> {
        self.hosts.map_or_else(lines::all, lines::among)
    }

    fn turns(&self) -> u32 {
        self.turns.unwrap_or(if self.quick { 3 } else { 5 })
    }

    fn line_seconds(&self) -> f64 {
        self.seconds.unwrap_or(if self.quick { 0.1 } else { 1.0 })
    }
}

/// Measures and writes what is asked for. A missed bar is a result; a line that could not be measured is an error.
///
/// # Errors
/// Namespaces cannot be made, nothing could be measured, a line failed, or the output cannot be written.
pub fn run(args: &NetArgs) -> anyhow::Result<()> {
    if args.list {
        print!("{}", report::list(&args.lines()));
        return Ok(());
    }
    crate::process::watch_for_interrupts();
    args.output.finish(&run::run(args)?)
}

//! The command line of `weft bench`.

use crate::library::LibraryName;
use crate::output::TablesTo;
use crate::seconds::seconds;
use std::path::PathBuf;

/// Measure Weft and the other MPI libraries side by side.
///
/// The peers (MPICH, Open MPI, Intel MPI) are Python wheels, installed once into a private virtual environment each.
/// Libraries take turns, each of them first in one. A figure is the median of a library's samples; a bar is met or
/// missed against the best peer of the same run.
///
/// Processors of a virtual machine move. So where two ranks sit on two cores, the cache line between these is timed
/// before and after each sample; samples are of one state when these times differ at most by a factor of 1.5. A line
/// gets more turns, up to three times as many, until every library has `--turns` samples of one state. Only these
/// count, those of the shortest cache lines if there is a choice; the table says whether that is "near", as near as the
/// cores came in this run, or "far". Failing that all samples count: "any".
#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BenchArgs {
    #[command(subcommand)]
    pub what: Option<MeasuredWhat>,
    /// Short run for a first look: fewer lines, 0.1 s each, 3 turns
    #[arg(long)]
    pub quick: bool,
    /// How often every library gets its turn, and the samples it needs in one state [default: 5, quick: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub turns: Option<u32>,
    /// Least time of a line per turn [default: 1, quick: 0.1]
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub seconds: Option<f64>,
    /// Libraries to measure
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_enum)]
    pub libs: Vec<LibraryName>,
    /// Only these lines; a first part stands for all below it, `*` for anything: latency,crowd/barrier,*/8
    #[arg(long, visible_alias = "lines", value_name = "PATTERNS", value_delimiter = ',')]
    pub only: Vec<String>,
    /// List the lines with their bars and stop
    #[arg(long)]
    pub list: bool,
    /// Run the peers with the settings their manuals advise for more ranks than cores, instead of their defaults
    #[arg(long)]
    pub tuned: bool,
    /// Where the peers are installed [default: weft/peers in the user's cache directory]
    #[arg(long, value_name = "DIR")]
    pub peers_dir: Option<PathBuf>,
    /// Install newer peers where there are any
    #[arg(long)]
    pub update_peers: bool,
    /// Use the peers that are installed and install none
    #[arg(long, conflicts_with = "update_peers")]
    pub offline: bool,
    /// Spoil a byte of every line: shows that wrong data is noticed
    #[arg(long, hide = true)]
    pub corrupt: bool,
    #[command(flatten)]
    pub output: TablesTo,
    /// Draw latency and bandwidth by size (SVG)
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}

/// What else can be measured.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum MeasuredWhat {
    /// Measure sockets with and without the library that `weft sock` preloads.
    Sock(crate::sock::SockArgs),
    /// Measure the layers one above the other, from the raw channel to MPI.
    Layers(crate::layers::LayersArgs),
    /// Measure MPI between two hosts, beside MPICH and kernel TCP on the same cable.
    Net(crate::net::NetArgs),
    /// Measure Intel's MPI benchmarks, ScaLAPACK, mpi4py, packing and one-sided operations.
    Imb(crate::imb::ImbArgs),
    /// Measure RPC, messages, groups, ring and all-to-all exchanges on each device, and draw them.
    Kernels(crate::kernels::KernelsArgs),
    /// Measure the ten hard applications: table 1 and figure 7 of the paper, measured and predicted.
    Apps(crate::apps::AppsArgs),
    /// Draw figures 2 to 7 of the paper into a folder.
    Figures(crate::apps::FiguresArgs),
    /// Be a rank of a kernel (what `kernels` starts).
    #[command(hide = true)]
    KernelRank(crate::kernels::KernelRankArgs),
    /// Measure one layer of the fabric between two processes (what `layers` starts).
    #[command(hide = true)]
    FabricPair(crate::layers::PairArgs),
    /// Keep an XDP filter attached (what `net` starts).
    #[command(hide = true)]
    HoldFilter(crate::net::HoldArgs),
    /// Be one of two ranks that send messages to each other (what `weft tune` starts).
    #[command(hide = true)]
    TunePair(crate::tune::TunePairArgs),
}

impl BenchArgs {
    pub fn turns(&self) -> u32 {
        self.turns.unwrap_or(if self.quick { 3 } else { 5 })
    }

    /// Least seconds of one line per turn.
    pub fn line_seconds(&self) -> f64 {
        self.seconds.unwrap_or(if self.quick { 0.1 } else { 1.0 })
    }

    /// The libraries asked for, each once, in the order of the table.
    pub fn libraries(&self) -> Vec<LibraryName> {
        LibraryName::ALL.into_iter().filter(|n| self.libs.is_empty() || self.libs.contains(n)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(clap::Parser)]
    struct Cli {
        #[command(flatten)]
        bench: BenchArgs,
    }

    fn parse(args: &[&str]) -> Result<BenchArgs, clap::Error> {
        Cli::try_parse_from(std::iter::once(&"bench").chain(args)).map(|c| c.bench)
    }

    #[test]
    fn quick_changes_only_what_was_not_given() {
        let a = parse(&["--quick"]).unwrap();
        assert_eq!((a.turns(), a.line_seconds()), (3, 0.1));
        let a = parse(&["--quick", "--turns", "7", "--seconds", "0.5"]).unwrap();
        assert_eq!((a.turns(), a.line_seconds()), (7, 0.5));
        let a = parse(&[]).unwrap();
        assert_eq!((a.turns(), a.line_seconds()), (5, 1.0));
    }

    #[test]
    fn libraries_come_in_table_order_and_once() {
        let a = parse(&["--libs", "mpich,weft,mpich"]).unwrap();
        assert_eq!(a.libraries(), [LibraryName::Weft, LibraryName::Mpich]);
    }

    #[test]
    fn wrong_values_are_refused() {
        for bad in [&["--turns", "0"][..], &["--seconds", "0"], &["--seconds", "nan"], &["--libs", "lam"]] {
            assert!(parse(bad).is_err(), "{bad:?} was accepted");
        }
    }
}

//! `weft bench imb`: Intel's MPI benchmarks, unmodified, on Weft and on the libraries that can run them, by turns; and
//! beside them the other programs by which an MPI is judged: ScaLAPACK, mpi4py, packing, one-sided operations.

mod output;
mod programs;
mod report;
mod run;
mod suites;

use crate::library::LibraryName;
use crate::output::TablesTo;
use std::path::PathBuf;

/// What one job said about one benchmark at one length.
#[derive(Clone, Debug, PartialEq)]
struct ImbFigure {
    name: String,
    bytes: Option<u64>,
    /// Seconds, or a rate.
    value: f64,
}

/// Intel's MPI benchmarks (from the Python package impi-rt) and other programs, on Weft and the other libraries.
///
/// A figure is the median over the turns; a ratio is our time to that of the best other library. A suite is judged by
/// the geometric mean over all its benchmarks and lengths, and by the worst of them. Open MPI takes part where programs
/// are compiled, but cannot run Intel's, which are built for the ABI of MPICH.
#[derive(Clone, Debug, clap::Args)]
pub struct ImbArgs {
    /// Only these: suites, or benchmarks of them; `*` for anything: mpi1,nbc/iallgather*,xdlu
    #[arg(long, value_name = "PATTERNS", value_delimiter = ',')]
    pub only: Vec<String>,
    /// List what can be named and stop
    #[arg(long)]
    pub list: bool,
    /// Short run for a first look: few lengths, one turn
    #[arg(long)]
    pub quick: bool,
    /// How often every library gets its turn [default: 3, quick: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub turns: Option<u32>,
    /// Ranks of mpi1, nbc, rma and p2p
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=64))]
    pub ranks: u32,
    /// Ranks of the crowd
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=64))]
    pub crowd: u32,
    /// Most seconds for a benchmark at one length [default: 0.03, quick: 0.005]
    #[arg(long, value_name = "S", value_parser = crate::seconds::seconds)]
    pub seconds: Option<f64>,
    /// Libraries to measure
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_enum)]
    pub libs: Vec<LibraryName>,
    /// A Python that has mpi4py [default: python3]
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    pub python: PathBuf,
    /// Where the peers are installed [default: weft/peers in the user's cache directory]
    #[arg(long, value_name = "DIR")]
    pub peers_dir: Option<PathBuf>,
    /// Use the peers that are installed and install none
    #[arg(long)]
    pub offline: bool,
    #[command(flatten)]
    pub output: TablesTo,
}

impl ImbArgs {
    fn turns(&self) -> u32 {
        self.turns.unwrap_or(if self.quick { 1 } else { 3 })
    }

    fn sample_seconds(&self) -> f64 {
        self.seconds.unwrap_or(if self.quick { 0.005 } else { 0.03 })
    }
}

/// Measures and writes what is asked for.
///
/// # Errors
/// Nothing could be measured, a job failed, or the output cannot be written.
pub fn run(args: &ImbArgs) -> anyhow::Result<()> {
    if args.list {
        print!("{}", suites::list());
        return Ok(());
    }
    crate::process::watch_for_interrupts();
    args.output.finish(&run::run(args)?)
}

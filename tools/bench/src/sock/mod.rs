//! `weft bench sock`: sockets with the library preloaded, kernel TCP, kernel TCP polled, and Unix sockets, by turns.
//!
//! Pairs of processes are one C program (`c/sockbench.c`), which also keeps servers beside their clients. Every job
//! runs to its end under [`crate::process::run`], which leaves nothing behind.

mod lines;
mod report;
pub mod run;

use crate::output::TablesTo;

/// Sockets with and without the library, and the real programs that are installed.
///
/// Every figure is the median over the turns; a ratio says how many times better ours is than kernel TCP. Programs that
/// are not installed are named with their Debian package, and their lines count as not measured.
#[derive(Clone, Debug, clap::Args)]
pub struct SockArgs {
    /// Short run for a first look: 0.1 s per line, 3 turns
    #[arg(long)]
    pub quick: bool,
    /// How often each way gets its turn [default: 5, quick: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub turns: Option<u32>,
    /// Time of a line per turn [default: 1, quick: 0.1]
    #[arg(long, value_name = "S", value_parser = crate::seconds::seconds)]
    pub seconds: Option<f64>,
    /// Only lines whose name begins with one of these: pingpong,redis
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// List the lines with their bars and stop
    #[arg(long)]
    pub list: bool,
    /// Leave Weft out: the kernel alone
    #[arg(long)]
    pub kernel_only: bool,
    #[command(flatten)]
    pub output: TablesTo,
}

impl SockArgs {
    fn turns(&self) -> u32 {
        self.turns.unwrap_or(if self.quick { 3 } else { 5 })
    }

    fn line_seconds(&self) -> f64 {
        self.seconds.unwrap_or(if self.quick { 0.1 } else { 1.0 })
    }

    fn wants(&self, id: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|beginning| id.starts_with(beginning.as_str()))
    }
}

/// Measures and writes what is asked for. A missed bar is a result; a line that could not be measured is an error.
///
/// # Errors
/// Nothing could be measured, a line failed, or the output cannot be written.
pub fn run(args: &SockArgs) -> anyhow::Result<()> {
    if args.list {
        print!("{}", report::list());
        return Ok(());
    }
    crate::process::watch_for_interrupts();
    args.output.finish(&run::run(args)?)
}

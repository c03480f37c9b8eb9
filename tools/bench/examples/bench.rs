//! `weft bench` by itself, for work on the benchmarks.

use clap::Parser;

#[derive(clap::Parser)]
struct Cli {
    #[command(flatten)]
    bench: weft_bench::BenchArgs,
}

fn main() -> anyhow::Result<()> {
    weft_bench::run(Cli::parse().bench)
}

//! One rank of a kernel: only the hidden command `weft bench kernel-rank`, started by `weft run`, comes here.
//!
//! Rank 0 leads: it says to all how many rounds come, as many as fit the time, and prints a figure for each size.
//! What is sent carries its number and is checked where it arrives.

mod calls;
mod exchange;
mod multicast;

use super::kernel::KernelName;
use std::time::Instant;

/// What a rank is told.
#[derive(Clone, Debug, clap::Args)]
pub struct KernelRankArgs {
    #[arg(value_enum)]
    kernel: KernelName,
    #[arg(value_parser = crate::seconds::seconds)]
    seconds: f64,
    #[arg(value_parser = clap::value_parser!(u32).range(1..=super::MOST_BYTES), required = true)]
    bytes: Vec<u32>,
}

/// All ranks of a kernel, as one of them sees it.
trait Ensemble {
    /// Rank 0 and how many there are.
    fn leads(&self) -> bool;
    fn processes(&self) -> u32;
    /// Messages have this size from now on.
    fn resize(&mut self, bytes: u32);
    /// Says to all how many rounds come, or hears it.
    fn agree(&mut self, rounds: u64) -> anyhow::Result<u64>;
    /// Plays so many rounds with all others.
    fn play(&mut self, rounds: u64) -> anyhow::Result<()>;
    fn close(self);
}

/// Measures and prints.
///
/// # Errors
/// The job cannot be joined, a rank was lost, or wrong data arrived.
pub fn run(args: &KernelRankArgs) -> anyhow::Result<()> {
    match args.kernel {
        KernelName::RpcLatency => measure(calls::KernelCalls::join()?, args),
        KernelName::GroupLatency | KernelName::Group | KernelName::AllToAll => {
            measure(multicast::Multicast::join(args.kernel)?, args)
        }
        KernelName::Messages | KernelName::Ring | KernelName::Personalised => {
            measure(exchange::KernelExchange::join(args.kernel)?, args)
        }
    }
}

fn measure(mut ensemble: impl Ensemble, args: &KernelRankArgs) -> anyhow::Result<()> {
    for &bytes in &args.bytes {
        ensemble.resize(bytes);
        let seconds = seconds_of_a_round(&mut ensemble, args.seconds)?;
        if ensemble.leads() {
            let value = args.kernel.value(seconds, bytes, ensemble.processes());
            println!("figure {}/{bytes} {value:e} {}", args.kernel.word(), args.kernel.unit().symbol());
        }
    }
    ensemble.close();
    Ok(())
}

/// Ever more rounds until they take a tenth of the time, which warms all up; then as many as fill the time.
fn seconds_of_a_round(ensemble: &mut impl Ensemble, seconds: f64) -> anyhow::Result<f64> {
    let (mut next, mut is_last) = (1, false);
    loop {
        let rounds = ensemble.agree(next)?;
        if rounds == 0 {
            return Ok(f64::NAN);
        }
        let begun = Instant::now();
        ensemble.play(rounds)?;
        let spent = begun.elapsed().as_secs_f64();
        if !ensemble.leads() {
            continue;
        }
        if is_last {
            ensemble.agree(0)?;
            return Ok(spent / rounds as f64);
        }
        is_last = spent >= seconds / 10.0;
        next = if is_last { ((rounds as f64 * seconds / spent) as u64).max(1) } else { 2 * rounds };
    }
}

//! `weft rendezvous`: where connected processes of a host find each other, and, with lanes, those of other hosts.

use crate::defaults::tell_of_unknown;
use anyhow::{Context, Result, anyhow};
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::time::Duration;
use weft_agent::rendezvous;
use weft_fabric::{SettingError, Settings};
use weft_lanes::{Guardian, GuardianPlan, LaneGuardian, Refused, key};
use weft_wire::stream::meeting;

pub const LONG_ABOUT: &str = "Serve as the place where connected processes of this host find each other.

`weft sock` starts one by itself, which is enough inside a host. With --lanes it also serves connections between this host and \
others that have one with the same key: short messages go past the kernel's stack then. That needs root, or the capabilities \
CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF, and serves the programs of the user who runs it. What goes so is authenticated, and not \
encrypted.

Hosts meet by UDP at --port; the lanes have the ports that follow. One key is made by --make-key, and copied to every host.";

#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("further").args(["ensure", "make_key"]).conflicts_with_all(["lanes", "key"])))]
pub struct RendezvousArguments {
    /// Return at once: when one answers already, or one that was started in the background does.
    #[arg(long)]
    ensure: bool,
    /// End when nobody has been there for so long [default: 60, or never with --lanes]
    #[arg(long, value_name = "SECONDS")]
    idle: Option<u64>,
    /// Serve connections to other hosts, by lanes on this interface.
    #[arg(long, value_name = "INTERFACE", requires = "key")]
    lanes: Option<String>,
    /// What the hosts have in common: a file of 16 bytes or more that only its owner can read or write, the same on
    /// all.
    #[arg(long, value_name = "FILE", requires = "lanes")]
    key: Option<PathBuf>,
    /// UDP port at which hosts meet, the same on all. The lanes have those that follow.
    #[arg(long, value_name = "PORT", default_value_t = meeting::PORT, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Processes that can have connections by lanes at the same time.
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=512))]
    lane_count: u16,
    /// Write a new random key to a new file, and return.
    #[arg(long, value_name = "FILE")]
    make_key: Option<PathBuf>,
}

pub fn main(given: &RendezvousArguments) -> Result<()> {
    if let Some(path) = &given.make_key {
        return Ok(key::make(path)?);
    }
    let idle = given.idle.map(Duration::from_secs);
    match (&given.lanes, &given.key) {
        (Some(interface), Some(file)) => {
            let key = key::read(file)?;
            tell_of_unknown("weft rendezvous");
            let settings = Settings::from_env(std::env::vars_os()).map_err(refused)?;
            let (interface, mode) = (interface.clone(), settings.xdp_mode);
            let plan = GuardianPlan { interface, key, port: given.port, lanes: given.lane_count, mode };
            // Nobody waits so long, and a clock can still be added to it.
            let ever = Duration::from_secs(u64::from(u32::MAX));
            rendezvous::run_with(|| open(&plan), idle.unwrap_or(ever)).map_err(|error| match error {
                Failed::Refused(refused) => anyhow!(refused),
                Failed::Io(error) if error.kind() == ErrorKind::AddrInUse => {
                    anyhow!("a rendezvous of this user runs already, and has to end before one with lanes can serve")
                }
                Failed::Io(error) => anyhow!(error).context("cannot serve as rendezvous"),
            })
        }
        _ => {
            let idle = idle.unwrap_or(rendezvous::IDLE);
            let outcome = if given.ensure { rendezvous::ensure_for(idle) } else { rendezvous::run(idle) };
            outcome.context("cannot serve as rendezvous")?;
            match rendezvous::common_name_is_squatted().filter(|_| given.ensure) {
                Some(error) => Err(error).context("serves root only, and joins no programs of different users"),
                None => Ok(()),
            }
        }
    }
}

/// What is wrong with the settings, a line each.
fn refused(errors: Vec<SettingError>) -> anyhow::Error {
    anyhow!("{}", errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

enum Failed {
    Refused(Refused),
    Io(io::Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn open(plan: &GuardianPlan) -> Result<Box<dyn Guardian>, Failed> {
    let guardian = LaneGuardian::open(plan).map_err(Failed::Refused)?;
    if let Some(note) = guardian.note() {
        eprintln!("weft rendezvous: {note}");
    }
    Ok(Box::new(guardian))
}

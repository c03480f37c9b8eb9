//! The options of `weft run` that say on which hosts.

use crate::defaults::Defaults;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use weft_agent::Hosts;
use weft_cluster::hosts::{Host, HostsError, Launch, Map, parse_file, parse_list, ranks_wanted, spread};

/// Where the ranks run, when it is not this host.
#[derive(Args)]
pub struct HostArguments {
    /// Run on these hosts: NAME or NAME:SLOTS, with commas; a slot takes a rank, and a host has one unless it says more
    #[arg(long, value_name = "LIST", conflicts_with = "hostfile")]
    hosts: Option<String>,

    /// The same from a file: one host a line, as NAME, NAME:SLOTS or NAME slots=SLOTS; '#' begins a comment
    #[arg(long, value_name = "FILE")]
    hostfile: Option<PathBuf>,

    /// The command that starts a program on a host, {host} being its name; its standard input and output must reach
    /// the program [default: WEFT_LAUNCH, else ssh with -o BatchMode=yes and time limits]
    #[arg(long, value_name = "COMMAND")]
    launch: Option<Launch>,

    /// Copy this Weft, program and libraries, to hosts that do not have it in the same build, into the cache directory of
    /// the user there; what was copied is told
    #[arg(long)]
    stage: bool,

    /// How ranks are spread: fill the slots of one host after the other (slot), one for each host in turn (host), or
    /// N for each host (N-per-host)
    #[arg(long, value_name = "HOW", default_value = "slot")]
    map: Map,
}

const VARIABLE: &str = "WEFT_LAUNCH";

/// Hosts as they were given.
pub struct Given {
    hosts: Vec<Host>,
    map: Map,
    launch: Launch,
    stage: bool,
    patience: Option<Duration>,
    tree: Option<usize>,
    /// The option that gave them, for messages.
    option: String,
}

impl HostArguments {
    /// The hosts, if any were given; or one line for each slip.
    pub fn read(self, defaults: &Defaults) -> Result<Option<Given>, Vec<String>> {
        let (hosts, option) = match (&self.hosts, &self.hostfile) {
            (Some(list), _) => (parse_list(list).map_err(|error| vec![format!("--hosts: {error}")])?, "--hosts".into()),
            (None, Some(file)) => {
                let option = format!("--hostfile '{}'", file.display());
                let text = std::fs::read_to_string(file).map_err(|error| vec![format!("{option}: {error}")])?;
                let told = |errors: Vec<HostsError>| -> Vec<String> {
                    errors.iter().map(|error| format!("{option}: {error}")).collect()
                };
                (parse_file(&text).map_err(told)?, option)
            }
            (None, None) if self.launch.is_some() => {
                return Err(vec![
                    "--launch says how hosts are reached, but neither --hosts nor --hostfile which".into(),
                ]);
            }
            (None, None) if self.stage => {
                return Err(vec![
                    "--stage copies Weft to other hosts, but neither --hosts nor --hostfile is given".into(),
                ]);
            }
            (None, None) => return Ok(None),
        };
        let launch = self.launch.map_or_else(launch_of_environment, Ok)?;
        let (patience, tree) = (defaults.launch_timeout, defaults.launch_tree);
        Ok(Some(Given { hosts, map: self.map, launch, stage: self.stage, patience, tree, option }))
    }
}

pub fn launch_of_environment() -> Result<Launch, Vec<String>> {
    match std::env::var(VARIABLE) {
        Ok(given) => given.parse().map_err(|error| vec![format!("{VARIABLE}: {error}")]),
        Err(_) => Ok(Launch::default()),
    }
}

impl Given {
    /// How many ranks a job has here that does not say it.
    pub fn ranks(&self) -> usize {
        ranks_wanted(&self.hosts, self.map)
    }

    /// The hosts of a job of so many ranks.
    pub fn spread(self, ranks: usize) -> Result<Hosts, Vec<String>> {
        let places = spread(&self.hosts, self.map, ranks).map_err(|error| vec![format!("{}: {error}", self.option)])?;
        Ok(Hosts::new(&self.hosts, &places, self.launch, self.patience, self.stage, self.tree))
    }
}

//! The options of `weft run` that say on which hosts.

use super::room::{self, Room, Wishes};
use crate::cluster::file;
use crate::defaults::Defaults;
use crate::reach::{are_here, launch_of_environment};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use weft_agent::Hosts;
use weft_cluster::hosts::{HOSTS_MAX, Host, HostsError, Launch, Map, parse_file, parse_list, ranks_wanted, spread};
use weft_database::Partition;

/// Where the ranks run, when it is not this host alone.
#[derive(Args)]
pub struct HostArguments {
    /// Run on these hosts: NAME or NAME:SLOTS, with commas; a slot takes a rank, and a host has one unless it says more
    #[arg(long, value_name = "LIST", conflicts_with = "hostfile")]
    hosts: Option<String>,

    /// The same from a file: one host a line, as NAME, NAME:SLOTS or NAME slots=SLOTS; '#' begins a comment
    #[arg(long, value_name = "FILE")]
    hostfile: Option<PathBuf>,

    /// Run on this partition of the cluster (see weft cluster); '' is its default one [default: WEFT_PARTITION]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["hosts", "hostfile"])]
    partition: Option<String>,

    /// The command that starts a program on a host, {host} being its name; its standard input and output must reach
    /// the program [default: WEFT_LAUNCH, else ssh with -o BatchMode=yes and time limits]
    #[arg(long, value_name = "COMMAND")]
    launch: Option<Launch>,

    /// Copy this Weft, program and libraries, to hosts that do not have it in the same build, into the cache directory of
    /// the user there; what was copied is told
    #[arg(long)]
    stage: bool,

    /// Where the partition has no room and a daemon counts its slots: wait for room
    #[arg(long, overrides_with = "no_wait")]
    wait: bool,

    /// The opposite of --wait, which is the default: say that there is no room
    #[arg(long, overrides_with = "wait")]
    no_wait: bool,

    /// Where a daemon places the job: its priority, as high as the partition allows [default: the partition's]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i32>,

    /// How ranks are spread: fill the slots of one host after the other (slot), one for each host in turn (host), or
    /// N for each host (N-per-host)
    #[arg(long, value_name = "HOW", default_value = "slot")]
    map: Map,
}

/// The partition of jobs that name no hosts.
pub const PARTITION_VARIABLE: &str = "WEFT_PARTITION";

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
    /// What the hosts are, where that was named, and of which cluster.
    partition: Option<Partition>,
    cluster: String,
    wishes: Wishes,
}

impl HostArguments {
    /// The hosts, if any were given; or one line for each slip.
    pub fn read(self, defaults: &Defaults) -> Result<Option<Given>, Vec<String>> {
        if self.hosts.is_none() && self.hostfile.is_none() {
            return self.read_partition(defaults);
        }
        let (hosts, option) = match (&self.hosts, &self.hostfile) {
            (None, Some(file)) => {
                let option = format!("--hostfile '{}'", file.display());
                let text = std::fs::read_to_string(file).map_err(|error| vec![format!("{option}: {error}")])?;
                let told = |errors: Vec<HostsError>| -> Vec<String> {
                    errors.iter().map(|error| format!("{option}: {error}")).collect()
                };
                (parse_file(&text).map_err(told)?, option)
            }
            (list, _) => {
                let list = list.as_deref().unwrap_or_default();
                (parse_list(list).map_err(|error| vec![format!("--hosts: {error}")])?, "--hosts".to_owned())
            }
        };
        let launch = self.launch.clone().map_or_else(launch_of_environment, Ok)?;
        Ok(Some(self.given(defaults, hosts, launch, option, None)))
    }

    /// As the environment says, where the command line names no hosts.
    pub fn or_of_environment(mut self) -> Self {
        if self.hosts.is_none() && self.hostfile.is_none() && self.partition.is_none() {
            self.partition = std::env::var(PARTITION_VARIABLE).ok().filter(|name| !name.is_empty());
        }
        self
    }

    /// The hosts of the partition.
    fn read_partition(self, defaults: &Defaults) -> Result<Option<Given>, Vec<String>> {
        let Some(name) = self.partition.as_deref() else {
            return match (&self.launch, self.stage) {
                (None, false) => Ok(None),
                (Some(_), _) => Err(vec![
                    "--launch says how hosts are reached, but no --hosts, --hostfile or --partition which".into(),
                ]),
                _ => Err(vec![
                    "--stage copies Weft to other hosts, but no --hosts, --hostfile or --partition is given".into(),
                ]),
            };
        };
        let cluster = file::find()?.cluster;
        let partition = cluster.partition(Some(name).filter(|name| !name.is_empty()));
        let partition = partition.map_err(|error| vec![format!("partition {error}")])?.clone();
        let launch = self.launch.clone().map_or_else(|| file::launch_of(&cluster), Ok)?;
        let option = format!("partition '{}'", partition.name);
        let hosts = partition.open_hosts();
        if hosts.is_empty() {
            return Err(vec![format!(
                "{option}: all its members are drained, which is slots = 0 in the cluster's file"
            )]);
        }
        let named = self.launch.is_some() || self.stage;
        let given = self.given(defaults, hosts, launch, option, Some(partition));
        // Who says how hosts are reached does without daemons.
        Ok(Some(Given { cluster: if named { String::new() } else { cluster.name }, ..given }))
    }

    fn given(
        self,
        defaults: &Defaults,
        hosts: Vec<Host>,
        launch: Launch,
        option: String,
        partition: Option<Partition>,
    ) -> Given {
        let (patience, tree) = (defaults.launch_timeout, defaults.launch_tree);
        let wishes = Wishes { waits: self.wait && !self.no_wait, priority: self.priority, ..Wishes::default() };
        let (map, stage, cluster) = (self.map, self.stage, String::new());
        Given { hosts, map, launch, stage, patience, tree, option, partition, cluster, wishes }
    }
}

impl Given {
    /// How many ranks a job has here that does not say it.
    pub fn ranks(&self) -> usize {
        let wanted = ranks_wanted(&self.hosts, self.map);
        self.partition.as_ref().map_or(wanted, |partition| wanted.min(partition.most_ranks()))
    }

    /// The order of devices for jobs that say none.
    pub fn device(&self) -> Option<&str> {
        self.partition.as_ref()?.device.as_deref()
    }

    /// Room for a job of so many ranks, where daemons give it: with its hosts, or none where that is this one.
    #[allow(clippy::type_complexity)]
    pub fn ask(&self, ranks: usize, job: Wishes) -> Result<Option<(Room, Option<Hosts>)>, Vec<String>> {
        let Some(partition) = &self.partition else { return Ok(None) };
        let failed = |error: String| vec![format!("{}: {error}", self.option)];
        let wishes = Wishes { waits: self.wishes.waits, priority: self.wishes.priority, ..job };
        let asked = Room::ask(super::FRONT, &self.cluster, &partition.name, ranks, self.map, wishes);
        let Some((room, grant, is_here)) = asked.map_err(failed)? else { return Ok(None) };
        if is_here {
            return Ok(Some((room, None)));
        }
        let launch = room.launch().map_err(failed)?;
        let hosts = room::hosts_of(&grant, self.map, launch, self.patience).map_err(failed)?;
        Ok(Some((room, Some(hosts))))
    }

    /// The hosts of a job of so many ranks; none where that is this one, as a partition's only one.
    pub fn spread(self, ranks: usize) -> Result<Option<Hosts>, Vec<String>> {
        let failed = |error: String| vec![format!("{}: {error}", self.option)];
        let places = spread(&self.hosts, self.map, ranks).map_err(|error| failed(error.to_string()))?;
        if let Some(most) = self.partition.as_ref().map(Partition::most_ranks).filter(|most| ranks > *most) {
            return Err(failed(format!("{ranks} ranks, but a job may have {most} there")));
        }
        let used: std::collections::HashSet<usize> = places.iter().copied().collect();
        if used.len() > HOSTS_MAX {
            return Err(failed(format!("{ranks} ranks on {} hosts, but a job may use {HOSTS_MAX}", used.len())));
        }
        if self.partition.is_some() && are_here(&self.hosts) {
            return Ok(None);
        }
        Ok(Some(Hosts::new(&self.hosts, &places, self.launch, self.patience, self.stage, self.tree)))
    }
}

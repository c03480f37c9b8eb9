//! The options of `weft run` that say on which hosts.

use super::room::{self, JobRoom, Wishes};
use crate::cluster::file;
use crate::defaults::Defaults;
use crate::reach::{LAUNCH_VARIABLE, are_here, batch, launch_of_environment};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use weft_agent::LaunchHosts;
use weft_cluster::allocation::Allocation;
use weft_cluster::hosts::{
    HOSTS_MAX, HostsError, Launch, RankMap, SlotHost, parse_file, parse_list, ranks_wanted, spread,
};
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

    /// Run on this host alone also inside an allocation of Slurm, PBS or LSF, whose hosts and slots are taken when no
    /// option names hosts [default: WEFT_ALLOCATION, else on]
    #[arg(long)]
    no_allocation: bool,

    /// What was found of one, where that is to be used.
    #[arg(skip)]
    allocation: Option<Allocation>,

    /// The command that starts a program on a host, {host} being its name; its standard input and output must reach
    /// the program [default: WEFT_LAUNCH, else srun or blaunch in an allocation of Slurm or LSF, else ssh with
    /// -o BatchMode=yes and time limits]
    #[arg(long, value_name = "COMMAND")]
    launch: Option<Launch>,

    /// Copy this Weft, program and libraries, to hosts that do not have it in the same build, into the cache directory
    /// of the user there; what was copied is told
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
    map: RankMap,
}

/// The partition of jobs that name no hosts.
pub const PARTITION_VARIABLE: &str = "WEFT_PARTITION";

/// How to do without what a batch system has given.
const ALLOCATION_REMEDY: &str = "--no-allocation (WEFT_ALLOCATION=off) runs on this host alone";

/// Hosts as they were given.
pub struct GivenHosts {
    hosts: Vec<SlotHost>,
    map: RankMap,
    launch: Launch,
    stage: bool,
    patience: Option<Duration>,
    tree: Option<usize>,
    /// The option that gave them, for messages.
    option: String,
    source: HostSource,
    wishes: Wishes,
}

/// Where hosts come from.
enum HostSource {
    /// By the user, who may have said as well how they are reached.
    Listed { with_launch: bool },
    /// Of which cluster, if its daemons are to be asked for room, and whether one is to run here.
    Partition(Box<Partition>, Option<(String, bool)>),
    /// With the ranks that were asked for there.
    Allocation(Option<usize>),
}

impl HostArguments {
    /// The hosts, if any were given; or one line for each slip.
    pub fn read(mut self, defaults: &Defaults) -> Result<Option<GivenHosts>, Vec<String>> {
        if self.hosts.is_none() && self.hostfile.is_none() {
            return match self.allocation.take() {
                Some(allocation) => self.read_allocation(defaults, allocation).map(Some),
                None => self.read_partition(defaults),
            };
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
        let with_launch = self.launch.is_some() || std::env::var_os(LAUNCH_VARIABLE).is_some();
        let launch = self.launch.clone().map_or_else(launch_of_environment, Ok)?;
        Ok(Some(self.given(defaults, hosts, launch, option, HostSource::Listed { with_launch })))
    }

    /// As the environment says, where the command line names no hosts: a partition, or what a batch system has given.
    /// A job that is `bound` to this host takes none of the latter.
    ///
    /// # Errors
    /// What the batch system says is not understood.
    pub fn or_of_environment(mut self, defaults: &Defaults, bound: bool) -> Result<Self, Vec<String>> {
        if self.hosts.is_some() || self.hostfile.is_some() || self.partition.is_some() {
            return Ok(self);
        }
        self.partition = std::env::var(PARTITION_VARIABLE).ok().filter(|name| !name.is_empty());
        if self.partition.is_none() && defaults.allocation && !self.no_allocation && !bound {
            let found = batch::allocation();
            self.allocation = found.map_err(|error| vec![format!("{error}; {ALLOCATION_REMEDY}")])?;
        }
        Ok(self)
    }

    /// The hosts that a batch system has given.
    fn read_allocation(self, defaults: &Defaults, allocation: Allocation) -> Result<GivenHosts, Vec<String>> {
        let Allocation { system, hosts, ranks } = allocation;
        let launch = self.launch.clone().map_or_else(|| batch::launch(system), Ok)?;
        Ok(self.given(defaults, hosts, launch, format!("allocation of {system}"), HostSource::Allocation(ranks)))
    }

    /// The hosts of the partition.
    fn read_partition(self, defaults: &Defaults) -> Result<Option<GivenHosts>, Vec<String>> {
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
        let file = file::find_used()?;
        let has_daemons = file.has_daemons();
        let cluster = file.cluster;
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
        // Who says how hosts are reached does without daemons.
        let asked = (self.launch.is_none() && !self.stage).then_some((cluster.name, has_daemons));
        Ok(Some(self.given(defaults, hosts, launch, option, HostSource::Partition(Box::new(partition), asked))))
    }

    fn given(
        self,
        defaults: &Defaults,
        hosts: Vec<SlotHost>,
        launch: Launch,
        option: String,
        source: HostSource,
    ) -> GivenHosts {
        let (patience, tree) = (defaults.launch_timeout, defaults.launch_tree);
        let wishes = Wishes { waits: self.wait && !self.no_wait, priority: self.priority, ..Wishes::default() };
        let (map, stage) = (self.map, self.stage);
        GivenHosts { hosts, map, launch, stage, patience, tree, option, source, wishes }
    }
}

impl GivenHosts {
    /// This one of them alone.
    pub fn keep_only(&mut self, name: &str) -> Result<(), String> {
        let names: Vec<String> = self.hosts.iter().map(|host| host.name.clone()).collect();
        self.hosts.retain(|host| host.name == name);
        match self.hosts.is_empty() {
            true => Err(format!("host '{name}' is none of this job's, which are '{}'", names.join("', '"))),
            false => Ok(()),
        }
    }

    /// How many ranks a job has here that does not say it.
    pub fn ranks(&self) -> usize {
        let wanted = ranks_wanted(&self.hosts, self.map);
        match &self.source {
            HostSource::Listed { .. } => wanted,
            HostSource::Partition(partition, _) => wanted.min(partition.most_ranks()),
            HostSource::Allocation(ranks) => wanted.min(ranks.unwrap_or(wanted)),
        }
    }

    /// The name of the partition that they are.
    pub fn partition(&self) -> Option<String> {
        match &self.source {
            HostSource::Partition(partition, _) => Some(partition.name.clone()),
            _ => None,
        }
    }

    /// The order of devices for jobs that say none.
    pub fn device(&self) -> Option<&str> {
        match &self.source {
            HostSource::Partition(partition, _) => partition.device.as_deref(),
            _ => None,
        }
    }

    /// JobRoom for a job of so many ranks, where daemons give it: with its hosts, or none where that is this one.
    #[allow(clippy::type_complexity)]
    pub fn ask(&self, ranks: usize, job: Wishes) -> Result<Option<(JobRoom, Option<LaunchHosts>)>, Vec<String>> {
        let HostSource::Partition(partition, Some((cluster, has_daemons))) = &self.source else { return Ok(None) };
        // What the daemon says of the partition begins with its name already.
        let failed = |error: String| {
            let error = error.strip_prefix(&self.option).map_or_else(|| format!(": {error}"), str::to_owned);
            vec![format!("{}{error}", self.option)]
        };
        let wishes = Wishes { waits: self.wishes.waits, priority: self.wishes.priority, ..job };
        let asked = JobRoom::ask(super::FRONT, cluster, &partition.name, ranks, self.map, wishes);
        let is_off = std::env::var_os(weft_requests::client::VARIABLE).is_some_and(|name| name == "off");
        let Some((room, grant, is_here)) = asked.map_err(failed)? else {
            if is_off || !(*has_daemons || self.wishes.waits) {
                return Ok(None);
            }
            return Err(failed(format!(
                "no daemon of cluster '{cluster}' runs on this host, so nobody counts its slots; weft cluster start \
                 starts it, and WEFT_DAEMON=off does without"
            )));
        };
        if is_here {
            return Ok(Some((room, None)));
        }
        let launch = room.launch().map_err(failed)?;
        let hosts = room::hosts_of(&grant, self.map, launch, room::patience(self.patience)).map_err(failed)?;
        Ok(Some((room, Some(hosts))))
    }

    /// The hosts of a job of so many ranks; none where that is this one alone, and no launch command was named for it.
    pub fn spread(self, ranks: usize) -> Result<Option<LaunchHosts>, Vec<String>> {
        let remedy = match self.source {
            HostSource::Allocation(_) => format!("; {ALLOCATION_REMEDY}"),
            _ => String::new(),
        };
        let failed = |error: String| vec![format!("{}: {error}{remedy}", self.option)];
        let places = spread(&self.hosts, self.map, ranks).map_err(|error| failed(error.to_string()))?;
        let used: std::collections::HashSet<usize> = places.iter().copied().collect();
        if used.len() > HOSTS_MAX {
            return Err(failed(format!("{ranks} ranks on {} hosts, but a job may use {HOSTS_MAX}", used.len())));
        }
        match &self.source {
            HostSource::Partition(partition, _) if ranks > partition.most_ranks() => {
                let most = partition.most_ranks();
                return Err(failed(format!("{ranks} ranks, but a job may have {most} there")));
            }
            HostSource::Listed { with_launch: true } => {}
            // Nothing has to be reached, and this host may take no ssh from itself.
            _ if are_here(&self.hosts) => return Ok(None),
            _ => {}
        }
        Ok(Some(LaunchHosts::new(&self.hosts, &places, self.launch, self.patience, self.stage, self.tree)))
    }
}

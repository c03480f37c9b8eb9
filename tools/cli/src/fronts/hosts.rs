//! Hosts as other launchers list them.

use super::Slip;
use super::draft::Draft;
use crate::reach::{are_here, batch, is_here, launch_of_environment};
use weft_agent::LaunchHosts;
use weft_cluster::allocation::expand;
use weft_cluster::hosts::{Launch, RankMap, SlotHost, parse_list, ranks_wanted as ranks_of, spread};

/// Hosts of one list or file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedHosts {
    pub hosts: Vec<SlotHost>,
    /// Slots were given, for one at least.
    pub counted: bool,
    /// What gave them, for messages.
    pub option: String,
}

/// Reads `a:2,b`. A host that is listed twice has the slots of both.
pub fn read_list(option: &str, given: &str) -> Result<ListedHosts, Slip> {
    gather(option, given.split(',').map(|host| host.trim().to_owned()))
}

/// Reads a list as Slurm writes it, such as `login,node[01-03,7]`.
pub fn read_node_list(option: &str, given: &str) -> Result<ListedHosts, Slip> {
    let slip = || format!("{option} '{given}' is no list of hosts such as login,node[01-03,7]");
    gather(option, expand(given).ok_or_else(slip)?.into_iter())
}

/// Reads lines such as `host`, `host:4`, `host slots=4 max_slots=8` or `host cpu=4`, with comments after `#`.
pub fn read_file(option: &str, file: &str) -> Result<ListedHosts, Slip> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{option} '{file}' cannot be read: {error}"))?;
    let option = format!("{option} {file}");
    let (mut hosts, mut slips) = (Vec::new(), Vec::new());
    for (at, line) in text.lines().enumerate() {
        match host_of(line) {
            Ok(host) => hosts.extend(host),
            Err(slip) => slips.push(format!("line {}: {slip}", at + 1)),
        }
    }
    match slips.is_empty() {
        true => gather(&option, hosts.into_iter()),
        false => Err(format!("{option}: {}; a line is HOST, HOST:SLOTS or HOST slots=SLOTS", slips.join("; "))),
    }
}

/// The host of a line, as `NAME` or `NAME:SLOTS`; none in an empty one. What other launchers have besides, and Weft
/// needs not, is left out.
fn host_of(line: &str) -> Result<Option<String>, Slip> {
    const NOT_NEEDED: [&str; 6] = ["max_slots", "max-slots", "ifname", "username", "user", "port"];
    let line = line.split('#').next().unwrap_or_default().split('=').map(str::trim).collect::<Vec<_>>().join("=");
    let mut words = line.split_whitespace();
    let Some(name) = words.next() else { return Ok(None) };
    let mut host = name.to_owned();
    for word in words {
        match word.split_once('=') {
            Some(("slots" | "cpu", slots)) => host = format!("{name}:{slots}"),
            Some((key, _)) if NOT_NEEDED.contains(&key) => {}
            _ => return Err(format!("'{word}' is not understood")),
        }
    }
    parse_list(&host).map(|_| Some(host)).map_err(|error| error.to_string())
}

fn gather(option: &str, given: impl Iterator<Item = String>) -> Result<ListedHosts, Slip> {
    let mut listed = ListedHosts { hosts: Vec::new(), counted: false, option: option.to_owned() };
    for given in given {
        let hosts = parse_list(&given).map_err(|error| format!("{option}: {error}"))?;
        listed.add(hosts, given.contains(':'));
    }
    (!listed.hosts.is_empty()).then_some(listed).ok_or_else(|| format!("{option}: no host is listed"))
}

impl ListedHosts {
    fn add(&mut self, hosts: Vec<SlotHost>, counted: bool) {
        self.counted |= counted;
        for host in hosts {
            match self.hosts.iter_mut().find(|other| other.name == host.name) {
                Some(other) => other.slots += host.slots,
                None => self.hosts.push(host),
            }
        }
    }

    /// This list behind one that the same program had before. Those of `-host` add up, as for Open MPI; of all others
    /// there may be one, as for MPICH.
    pub fn behind(self, before: Option<Self>) -> Result<Self, Slip> {
        let Some(mut before) = before else { return Ok(self) };
        let adds_up = |listed: &Self| ["-H", "-host", "--H", "--host"].contains(&listed.option.as_str());
        if !adds_up(&before) || !adds_up(&self) {
            return Err(format!("{}: {} lists hosts already; only -host may stand twice", self.option, before.option));
        }
        before.add(self.hosts, self.counted);
        Ok(before)
    }

    /// Without those of another list. A host is named as it was listed.
    pub fn leave_out(&mut self, others: &Self) {
        self.hosts.retain(|host| !others.hosts.iter().any(|other| other.name == host.name));
    }

    fn slots(&self) -> usize {
        self.hosts.iter().map(|host| host.slots).sum()
    }

    /// All of them are names of this host.
    pub fn is_here(&self) -> bool {
        are_here(&self.hosts)
    }

    /// One of them at least is.
    pub fn names_here(&self) -> bool {
        self.hosts.iter().any(|host| is_here(&host.name))
    }

    /// The host of each of so many ranks. Those beyond the slots begin again with the first, unless slots were given.
    fn spread(&self, ranks: usize, draft: &Draft) -> Result<Vec<usize>, Slip> {
        let mut hosts = self.hosts.clone();
        let map = draft.per_host.map_or(draft.map, RankMap::PerHost);
        let least = draft.per_host.filter(|_| !self.counted || draft.oversubscribe).unwrap_or(0);
        hosts.iter_mut().for_each(|host| host.slots = host.slots.max(least));
        let all = ranks_of(&hosts, map);
        let again = ranks > all && (!self.counted || draft.oversubscribe);
        let places = spread(&hosts, map, if again { all } else { ranks });
        let places = places.map_err(|error| format!("{}: {error}; --oversubscribe takes more", self.option))?;
        Ok((0..ranks).map(|rank| places[rank % places.len()]).collect())
    }
}

/// How many ranks a program has that does not say it.
pub fn ranks_wanted(listed: Option<&ListedHosts>, per_host: Option<usize>) -> usize {
    match (listed, per_host) {
        (Some(listed), Some(count)) if !listed.is_here() => count * listed.hosts.len(),
        (_, Some(count)) => count,
        (Some(listed), None) => listed.slots(),
        (None, None) => 1,
    }
}

/// What a batch system has given, and how it is reached.
fn allocated(draft: &Draft) -> Result<Option<(ListedHosts, Launch)>, Slip> {
    if !draft.defaults.allocation {
        return Ok(None);
    }
    let told = |error| format!("{error}; WEFT_ALLOCATION=off does without");
    let Some(found) = batch::allocation().map_err(told)? else { return Ok(None) };
    let option = format!("allocation of {} (WEFT_ALLOCATION=off does without)", found.system);
    let launch = batch::launch(found.system).map_err(|errors| errors.join("; "))?;
    Ok(Some((ListedHosts { hosts: found.hosts, counted: true, option }, launch)))
}

/// The hosts of the job, when it is not this one alone. A program without a list of its own runs on the first one's;
/// where none has one, on what a batch system has given.
pub fn of(draft: &Draft) -> Result<Option<LaunchHosts>, Slip> {
    let (first, launch) = match draft.parts.iter().find_map(|part| part.hosts.clone()) {
        Some(first) => (first, launch_of_environment().map_err(|errors| errors.join("; "))?),
        None => match allocated(draft)? {
            Some(found) => found,
            None => return Ok(None),
        },
    };
    let lists: Vec<&ListedHosts> = draft.parts.iter().map(|part| part.hosts.as_ref().unwrap_or(&first)).collect();
    if lists.iter().all(|listed| listed.is_here()) {
        return Ok(None);
    }
    let mut union: Vec<SlotHost> = Vec::new();
    for host in lists.iter().flat_map(|listed| &listed.hosts) {
        if !union.iter().any(|other| other.name == host.name) {
            union.push(host.clone());
        }
    }
    let mut places = Vec::new();
    let ranks = |parts: std::ops::Range<usize>| draft.parts[parts].iter().map(|part| part.program.ranks).sum();
    let mut at = 0;
    while at < lists.len() {
        // Neighbours with one list share its slots.
        let end = (at..lists.len()).find(|next| lists[*next] != lists[at]).unwrap_or(lists.len());
        let listed = lists[at];
        let number = |place: usize| union.iter().position(|host| host.name == listed.hosts[place].name).unwrap_or(0);
        places.extend(listed.spread(ranks(at..end), draft)?.into_iter().map(number));
        at = end;
    }
    let (patience, tree) = (draft.defaults.launch_timeout, draft.defaults.launch_tree);
    Ok(Some(LaunchHosts::new(&union, &places, launch, patience, false, tree)))
}

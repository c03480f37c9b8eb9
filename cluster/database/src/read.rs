//! Reading the file.

use crate::entries::{Entries, Lined, Mistake, Mistakes};
use crate::reservation::{last_slots, whole};
use crate::{
    Cluster, MEMBERS_MAX, Member, PARTITIONS_MAX, PORT, PRIORITIES, Partition, PartitionLimits, RESERVATIONS_MAX,
    Reservation, SERVERS_MAX, SLICE_MS, SLICES_MS, SchedulingPolicy, read_time,
};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::IpAddr;
use toml::de::DeTable;
use weft_cluster::hosts::{Launch, SlotHost, parse_list};
use weft_cluster::job::RANKS_MAX;
use weft_wire::settings::Settings;

/// Bytes of the longest name of a cluster, a partition or a feature.
const NAME_BYTES: usize = 64;
/// Bytes of the longest name of a user or a group.
const ACCOUNT_BYTES: usize = 200;
/// How many servers there are where the file says none.
const SERVERS: usize = 2;

/// Reads a file.
///
/// # Errors
/// All its mistakes, in the order of their lines. Where it is no TOML, those that make it none.
pub fn read(text: &str) -> Result<Cluster, Vec<Mistake>> {
    let mistakes = Mistakes::of(text);
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let line = mistakes.line(error.span().unwrap_or_default());
        mistakes.tell(line, error.message().trim().replace('\n', ", "));
    }
    let mut cluster = None;
    if errors.is_empty() {
        let reader = ClusterReader { mistakes: &mistakes };
        cluster = reader.cluster(Entries::new("a cluster", &document, &mistakes));
    }
    let told = mistakes.into_sorted();
    cluster.filter(|_| told.is_empty()).ok_or(told)
}

struct ClusterReader<'t> {
    mistakes: &'t Mistakes,
}

/// Members in their order, and which of them has a name.
#[derive(Default)]
struct MemberList {
    all: Vec<Member>,
    places: HashMap<String, usize>,
}

impl MemberList {
    fn named(&self, name: &str) -> Option<&Member> {
        self.places.get(name).map(|at| &self.all[*at])
    }
}

impl<'t> ClusterReader<'t> {
    fn tell<T>(&self, of: &Lined<T>, what: String) {
        self.mistakes.tell(of.line, what);
    }

    /// `None` only after a mistake was told.
    fn cluster(&self, mut entries: Entries<'t>) -> Option<Cluster> {
        let name = entries.needed_text("name");
        let name = name.inspect(|name| self.check_name(name, "cluster"));
        let version = entries.number("version", 0..=i64::MAX).map_or(1, |given| given.value.unsigned_abs());
        let launch = entries.text("launch");
        let launch = launch.and_then(|given| self.understood(&given, given.value.parse::<Launch>()));
        let port = entries.count("port", 1..=usize::from(u16::MAX)).and_then(|port| u16::try_from(port).ok());
        let slice_ms = entries.count("slice_ms", SLICES_MS).unwrap_or(SLICE_MS);
        let servers = entries.texts("servers");
        let default = entries.text("default");
        let members = self.members(entries.tables("member", "a member"), entries.line)?;
        let servers = self.servers(servers, &members);
        let mut partitions = self.partitions(entries.tables("partition", "a partition"), &members);
        let reserved = entries.tables("reservation", "a reservation");
        entries.end();
        let name = name?.value;
        if partitions.is_empty() {
            partitions.push(Partition::new(name.clone(), members.all.iter().map(Member::host).collect()));
        }
        let reservations = self.reservations(reserved, &partitions, &members);
        if let Some(default) = default {
            match partitions.iter().position(|partition| partition.name == default.value) {
                Some(at) => partitions[..=at].rotate_right(1),
                None => self.tell(&default, format!("default = '{}', which is no partition", default.value)),
            }
        }
        let port = port.unwrap_or(PORT);
        let members = members.all;
        Some(Cluster { name, version, launch, servers, port, slice_ms, members, partitions, reservations })
    }

    fn members(&self, written: Vec<Entries<'t>>, top: usize) -> Option<MemberList> {
        let mut members = MemberList::default();
        let mut lines = HashMap::with_capacity(written.len());
        if written.is_empty() {
            self.mistakes.tell(top, "there is no [[member]]".to_owned());
        }
        if written.len() > MEMBERS_MAX {
            self.mistakes.tell(top, format!("{} members; a cluster may have {MEMBERS_MAX}", written.len()));
            return None;
        }
        for entries in written {
            let Some((line, member)) = self.member(entries) else { continue };
            if let Some(first) = lines.insert(member.name.clone(), line) {
                self.mistakes.tell(line, format!("member '{}' stands in line {first} already", member.name));
                continue;
            }
            members.places.insert(member.name.clone(), members.all.len());
            members.all.push(member);
        }
        Some(members)
    }

    fn member(&self, mut entries: Entries<'t>) -> Option<(usize, Member)> {
        let name = entries.needed_text("name");
        let slots = entries.count("slots", 0..=RANKS_MAX).unwrap_or(1);
        let cores = entries.count("cores", 1..=RANKS_MAX);
        let features = self.features(&mut entries);
        let given = entries.text_or_texts("address").map_or_else(Vec::new, |given| given.value);
        let addresses = given.iter().filter_map(|given| {
            let allowed = "allowed are addresses as 10.0.0.1 or fd00::1";
            let read = given.value.parse::<IpAddr>().map_err(|_| format!("address = '{}', {allowed}", given.value));
            self.understood(given, read)
        });
        let addresses = addresses.collect();
        entries.end();
        let name = name?;
        // As it stands in a list of hosts: what is no name there is none here.
        match parse_list(&name.value) {
            Ok(hosts) if hosts[0].name == name.value => {
                Some((name.line, Member { name: name.value, slots, addresses, cores, features }))
            }
            _ => {
                self.tell(
                    &name,
                    format!(
                        "member '{}' is no name of a host: allowed are letters, digits and any of -._@%",
                        name.value
                    ),
                );
                None
            }
        }
    }

    fn servers(&self, given: Option<Lined<Vec<Lined<String>>>>, members: &MemberList) -> Vec<String> {
        let Some(given) = given else {
            return members.all.iter().take(SERVERS).map(|member| member.name.clone()).collect();
        };
        if !(1..=SERVERS_MAX).contains(&given.value.len()) {
            self.tell(&given, format!("{} servers, allowed are 1 to {SERVERS_MAX}", given.value.len()));
        }
        self.named(&given.value, members).into_iter().map(|member| member.name.clone()).collect()
    }

    fn partitions(&self, written: Vec<Entries<'t>>, members: &MemberList) -> Vec<Partition> {
        if let Some(beyond) = written.get(PARTITIONS_MAX) {
            let most = format!("a cluster may have {PARTITIONS_MAX}");
            self.mistakes.tell(beyond.line, format!("{} partitions; {most}", written.len()));
            return Vec::new();
        }
        let mut names = HashSet::new();
        let mut partitions = Vec::with_capacity(written.len());
        for entries in written {
            let Some((line, partition)) = self.partition(entries, members) else { continue };
            if !names.insert(partition.name.clone()) {
                self.mistakes.tell(line, format!("partition '{}' is there twice", partition.name));
            }
            partitions.push(partition);
        }
        partitions
    }

    fn partition(&self, mut entries: Entries<'t>, members: &MemberList) -> Option<(usize, Partition)> {
        let name = entries.needed_text("name");
        let named = entries.texts("members").map(|named| named.value);
        let features = self.features(&mut entries);
        let users = entries.texts("users").map(|users| self.accounts(users.value, "user"));
        let groups = entries.texts("groups").map(|groups| self.accounts(groups.value, "group"));
        let priority = self.priority(&mut entries, "priority").map(|given| given.value).unwrap_or_default();
        let limits = self.limits(&mut entries, priority);
        let policy = entries.text("policy").and_then(|given| {
            let read = SchedulingPolicy::ALL.into_iter().find(|policy| policy.name() == given.value);
            self.understood(
                &given,
                read.ok_or_else(|| format!("policy = '{}', allowed are other, fifo and gang", given.value)),
            )
        });
        let device = entries.text("device").and_then(|given| {
            let read = Settings::from_env([("WEFT_DEVICE", &given.value)]);
            self.understood(&given, read.map_err(|errors| errors[0].to_string()).map(|_| given.value.clone()))
        });
        entries.end();
        let name = name?;
        self.check_name(&name, "partition");
        let hosts = self.hosts(&name, named, &features, members, limits.processes);
        let Lined { line, value: name } = name;
        let policy = policy.unwrap_or_default();
        Some((line, Partition { name, hosts, features, users, groups, limits, device, priority, policy }))
    }

    fn limits(&self, entries: &mut Entries<'t>, priority: i32) -> PartitionLimits {
        let ranks = entries.count("ranks", 1..=RANKS_MAX);
        let processes = entries.count("processes", 1..=RANKS_MAX);
        let time = entries.text("time").and_then(|given| {
            let allowed = "allowed are times as 90s, 30m, 2h, 1d12h";
            self.understood(
                &given,
                read_time(&given.value).ok_or_else(|| format!("time = '{}', {allowed}", given.value)),
            )
        });
        let highest = self.priority(entries, "highest");
        if let Some(highest) = highest.as_ref().filter(|highest| highest.value < priority) {
            let most = PRIORITIES.end();
            self.tell(highest, format!("highest = {}, allowed is {priority} (its priority) to {most}", highest.value));
        }
        let highest = highest.map_or(priority, |highest| highest.value);
        PartitionLimits { ranks, time, processes, highest, exclusive: entries.is_set("exclusive") }
    }

    fn priority(&self, entries: &mut Entries<'t>, key: &'static str) -> Option<Lined<i32>> {
        let Lined { line, value } =
            entries.number(key, i64::from(*PRIORITIES.start())..=i64::from(*PRIORITIES.end()))?;
        i32::try_from(value).ok().map(|value| Lined { line, value })
    }

    /// The hosts of a partition: those it names, else all that have its features.
    fn hosts(
        &self,
        name: &Lined<String>,
        named: Option<Vec<Lined<String>>>,
        features: &[String],
        members: &MemberList,
        processes: Option<usize>,
    ) -> Vec<SlotHost> {
        let missing = |member: &Member| features.iter().find(|feature| !member.features.contains(feature));
        let chosen: Vec<&Member> = match &named {
            None => members.all.iter().filter(|member| missing(member).is_none()).collect(),
            Some(named) => {
                for given in named {
                    let lacks = members.named(&given.value).and_then(missing);
                    if let Some(feature) = lacks {
                        self.tell(given, format!("member '{}' has no feature '{feature}'", given.value));
                    }
                }
                self.named(named, members)
            }
        };
        if chosen.is_empty() && !members.all.is_empty() {
            let why = if named.is_some() { "has no members" } else { "has features that no member has" };
            self.tell(name, format!("partition '{}' {why}", name.value));
        }
        let most = processes.unwrap_or(RANKS_MAX);
        chosen.iter().map(|member| SlotHost { slots: member.slots.min(most), ..member.host() }).collect()
    }

    /// The members of a list that has each of them once.
    fn named<'m>(&self, list: &[Lined<String>], members: &'m MemberList) -> Vec<&'m Member> {
        let mut seen = HashSet::with_capacity(list.len());
        let each = list.iter().filter_map(|given| {
            let Some(member) = members.named(&given.value) else {
                self.tell(given, format!("'{}' is no member", given.value));
                return None;
            };
            if !seen.insert(&member.name) {
                self.tell(given, format!("'{}' is listed twice", given.value));
                return None;
            }
            Some(member)
        });
        each.collect()
    }

    fn reservations(
        &self,
        written: Vec<Entries<'t>>,
        partitions: &[Partition],
        members: &MemberList,
    ) -> Vec<Reservation> {
        if let Some(beyond) = written.get(RESERVATIONS_MAX) {
            let most = format!("a cluster may have {RESERVATIONS_MAX}");
            self.mistakes.tell(beyond.line, format!("{} reservations; {most}", written.len()));
            return Vec::new();
        }
        let mut names = HashSet::new();
        let read = written.into_iter().filter_map(|entries| {
            let (line, reservation) = self.reservation(entries, partitions, members)?;
            if !names.insert(reservation.name.clone()) {
                self.mistakes.tell(line, format!("reservation '{}' is there twice", reservation.name));
            }
            Some(reservation)
        });
        read.collect()
    }

    fn reservation(
        &self,
        mut entries: Entries<'t>,
        partitions: &[Partition],
        members: &MemberList,
    ) -> Option<(usize, Reservation)> {
        let name = entries.needed_text("name");
        let on = entries.needed_text("partition");
        let named = entries.texts("members").map(|named| named.value);
        let slots = entries.count("slots", 1..=MEMBERS_MAX * RANKS_MAX);
        let (from, until) = (entries.needed_moment("from"), entries.needed_moment("until"));
        let users = entries.texts("users").map(|users| self.accounts(users.value, "user")).unwrap_or_default();
        let (line, entries_line) = (name.as_ref().map_or(entries.line, |name| name.line), entries.line);
        entries.end();
        let (name, on) = (name?, on?);
        self.check_name(&name, "reservation");
        let (from, until) = (from?, until?);
        if from.value >= until.value {
            self.tell(&until, "until is not after from".to_owned());
        }
        let Some(partition) = partitions.iter().find(|partition| partition.name == on.value) else {
            self.tell(&on, format!("partition = '{}', which is none", on.value));
            return None;
        };
        let hosts = match (&named, slots) {
            (Some(_), Some(_)) => {
                self.mistakes.tell(entries_line, "a reservation has members or slots, not both".to_owned());
                return None;
            }
            (None, Some(slots)) => last_slots(partition, slots),
            (None, None) => whole(partition.hosts.iter().filter_map(|host| members.named(&host.name))),
            (Some(named), None) => {
                let chosen = self.named(named, members);
                for given in named.iter().filter(|given| members.named(&given.value).is_some()) {
                    if !partition.hosts.iter().any(|host| host.name == given.value) {
                        self.tell(given, format!("'{}' is not in partition '{}'", given.value, partition.name));
                    }
                }
                whole(chosen.into_iter())
            }
        };
        let reserved: usize = hosts.iter().map(|host| host.slots).sum();
        if slots.is_some_and(|slots| slots > reserved) {
            let has = format!("partition '{}' has {reserved}", partition.name);
            self.mistakes.tell(line, format!("slots = {}, and {has}", slots.unwrap_or_default()));
        }
        let (name, partition) = (name.value, partition.name.clone());
        Some((line, Reservation { name, partition, slots, hosts, from: from.value, until: until.value, users }))
    }

    fn features(&self, entries: &mut Entries<'t>) -> Vec<String> {
        let given = entries.texts("features").map_or_else(Vec::new, |given| given.value);
        given.iter().for_each(|feature| self.check_name(feature, "feature"));
        given.into_iter().map(|feature| feature.value).collect()
    }

    fn accounts(&self, given: Vec<Lined<String>>, of: &str) -> Vec<String> {
        for account in &given {
            let plain = |letter: char| !letter.is_control() && !letter.is_whitespace() && !":,".contains(letter);
            if !(1..=ACCOUNT_BYTES).contains(&account.value.len()) || !account.value.chars().all(plain) {
                let allowed = format!("up to {ACCOUNT_BYTES} bytes without blanks, ':' and ','");
                self.tell(account, format!("'{}' is no name of a {of}: {allowed}", account.value.escape_debug()));
            }
        }
        given.into_iter().map(|account| account.value).collect()
    }

    fn check_name(&self, name: &Lined<String>, of: &str) {
        let given = &name.value;
        let plain = given.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if !plain || !given.starts_with(|first: char| first.is_ascii_alphanumeric()) || given.len() > NAME_BYTES {
            let allowed = format!("letters, digits, '-', '_' and '.', {NAME_BYTES} at most, a letter or digit first");
            self.tell(name, format!("'{given}' is no name of a {of}: {allowed}"));
        }
    }

    fn understood<T, V, E: fmt::Display>(&self, given: &Lined<V>, read: Result<T, E>) -> Option<T> {
        read.map_err(|error| self.tell(given, error.to_string())).ok()
    }
}

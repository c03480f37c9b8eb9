//! A cluster as TXT records of the domain name system.
//!
//! Each record is a list of texts `KEY=VALUE` of 255 bytes at most. The first says what the record describes, as in
//! `member=12/0/1`: the number of the member, the number of this record among those of the member, and how many those
//! are. What does not fit into one record goes on in the next; lists have a text for each element.
//!
//! The records lie under two kinds of names below the zone. The *head* is `_weft`: what holds for the cluster, the
//! version, and in how many *blocks* the rest lies. Blocks are `0.VERSION._weft`, `1.VERSION._weft` and so on, each
//! with as many members and partitions as are fetched well in one answer. As the version is part of the names, what is
//! fetched from name servers and caches of different age never is a mixture: a block is of this version, or it is not
//! there.
//!
//! Members of a partition are numbers in ranges (`members=0-99 120`), in the order in which they are filled.
//!
//! The launch command is not among them. Who can forge an answer could run commands with it.
//!
//! What is read is a claim. It is checked as a file is, by writing it as one.

use crate::{
    Cluster, MEMBERS_MAX, Member, PARTITIONS_MAX, Partition, RESERVATIONS_MAX, Reservation, SLICE_MS, SchedulingPolicy,
    read, read_moment, read_time, show_moment, show_time, write,
};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;
use weft_cluster::hosts::SlotHost;

/// What the form of the records is called. Who meets another one does not read on.
const FORM: &str = "weft1";
/// The longest text of a record.
const TEXT_BYTES: usize = 255;
/// About how many bytes of texts a record, and a block, has.
const RECORD_BYTES: usize = 4096;
const BLOCK_BYTES: usize = 8192;
/// Most blocks; with it, most bytes that are fetched.
pub const BLOCKS_MAX: usize = 1024;

/// The texts of a record.
pub type Texts = Vec<String>;

/// Records with the name, below the zone, that they have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordBlock {
    pub name: String,
    pub records: Vec<Texts>,
}

/// Where the head lies, below the zone.
pub const HEAD: &str = "_weft";

/// Where a block lies, below the zone.
pub fn block_name(number: usize, version: u64) -> String {
    format!("{number}.{version}.{HEAD}")
}

/// All records of a cluster, the head first.
pub fn records(cluster: &Cluster) -> Vec<RecordBlock> {
    let places: BTreeMap<&str, usize> =
        cluster.members.iter().enumerate().map(|(at, member)| (member.name.as_str(), at)).collect();
    let members = cluster.members.iter().enumerate().map(|(at, member)| split("member", at, of_member(member)));
    let partitions = cluster.partitions.iter().enumerate();
    let partitions = partitions.map(|(at, partition)| split("partition", at, of_partition(partition, &places)));
    let mut blocks: Vec<RecordBlock> = Vec::new();
    let mut room = 0;
    let reservations = cluster.reservations.iter().enumerate();
    let reservations = reservations.map(|(at, one)| split("reservation", at, of_reservation(one, &places)));
    for record in members.chain(partitions).chain(reservations).flatten() {
        let bytes = record.iter().map(|text| text.len() + 1).sum();
        if room < bytes {
            let name = block_name(blocks.len(), cluster.version);
            blocks.push(RecordBlock { name, records: Vec::new() });
            room = BLOCK_BYTES.max(bytes);
        }
        room -= bytes;
        blocks.last_mut().expect("there is one").records.push(record);
    }
    let head = split("cluster", 0, of_cluster(cluster, blocks.len()));
    blocks.insert(0, RecordBlock { name: HEAD.to_owned(), records: head });
    blocks
}

fn split(kind: &str, number: usize, texts: Texts) -> Vec<Texts> {
    let mut parts: Vec<Texts> = vec![Vec::new()];
    let mut room = RECORD_BYTES;
    for text in texts {
        debug_assert!(text.len() <= TEXT_BYTES, "{text}");
        if room < text.len() {
            parts.push(Vec::new());
            room = RECORD_BYTES;
        }
        room -= text.len();
        parts.last_mut().expect("there is one").push(text);
    }
    let all = parts.len();
    let each = parts.into_iter().enumerate();
    each.map(|(part, texts)| [vec![format!("{kind}={number}/{part}/{all}")], texts].concat()).collect()
}

fn of_cluster(cluster: &Cluster, blocks: usize) -> Texts {
    let mut texts = vec![format!("form={FORM}"), format!("name={}", cluster.name)];
    texts.push(format!("version={}", cluster.version));
    texts.extend(each("server", &cluster.servers));
    texts.push(format!("port={}", cluster.port));
    texts.push(format!("members={}", cluster.members.len()));
    texts.push(format!("partitions={}", cluster.partitions.len()));
    if !cluster.reservations.is_empty() {
        texts.push(format!("reservations={}", cluster.reservations.len()));
    }
    if cluster.slice_ms != SLICE_MS {
        texts.push(format!("slice_ms={}", cluster.slice_ms));
    }
    texts.push(format!("blocks={blocks}"));
    texts
}

fn each<T: Display>(key: &str, values: &[T]) -> impl Iterator<Item = String> {
    values.iter().map(move |value| format!("{key}={value}"))
}

fn of_member(member: &Member) -> Texts {
    let mut texts = vec![format!("name={}", member.name), format!("slots={}", member.slots)];
    texts.extend(each("address", &member.addresses));
    texts.extend(member.cores.map(|cores| format!("cores={cores}")));
    texts.extend(each("feature", &member.features));
    texts
}

fn of_partition(partition: &Partition, places: &BTreeMap<&str, usize>) -> Texts {
    let mut texts = vec![format!("name={}", partition.name)];
    texts.extend(each("feature", &partition.features));
    // A list of nobody is not the same as none.
    texts.extend(partition.users.as_ref().map(|_| "users=listed".to_owned()));
    texts.extend(each("user", partition.users.as_deref().unwrap_or_default()));
    texts.extend(partition.groups.as_ref().map(|_| "groups=listed".to_owned()));
    texts.extend(each("group", partition.groups.as_deref().unwrap_or_default()));
    let limits = &partition.limits;
    texts.extend(limits.ranks.map(|ranks| format!("ranks={ranks}")));
    texts.extend(limits.time.map(|time| format!("time={}", show_time(time))));
    texts.extend(limits.processes.map(|processes| format!("processes={processes}")));
    texts.extend(limits.exclusive.then(|| "exclusive=true".to_owned()));
    texts.push(format!("priority={}", partition.priority));
    texts.push(format!("highest={}", limits.highest));
    texts.push(format!("policy={}", partition.policy.name()));
    texts.extend(partition.device.as_ref().map(|device| format!("device={device}")));
    texts.extend(texts_of_hosts(&partition.hosts, places));
    texts
}

fn of_reservation(reservation: &Reservation, places: &BTreeMap<&str, usize>) -> Texts {
    let mut texts = vec![format!("name={}", reservation.name), format!("partition={}", reservation.partition)];
    texts.push(format!("from={}", show_moment(reservation.from)));
    texts.push(format!("until={}", show_moment(reservation.until)));
    texts.extend(each("user", &reservation.users));
    match reservation.slots {
        Some(slots) => texts.push(format!("slots={slots}")),
        None => texts.extend(texts_of_hosts(&reservation.hosts, places)),
    }
    texts
}

fn texts_of_hosts(hosts: &[SlotHost], places: &BTreeMap<&str, usize>) -> Texts {
    let mut texts = Vec::new();
    let mut ranges = String::new();
    for range in ranges_of(hosts.iter().map(|host| places[host.name.as_str()])) {
        if ranges.len() + range.len() + "members= ".len() > TEXT_BYTES {
            texts.push(format!("members={ranges}"));
            ranges.clear();
        }
        ranges = if ranges.is_empty() { range } else { format!("{ranges} {range}") };
    }
    texts.push(format!("members={ranges}"));
    texts
}

/// Numbers that follow each other as `FIRST-LAST`.
fn ranges_of(numbers: impl Iterator<Item = usize>) -> Vec<String> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let shown = |(first, last)| if first == last { format!("{first}") } else { format!("{first}-{last}") };
    ranges.into_iter().map(shown).collect()
}

/// What the head says: which version it is, and in how many blocks the rest lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneHead {
    pub version: u64,
    pub blocks: usize,
    members: usize,
    partitions: usize,
    reservations: usize,
    slice_ms: usize,
    name: String,
    servers: Vec<String>,
    port: u16,
}

/// Reads the records of the head; others of the same name are passed over.
///
/// # Errors
/// One line: what is missing or wrong.
pub fn read_head(records: &[Texts]) -> Result<ZoneHead, String> {
    let ours: Vec<Texts> =
        records.iter().filter(|texts| texts.first().is_some_and(|text| is_of_cluster(text))).cloned().collect();
    let things = Things::of(&ours)?;
    let head = things.one("cluster", 0)?;
    let form = head.text("form")?;
    if form != FORM {
        return Err(format!("the records have the form '{form}', this Weft reads {FORM}"));
    }
    Ok(ZoneHead {
        version: head.number("version", u64::MAX)?,
        blocks: head.number("blocks", BLOCKS_MAX)?,
        members: head.number("members", MEMBERS_MAX)?,
        partitions: head.number("partitions", PARTITIONS_MAX)?,
        reservations: head.maybe("reservations")?.unwrap_or(0).min(RESERVATIONS_MAX),
        slice_ms: head.maybe("slice_ms")?.unwrap_or(SLICE_MS),
        name: head.text("name")?.to_owned(),
        servers: head.all("server").map(str::to_owned).collect(),
        port: head.number("port", u16::MAX)?,
    })
}

fn is_of_cluster(text: &str) -> bool {
    text.starts_with("cluster=")
}

/// Reads the records of all blocks.
///
/// # Errors
/// One line for each thing that is missing or wrong.
pub fn read_blocks(head: &ZoneHead, records: &[Texts]) -> Result<Cluster, Vec<String>> {
    let one = |line: String| vec![line];
    let things = Things::of(records).map_err(one)?;
    let members: Result<Vec<Member>, String> = (0..head.members).map(|at| things.one("member", at)?.member()).collect();
    let members = members.map_err(one)?;
    let partitions = (0..head.partitions).map(|at| things.one("partition", at)?.partition(&members));
    let partitions = partitions.collect::<Result<Vec<Partition>, String>>().map_err(one)?;
    let reservations = (0..head.reservations).map(|at| things.one("reservation", at)?.reservation(&members));
    let reservations = reservations.collect::<Result<Vec<Reservation>, String>>().map_err(one)?;
    let ZoneHead { name, version, servers, port, slice_ms, .. } = head.clone();
    let claimed = Cluster { name, version, launch: None, servers, port, slice_ms, members, partitions, reservations };
    read(&write(&claimed)).map_err(|mistakes| mistakes.into_iter().map(|mistake| mistake.what).collect())
}

/// What records describe, by kind and number.
struct Things<'r>(BTreeMap<(&'r str, usize), Thing<'r>>);

/// All texts about a thing, in their order.
struct Thing<'r> {
    what: String,
    texts: Vec<(&'r str, &'r str)>,
}

/// Texts of the records of one thing by their numbers, each with how many there are.
type Parts<'r> = BTreeMap<usize, (usize, &'r [String])>;

impl<'r> Things<'r> {
    fn of(records: &'r [Texts]) -> Result<Self, String> {
        let mut parts: BTreeMap<(&str, usize), Parts<'_>> = BTreeMap::new();
        for texts in records {
            let first = texts.first().map_or("", String::as_str);
            let bad = || format!("'{}' is no beginning of a record", first.escape_debug());
            let (kind, place) = first.split_once('=').ok_or_else(bad)?;
            let numbers: Option<Vec<usize>> = place.split('/').map(|number| number.parse().ok()).collect();
            let Some([number, part, all]) = numbers.as_deref().and_then(|all| <[usize; 3]>::try_from(all).ok()) else {
                return Err(bad());
            };
            if parts.entry((kind, number)).or_default().insert(part, (all, &texts[1..])).is_some() {
                return Err(format!("{first} is there twice"));
            }
        }
        let mut things = BTreeMap::new();
        for ((kind, number), parts) in parts {
            let whole = parts.iter().enumerate().all(|(at, (part, (all, _)))| at == *part && *all == parts.len());
            if !whole {
                return Err(format!("of {kind} {number} not all records are there"));
            }
            let pairs = parts.values().flat_map(|(_, texts)| texts.iter()).map(|text| text.split_once('='));
            let texts =
                pairs.collect::<Option<Vec<_>>>().ok_or_else(|| format!("{kind} {number} has a text without '='"))?;
            things.insert((kind, number), Thing { what: format!("{kind} {number}"), texts });
        }
        Ok(Self(things))
    }

    fn one(&self, kind: &'static str, number: usize) -> Result<&Thing<'r>, String> {
        self.0.get(&(kind, number)).ok_or_else(|| format!("{kind} {number} is not among the records"))
    }
}

impl<'r> Thing<'r> {
    fn all(&self, key: &str) -> impl Iterator<Item = &'r str> {
        self.texts.iter().filter(move |(known, _)| *known == key).map(|(_, value)| *value)
    }

    fn find(&self, key: &str) -> Option<&'r str> {
        self.all(key).next()
    }

    fn text(&self, key: &str) -> Result<&'r str, String> {
        self.find(key).ok_or_else(|| format!("{} has no {key}", self.what))
    }

    fn read<T: FromStr>(&self, key: &str, value: &str) -> Result<T, String> {
        value.parse().map_err(|_| format!("{} has {key}={}, which cannot be read", self.what, value.escape_debug()))
    }

    fn maybe<T: FromStr>(&self, key: &str) -> Result<Option<T>, String> {
        self.find(key).map(|value| self.read(key, value)).transpose()
    }

    fn number<T: FromStr + PartialOrd + Display>(&self, key: &str, most: T) -> Result<T, String> {
        let number: T = self.read(key, self.text(key)?)?;
        if number > most {
            return Err(format!("{} has {key}={number}, allowed is {most} at most", self.what));
        }
        Ok(number)
    }

    fn list(&self, key: &str) -> Vec<String> {
        self.all(key).map(str::to_owned).collect()
    }

    fn member(&self) -> Result<Member, String> {
        let addresses = self.all("address").map(|value| self.read("address", value)).collect::<Result<_, _>>()?;
        let (name, slots) = (self.text("name")?.to_owned(), self.read("slots", self.text("slots")?)?);
        Ok(Member { name, slots, addresses, cores: self.maybe("cores")?, features: self.list("feature") })
    }

    fn partition(&self, members: &[Member]) -> Result<Partition, String> {
        let mut partition = Partition::new(self.text("name")?.to_owned(), self.hosts(members)?);
        partition.features = self.list("feature");
        partition.users = self.find("users").map(|_| self.list("user"));
        partition.groups = self.find("groups").map(|_| self.list("group"));
        partition.device = self.find("device").map(str::to_owned);
        partition.priority = self.maybe("priority")?.unwrap_or_default();
        let bad = |key: &str, value: &str| format!("{} has {key}={}, which is none", self.what, value.escape_debug());
        if let Some(policy) = self.find("policy") {
            let known = SchedulingPolicy::ALL.into_iter().find(|known| known.name() == policy);
            partition.policy = known.ok_or_else(|| bad("policy", policy))?;
        }
        let limits = &mut partition.limits;
        limits.ranks = self.maybe("ranks")?;
        limits.processes = self.maybe("processes")?;
        limits.highest = self.maybe("highest")?.unwrap_or(partition.priority);
        limits.exclusive = self.find("exclusive") == Some("true");
        if let Some(time) = self.find("time") {
            limits.time = Some(read_time(time).ok_or_else(|| bad("time", time))?);
        }
        Ok(partition)
    }

    fn reservation(&self, members: &[Member]) -> Result<Reservation, String> {
        let moment = |key| {
            let text = self.text(key)?;
            read_moment(text).ok_or_else(|| format!("{} has {key}={}, which is none", self.what, text.escape_debug()))
        };
        let slots = self.maybe("slots")?;
        Ok(Reservation {
            name: self.text("name")?.to_owned(),
            partition: self.text("partition")?.to_owned(),
            slots,
            hosts: if slots.is_some() { Vec::new() } else { self.hosts(members)? },
            from: moment("from")?,
            until: moment("until")?,
            users: self.list("user"),
        })
    }

    fn hosts(&self, members: &[Member]) -> Result<Vec<SlotHost>, String> {
        let mut hosts = Vec::new();
        for range in self.all("members").flat_map(str::split_whitespace) {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (usize, usize) = (self.read("members", first)?, self.read("members", last)?);
            let named = members.get(first..=last).filter(|_| first <= last);
            let named = named.ok_or_else(|| format!("{} has members {range}, of {}", self.what, members.len()))?;
            // Nobody is there twice, so there are not more than there are members.
            if hosts.len() + named.len() > members.len() {
                return Err(format!("{} has members twice", self.what));
            }
            hosts.extend(named.iter().map(Member::host));
        }
        Ok(hosts)
    }
}

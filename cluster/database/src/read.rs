//! Reading the file.

use crate::{Cluster, Partition};
use serde::Deserialize;
use std::collections::HashMap;
use std::fmt;
use toml::Spanned;
use weft_cluster::hosts::{HOSTS_MAX, Host, Launch, parse_list};
use weft_cluster::job::RANKS_MAX;
use weft_wire::settings::Settings;

/// Bytes of the longest name of a cluster or partition.
const NAME_BYTES: usize = 64;

/// What is wrong in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    /// The first is 1.
    pub line: usize,
    pub what: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCluster {
    name: Spanned<String>,
    #[serde(default = "first")]
    version: u64,
    launch: Option<Spanned<String>>,
    default: Option<Spanned<String>>,
    #[serde(default)]
    member: Vec<WrittenMember>,
    #[serde(default)]
    partition: Vec<WrittenPartition>,
}

fn first() -> u64 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenMember {
    name: Spanned<String>,
    slots: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPartition {
    name: Spanned<String>,
    members: Option<Vec<Spanned<String>>>,
    device: Option<Spanned<String>>,
    ranks: Option<Spanned<u64>>,
}

/// Reads a file.
///
/// # Errors
/// All its mistakes, in the order of their lines. Where it is no TOML, the first.
pub fn read(text: &str) -> Result<Cluster, Vec<Mistake>> {
    let written: WrittenCluster = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        vec![Mistake { line: line_of(text, at), what: error.message().trim().replace('\n', ", ") }]
    })?;
    let mut reader = ClusterReader { text, mistakes: Vec::new() };
    let cluster = reader.cluster(written);
    match reader.mistakes {
        mistakes if mistakes.is_empty() => Ok(cluster),
        mut mistakes => {
            mistakes.sort();
            Err(mistakes)
        }
    }
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

struct ClusterReader<'a> {
    text: &'a str,
    mistakes: Vec<Mistake>,
}

impl ClusterReader<'_> {
    fn tell<T>(&mut self, of: &Spanned<T>, what: String) {
        self.mistakes.push(Mistake { line: line_of(self.text, of.span().start), what });
    }

    fn cluster(&mut self, written: WrittenCluster) -> Cluster {
        self.check_name(&written.name, "cluster");
        let launch = written.launch.and_then(|given| self.understood(&given, given.as_ref().parse::<Launch>()));
        let members = self.members(&written.member, &written.name);
        let mut partitions = self.partitions(written.partition, &members);
        if partitions.is_empty() {
            let name = written.name.as_ref().clone();
            partitions.push(Partition { name, hosts: members.clone(), device: None, ranks: None });
        }
        if let Some(default) = written.default {
            match partitions.iter().position(|partition| partition.name == *default.as_ref()) {
                Some(at) => partitions[..=at].rotate_right(1),
                None => self.tell(&default, format!("default = '{}', which is no partition", default.as_ref())),
            }
        }
        Cluster { name: written.name.into_inner(), version: written.version, launch, members, partitions }
    }

    fn members(&mut self, written: &[WrittenMember], cluster: &Spanned<String>) -> Vec<Host> {
        let mut members: Vec<Host> = Vec::with_capacity(written.len());
        let mut lines = HashMap::new();
        for WrittenMember { name, slots } in written {
            let line = line_of(self.text, name.span().start);
            let slots = slots.as_ref().map_or(1, |slots| self.count(slots, "slots"));
            // As it stands in a list of hosts: what is no name there is none here.
            let host = match parse_list(name.as_ref()).map(|mut hosts| hosts.remove(0)) {
                Ok(host) if host.name == *name.as_ref() => host,
                _ => {
                    self.tell(name, format!("member '{}' is no name of a host", name.as_ref()));
                    continue;
                }
            };
            match lines.insert(host.name.clone(), line) {
                Some(first) => self.tell(name, format!("member '{}' stands in line {first} already", host.name)),
                None => members.push(Host { slots, ..host }),
            }
        }
        if written.is_empty() {
            self.tell(cluster, "there is no [[member]]".to_owned());
        }
        if members.len() > HOSTS_MAX {
            self.tell(cluster, format!("{} members; a cluster may have {HOSTS_MAX}", members.len()));
        }
        members
    }

    fn partitions(&mut self, written: Vec<WrittenPartition>, members: &[Host]) -> Vec<Partition> {
        let by_name: HashMap<&str, &Host> = members.iter().map(|host| (host.name.as_str(), host)).collect();
        let mut partitions: Vec<Partition> = Vec::with_capacity(written.len());
        for WrittenPartition { name, members: named, device, ranks } in written {
            self.check_name(&name, "partition");
            if partitions.iter().any(|other| other.name == *name.as_ref()) {
                self.tell(&name, format!("partition '{}' is there twice", name.as_ref()));
            }
            let hosts = named.map_or(members.to_vec(), |named| self.hosts(&named, &by_name));
            if hosts.is_empty() && !members.is_empty() {
                self.tell(&name, format!("partition '{}' has no members", name.as_ref()));
            }
            let ranks = ranks.map(|ranks| self.count(&ranks, "ranks"));
            let device = device.and_then(|given| {
                let read = Settings::from_env([("WEFT_DEVICE", given.as_ref())]);
                self.understood(&given, read.map_err(|errors| errors[0].to_string()).map(|_| given.as_ref().clone()))
            });
            partitions.push(Partition { name: name.into_inner(), hosts, device, ranks });
        }
        partitions
    }

    fn hosts(&mut self, named: &[Spanned<String>], members: &HashMap<&str, &Host>) -> Vec<Host> {
        let mut hosts: Vec<Host> = Vec::with_capacity(named.len());
        for name in named {
            match members.get(name.as_ref().as_str()) {
                None => self.tell(name, format!("'{}' is no member", name.as_ref())),
                Some(host) if hosts.contains(host) => self.tell(name, format!("'{}' is listed twice", name.as_ref())),
                Some(host) => hosts.push((*host).clone()),
            }
        }
        hosts
    }

    fn check_name(&mut self, name: &Spanned<String>, of: &str) {
        let given = name.as_ref();
        let plain = given.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if !plain || !given.starts_with(|first: char| first.is_ascii_alphanumeric()) || given.len() > NAME_BYTES {
            let allowed = format!("letters, digits, '-', '_' and '.', {NAME_BYTES} at most, a letter or digit first");
            self.tell(name, format!("'{given}' is no name of a {of}: {allowed}"));
        }
    }

    fn count(&mut self, given: &Spanned<u64>, of: &str) -> usize {
        let count = usize::try_from(*given.as_ref()).ok().filter(|count| (1..=RANKS_MAX).contains(count));
        count.unwrap_or_else(|| {
            self.tell(given, format!("{of} = {}, allowed is 1 to {RANKS_MAX}", given.as_ref()));
            1
        })
    }

    fn understood<T, V, E: fmt::Display>(&mut self, given: &Spanned<V>, read: Result<T, E>) -> Option<T> {
        read.map_err(|error| self.tell(given, error.to_string())).ok()
    }
}

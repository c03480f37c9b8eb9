//! Writing a file.

use crate::{Cluster, Member, Partition, SchedulingPolicy, show_time};
use std::fmt::{Display, Write as _};
use weft_cluster::hosts::{Host, Launch};

/// The file of a cluster, which is read as the same one again.
pub fn write(cluster: &Cluster) -> String {
    let mut lines = vec![format!("name = {}", quoted(&cluster.name)), format!("version = {}", cluster.version)];
    lines.extend(cluster.launch.as_ref().map(|launch| format!("launch = {}", quoted(&launch.to_string()))));
    lines.push(format!("servers = {}", list(&cluster.servers)));
    lines.push(format!("port = {}", cluster.port));
    cluster.members.iter().for_each(|member| lines.extend(lines_of_member(member)));
    cluster.partitions.iter().for_each(|partition| lines.extend(lines_of_partition(partition)));
    lines.iter().fold(String::new(), |text, line| text + line + "\n")
}

fn lines_of_member(member: &Member) -> impl Iterator<Item = String> {
    let mut lines = vec!["\n[[member]]".to_owned(), format!("name = {}", quoted(&member.name))];
    lines.push(format!("slots = {}", member.slots));
    lines.extend((!member.addresses.is_empty()).then(|| format!("address = {}", list(&member.addresses))));
    lines.extend(member.cores.map(|cores| format!("cores = {cores}")));
    lines.extend((!member.features.is_empty()).then(|| format!("features = {}", list(&member.features))));
    lines.into_iter()
}

fn lines_of_partition(partition: &Partition) -> impl Iterator<Item = String> {
    let mut lines = vec!["\n[[partition]]".to_owned(), format!("name = {}", quoted(&partition.name))];
    let names: Vec<&str> = partition.hosts.iter().map(|host| host.name.as_str()).collect();
    lines.push(format!("members = {}", list(&names)));
    lines.extend((!partition.features.is_empty()).then(|| format!("features = {}", list(&partition.features))));
    lines.extend(partition.users.as_ref().map(|users| format!("users = {}", list(users))));
    lines.extend(partition.groups.as_ref().map(|groups| format!("groups = {}", list(groups))));
    lines.extend(partition.device.as_ref().map(|device| format!("device = {}", quoted(device))));
    let limits = &partition.limits;
    lines.extend(limits.ranks.map(|ranks| format!("ranks = {ranks}")));
    lines.extend(limits.time.map(|time| format!("time = {}", quoted(&show_time(time)))));
    lines.extend(limits.processes.map(|processes| format!("processes = {processes}")));
    lines.extend(limits.exclusive.then(|| "exclusive = true".to_owned()));
    lines.extend((partition.priority != 0).then(|| format!("priority = {}", partition.priority)));
    lines.extend((limits.highest != partition.priority).then(|| format!("highest = {}", limits.highest)));
    lines.extend(
        (partition.policy != SchedulingPolicy::Other).then(|| format!("policy = {}", quoted(partition.policy.name()))),
    );
    lines.into_iter()
}

fn list(values: &[impl Display]) -> String {
    let values: Vec<String> = values.iter().map(|value| quoted(&value.to_string())).collect();
    format!("[{}]", values.join(", "))
}

/// The file of a new cluster: these members, and one partition of them all.
pub fn write_new(name: &str, members: &[Host], launch: Option<&Launch>) -> String {
    let mut text = format!("name = {}\nversion = 1\n", quoted(name));
    if let Some(launch) = launch {
        let _ = writeln!(text, "launch = {}", quoted(&launch.to_string()));
    }
    for Host { name, slots } in members {
        let _ = write!(text, "\n[[member]]\nname = {}\nslots = {slots}\n", quoted(name));
    }
    let names: Vec<String> = members.iter().map(|member| quoted(&member.name)).collect();
    let _ = write!(text, "\n[[partition]]\nname = \"all\"\nmembers = [{}]\n", names.join(", "));
    text
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// The same text with another version.
pub fn with_version(text: &str, version: u64) -> String {
    let is_version = |line: &str| line.split('=').next().is_some_and(|key| key.trim() == "version");
    let top = text.lines().take_while(|line| !line.trim_start().starts_with('['));
    match top.clone().position(is_version) {
        Some(at) => {
            let lines = text.lines().enumerate();
            lines
                .map(|(n, line)| if n == at { format!("version = {version}\n") } else { format!("{line}\n") })
                .collect()
        }
        None => format!("version = {version}\n{text}"),
    }
}

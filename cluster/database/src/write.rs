//! Writing a file.

use crate::{Cluster, Member, Partition, Reservation, SLICE_MS, SchedulingPolicy, show_moment, show_time};
use std::fmt::{Display, Write as _};
use weft_cluster::hosts::{Launch, SlotHost};

/// The file of a cluster, which is read as the same one again.
pub fn write(cluster: &Cluster) -> String {
    let mut lines = vec![format!("name = {}", quoted(&cluster.name)), format!("version = {}", cluster.version)];
    lines.extend(cluster.launch.as_ref().map(|launch| format!("launch = {}", quoted(&launch.to_string()))));
    lines.push(format!("servers = {}", list(&cluster.servers)));
    lines.push(format!("port = {}", cluster.port));
    lines.extend((cluster.slice_ms != SLICE_MS).then(|| format!("slice_ms = {}", cluster.slice_ms)));
    cluster.members.iter().for_each(|member| lines.extend(lines_of_member(member)));
    cluster.partitions.iter().for_each(|partition| lines.extend(lines_of_partition(partition)));
    cluster.reservations.iter().for_each(|reservation| lines.extend(lines_of_reservation(reservation)));
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

fn lines_of_reservation(reservation: &Reservation) -> impl Iterator<Item = String> {
    let mut lines = vec!["\n[[reservation]]".to_owned(), format!("name = {}", quoted(&reservation.name))];
    lines.push(format!("partition = {}", quoted(&reservation.partition)));
    let names: Vec<&str> = reservation.hosts.iter().map(|host| host.name.as_str()).collect();
    lines.push(match reservation.slots {
        Some(slots) => format!("slots = {slots}"),
        None => format!("members = {}", list(&names)),
    });
    lines.push(format!("from = {}", show_moment(reservation.from)));
    lines.push(format!("until = {}", show_moment(reservation.until)));
    lines.push(format!("users = {}", list(&reservation.users)));
    lines.into_iter()
}

/// The text with one more reservation; what stands there stays as it is.
pub fn with_reservation(text: &str, reservation: &Reservation) -> String {
    let lines: String = lines_of_reservation(reservation).map(|line| line + "\n").collect();
    format!("{}\n{lines}", text.trim_end_matches('\n'))
}

/// The text without the reservations of these names. `None` where it is none that [`read`](crate::read) takes.
pub fn without_reservations(text: &str, is_out: impl Fn(&str) -> bool) -> Option<String> {
    let document = toml::de::DeTable::parse(text).ok()?;
    let mut spans = Vec::new();
    for one in document.get_ref().get("reservation").and_then(|all| all.get_ref().as_array())?.iter() {
        let name = one.get_ref().as_table()?.get("name")?.get_ref().as_str()?;
        spans.extend(is_out(name).then(|| one.span()));
    }
    let mut left = String::new();
    let mut at = 0;
    for span in spans {
        // The table of such an entry is where its header is; it goes on to the next header.
        let begin = text[..span.start].rfind('\n').map_or(0, |end| end + 1);
        let header = text[begin..].find('\n').map_or(text.len(), |end| begin + end + 1);
        let mut next = text[header..].split_inclusive('\n').scan(header, |from, line| {
            *from += line.len();
            Some((*from - line.len(), line))
        });
        let end = next.find(|(_, line)| line.trim_start().starts_with('[')).map_or(text.len(), |(at, _)| at);
        left.push_str(text.get(at..begin)?);
        at = end;
    }
    Some(left + &text[at..])
}

fn list(values: &[impl Display]) -> String {
    let values: Vec<String> = values.iter().map(|value| quoted(&value.to_string())).collect();
    format!("[{}]", values.join(", "))
}

/// The file of a new cluster: these members, and one partition of them all.
pub fn write_new(name: &str, members: &[SlotHost], launch: Option<&Launch>) -> String {
    let mut text = format!("name = {}\nversion = 1\n", quoted(name));
    if let Some(launch) = launch {
        let _ = writeln!(text, "launch = {}", quoted(&launch.to_string()));
    }
    for SlotHost { name, slots } in members {
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

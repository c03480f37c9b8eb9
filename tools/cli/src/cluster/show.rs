//! What a cluster is, for people and for programs.

use super::file::{self, ClusterFile, Slips};
use crate::counted::counted;
use weft_cluster::hosts::SlotHost;
use weft_database::{Cluster, Member, Partition, SchedulingPolicy, show_time};

pub fn show(json: bool) -> Result<i32, Slips> {
    let ClusterFile { path, cluster, .. } = file::find_used()?;
    if json {
        let mut all = as_json(&cluster);
        all["file"] = serde_json::json!(path);
        println!("{all:#}");
        return Ok(0);
    }
    println!("cluster {}, version {}: {}", cluster.name, cluster.version, path.display());
    println!("servers {}, port {}", cluster.servers.join(", "), cluster.port);
    let width = cluster.members.iter().map(|member| member.name.len()).max().unwrap_or(0);
    println!("\nmembers");
    for member in &cluster.members {
        println!("  {:width$}  {}", member.name, of_member(member));
    }
    println!("\npartitions, the default one first");
    let width = cluster.partitions.iter().map(|partition| partition.name.len()).max().unwrap_or(0);
    for partition in &cluster.partitions {
        println!("  {:width$}  {}", partition.name, of_partition(partition));
    }
    if !cluster.reservations.is_empty() {
        println!("\nreservations");
        super::reserve::lines(&cluster, super::reserve::now()).iter().for_each(|line| println!("  {line}"));
    }
    Ok(0)
}

fn of_member(member: &Member) -> String {
    let mut words = vec![match member.slots {
        0 => "0 slots, drained".to_owned(),
        slots => counted(slots, "slot"),
    }];
    words.extend(member.cores.map(|cores| format!("{cores} cores")));
    let addresses: Vec<String> = member.addresses.iter().map(ToString::to_string).collect();
    words.extend((!addresses.is_empty()).then(|| format!("at {}", addresses.join(" and "))));
    words.extend((!member.features.is_empty()).then(|| format!("with {}", member.features.join(" and "))));
    words.join(", ")
}

fn of_partition(partition: &Partition) -> String {
    let names: Vec<&str> = partition.hosts.iter().map(|host| host.name.as_str()).collect();
    let mut words = vec![format!("up to {} on {}", counted(partition.most_ranks(), "rank"), names.join(", "))];
    let limits = &partition.limits;
    words.extend(limits.time.map(|time| format!("up to {}", show_time(time))));
    words.extend(limits.processes.map(|most| format!("{most} processes a host")));
    words.extend(limits.exclusive.then(|| "one user a host".to_owned()));
    let (least, most) = (partition.priority, limits.highest);
    words.extend((least != 0 || most != 0).then(|| format!("priority {least} to {most}")));
    words.extend((partition.policy != SchedulingPolicy::Other).then(|| format!("policy {}", partition.policy.name())));
    words.extend(partition.users.as_ref().map(|users| format!("users {}", users.join(" "))));
    words.extend(partition.groups.as_ref().map(|groups| format!("groups {}", groups.join(" "))));
    words.extend(partition.device.as_ref().map(|order| format!("devices {order}")));
    words.join(", ")
}

fn as_json(cluster: &Cluster) -> serde_json::Value {
    let host = |host: &SlotHost| serde_json::json!({ "name": host.name, "slots": host.slots });
    let member = |member: &Member| {
        serde_json::json!({
            "name": member.name, "slots": member.slots, "cores": member.cores, "features": member.features,
            "addresses": member.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    };
    let partition = |partition: &Partition| {
        let limits = &partition.limits;
        serde_json::json!({
            "name": partition.name, "hosts": partition.hosts.iter().map(host).collect::<Vec<_>>(),
            "device": partition.device, "ranks": partition.most_ranks(), "features": partition.features,
            "users": partition.users, "groups": partition.groups, "priority": partition.priority,
            "policy": partition.policy.name(), "seconds": limits.time.map(|time| time.as_secs()),
            "processes": limits.processes, "highest": limits.highest, "exclusive": limits.exclusive,
        })
    };
    serde_json::json!({
        "name": cluster.name, "version": cluster.version, "servers": cluster.servers, "port": cluster.port,
        "slice_ms": cluster.slice_ms,
        "reservations": super::reserve::as_json(cluster),
        "members": cluster.members.iter().map(member).collect::<Vec<_>>(),
        "partitions": cluster.partitions.iter().map(partition).collect::<Vec<_>>(),
    })
}

//! Simulates a cluster for a long time: whether a healthy host is ever suspected, how soon a killed one is known to
//! all, and what that costs.
//!
//! `cargo run --release -p weft-membership --example simulate -- --hosts 1000 --hours 10 --kills 100`

#[path = "../tests/simulation/mod.rs"]
mod simulation;

use simulation::{SECOND_NS, SimulatedCluster};
use std::time::{Duration, Instant};
use weft_membership::{Condition, MemberChange};

const HELP: &str = "\
simulates the failure detection of a cluster

  --hosts N        hosts (1000)
  --hours N        hours in which nothing fails; so often N x hosts is the number of host-hours (1)
  --minutes N      of this machine's time at most (no limit)
  --kills N        hosts that are then killed, one after the other (100)
  --freezes N      hosts that are frozen for 2 s, one after the other (0)
  --loss SHARE     of datagrams that are lost (0.01)
  --seed N         of all that is random (1)
";

struct Simulated {
    hosts: usize,
    hours: f64,
    minutes: f64,
    kills: usize,
    freezes: usize,
    loss: f64,
    seed: u64,
}

fn wanted() -> Result<Simulated, String> {
    let minutes = f64::INFINITY;
    let mut wanted = Simulated { hosts: 1000, hours: 1.0, minutes, kills: 100, freezes: 0, loss: 0.01, seed: 1 };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        let number = || value.parse().map_err(|_| format!("{name} = '{value}', allowed is a number; see --help"));
        match name.as_str() {
            "--hosts" => wanted.hosts = number()? as usize,
            "--hours" => wanted.hours = number()?,
            "--minutes" => wanted.minutes = number()?,
            "--kills" => wanted.kills = number()? as usize,
            "--freezes" => wanted.freezes = number()? as usize,
            "--loss" => wanted.loss = number()?,
            "--seed" => wanted.seed = number()? as u64,
            "--help" => return Err(HELP.to_owned()),
            _ => return Err(format!("'{name}' is no option\n\n{HELP}")),
        }
    }
    match wanted.hosts {
        2.. => Ok(wanted),
        few => Err(format!("--hosts = '{few}', allowed is 2 and more")),
    }
}

fn main() {
    let wanted = wanted().unwrap_or_else(|what| {
        eprintln!("{what}");
        std::process::exit(2);
    });
    let mut cluster = SimulatedCluster::settled(wanted.hosts, wanted.seed);
    cluster.weather.loss = wanted.loss;
    println!("{} hosts, {} % loss, seed {}", wanted.hosts, wanted.loss * 100.0, wanted.seed);
    stay_healthy(&mut cluster, &wanted);
    freeze(&mut cluster, wanted.freezes);
    kill(&mut cluster, wanted.kills);
}

/// Nothing fails: whoever is suspected now is so wrongly.
fn stay_healthy(cluster: &mut SimulatedCluster, wanted: &Simulated) {
    let (begin, begin_ns) = (Instant::now(), cluster.now_ns);
    let mut told = begin;
    let (mut suspicions, mut deaths) = (0, 0);
    let hours = |cluster: &SimulatedCluster| (cluster.now_ns - begin_ns) as f64 / (3600.0 * SECOND_NS as f64);
    while hours(cluster) < wanted.hours && begin.elapsed().as_secs_f64() < wanted.minutes * 60.0 {
        cluster.run(60 * SECOND_NS);
        for seen in std::mem::take(&mut cluster.seen) {
            suspicions += usize::from(matches!(seen.change, MemberChange::Suspect { .. }));
            deaths += usize::from(matches!(seen.change, MemberChange::Dead { .. } | MemberChange::Restarted { .. }));
        }
        if told.elapsed() > Duration::from_secs(20) {
            told = Instant::now();
            let done = hours(cluster) * wanted.hosts as f64;
            eprintln!("{done:.0} host-hours, {suspicions} suspicions, {deaths} deaths, {:.0?}", begin.elapsed());
        }
    }
    let host_hours = hours(cluster) * wanted.hosts as f64;
    let per_second = |count: u64| count as f64 / (host_hours * 3600.0);
    println!("healthy: {host_hours:.0} host-hours in {:.0?} of this machine", begin.elapsed());
    println!("  told falsely: {suspicions} suspicions, {deaths} deaths (each counted once for each host that saw it)");
    let (datagrams, bytes) = (per_second(cluster.datagrams), per_second(cluster.bytes));
    println!("  sent by each host in a second: {datagrams:.2} datagrams, {bytes:.0} bytes");
}

fn freeze(cluster: &mut SimulatedCluster, freezes: usize) {
    for round in 0..freezes {
        let host = cluster.chance.below(cluster.nodes.len() as u64) as usize;
        cluster.freeze(host, 2 * SECOND_NS);
        cluster.run(5 * SECOND_NS);
        eprint!("\rfrozen {round} of {freezes}");
    }
    let suspicions = cluster.seen.iter().filter(|seen| matches!(seen.change, MemberChange::Suspect { .. })).count();
    println!("frozen for 2 s: {freezes} hosts, {suspicions} suspicions");
}

fn kill(cluster: &mut SimulatedCluster, kills: usize) {
    let mut took_ms = Vec::new();
    let (mut missed, mut wrong) = (0, 0);
    for round in 0..kills {
        cluster.seen.clear();
        let host = cluster.chance.below(cluster.nodes.len() as u64) as usize;
        let moment_ns = cluster.chance.below(SECOND_NS);
        cluster.run(moment_ns);
        let (member, killed_ns) = (cluster.member(host), cluster.now_ns);
        cluster.kill(host);
        let known = |cluster: &SimulatedCluster| {
            let silent = |by: usize| matches!(cluster.condition(by, host), Condition::Suspect { .. });
            cluster.up().all(silent)
        };
        match cluster.run_until(60 * SECOND_NS, |cluster| known(cluster)) {
            None => missed += 1,
            Some(_) => {
                let of_it = |change| matches!(change, MemberChange::Suspect { member: of, .. } if of == member);
                let last = cluster.seen.iter().rfind(|seen| of_it(seen.change)).map_or(0, |seen| seen.at_ns);
                took_ms.push((last - killed_ns) / 1_000_000);
            }
        }
        wrong += cluster.suspicions_but_of(Some(host));
        let incarnation = cluster.nodes[host].incarnation + 1;
        cluster.start(host, incarnation);
        cluster.run(3 * SECOND_NS);
        eprint!("\rkilled {round} of {kills}");
    }
    took_ms.sort_unstable();
    if let (Some(most), median) = (took_ms.last(), took_ms.get(took_ms.len() / 2).unwrap_or(&0)) {
        let few = took_ms[0];
        println!("killed: {kills}; known to all after {few} to {most} ms, median {median} ms; {missed} not in 60 s");
    }
    println!("  told falsely meanwhile: {wrong} suspicions of other hosts");
    println!("in the end {}", if cluster.all_is_well() { "all see all as alive" } else { "views differ: WRONG" });
}

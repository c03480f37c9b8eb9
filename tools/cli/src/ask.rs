//! What is asked of the daemons of a cluster: what there is, signals for jobs, slots of members.

use crate::EXIT_USAGE;
use crate::cluster::file;
use crate::counted::counted;
use anyhow::{Context, Result};
use std::io::IsTerminal;
use weft_cluster::state::signal_name;
use weft_database::show_moment;
use weft_records::JobRecord;
use weft_requests::client::{ClusterClient, refusal};
use weft_requests::{
    ClusterReply, ClusterView, Demand, JobName, JobView, MemberStanding, MemberView, ProcessView, QueuedView,
    ReservationView,
};

/// Signals that have a name here, as kill(1) has them.
const SIGNALS: [(&str, i32); 10] = [
    ("TERM", 15),
    ("INT", 2),
    ("KILL", 9),
    ("HUP", 1),
    ("QUIT", 3),
    ("USR1", 10),
    ("USR2", 12),
    ("STOP", 19),
    ("TSTP", 20),
    ("CONT", 18),
];

#[derive(clap::Args)]
pub struct KillArguments {
    /// Jobs, as weft ps --cluster shows them
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<JobName>,
    /// The signal: a name or a number
    #[arg(short, long, value_name = "SIGNAL", default_value = "TERM", value_parser = signal)]
    signal: i32,
}

#[derive(clap::Args)]
pub struct DrainArguments {
    /// The member
    member: String,
    /// How many ranks it takes from now on; 0 drains it
    #[arg(long, value_name = "N", default_value_t = 0)]
    slots: usize,
    /// It takes what the cluster's file says again
    #[arg(long, conflicts_with = "slots")]
    undo: bool,
}

/// The signals that have a name.
pub fn signal_names() -> impl Iterator<Item = &'static str> {
    SIGNALS.iter().map(|(name, _)| *name)
}

fn signal(given: &str) -> Result<i32, String> {
    let name = given.strip_prefix("SIG").unwrap_or(given).to_ascii_uppercase();
    let named = SIGNALS.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
    named.or_else(|| given.parse().ok().filter(|number| (1..=64).contains(number))).ok_or_else(|| {
        let known: Vec<&str> = SIGNALS.iter().map(|(name, _)| *name).collect();
        format!("a signal is a number from 1 to 64, or one of {}", known.join(", "))
    })
}

pub fn daemon() -> Result<ClusterClient> {
    ClusterClient::find()?.context("no daemon of a cluster runs on this host; weft cluster start starts them")
}

/// Sends a signal to the launchers of jobs.
pub fn kill(given: &KillArguments) -> Result<i32> {
    let mut daemon = daemon()?;
    let mut failed = 0;
    for job in &given.jobs {
        let demand = Demand::Signal { job: job.clone(), signal: given.signal };
        match done(daemon.ask(&demand)?) {
            Ok(()) => println!("job {job} was sent {}", signal_name(given.signal)),
            Err(error) => {
                eprintln!("weft kill: {error}");
                failed = EXIT_USAGE;
            }
        }
    }
    Ok(failed)
}

/// Changes how many ranks a member takes. What runs there goes on.
pub fn drain(given: &DrainArguments) -> Result<i32> {
    let slots = (!given.undo).then_some(given.slots);
    let demand = Demand::Drain { member: given.member.clone(), slots };
    done(daemon()?.ask(&demand)?)?;
    let takes = slots.map_or("as many ranks as the cluster's file says".to_owned(), |slots| counted(slots, "rank"));
    println!("{} takes {takes} from now on; what runs there goes on", given.member);
    Ok(0)
}

fn done(reply: ClusterReply) -> Result<()> {
    match reply {
        ClusterReply::Done => Ok(()),
        other => Err(refusal(other).into()),
    }
}

/// Where the page of the cluster is; a browser is opened where there is a desktop.
///
/// # Errors
/// No daemon answers, or it has none.
pub fn page() -> Result<i32> {
    match daemon()?.ask(&Demand::Page)? {
        ClusterReply::Page(address) => {
            println!("{address}");
            let has_desktop = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
            if has_desktop && std::io::stdout().is_terminal() {
                // Where it cannot be started, the address is there.
                let _ = std::process::Command::new("xdg-open").arg(&address).spawn();
            }
            Ok(0)
        }
        other => Err(refusal(other).into()),
    }
}

/// Everything there is to see now.
///
/// # Errors
/// No daemon answers.
pub fn look(ranks: bool) -> Result<ClusterView> {
    match daemon()?.ask(&Demand::Look { ranks })? {
        ClusterReply::View(view) => Ok(*view),
        other => Err(refusal(other).into()),
    }
}

/// Jobs of this user that have ended, or of all for root, the oldest first.
///
/// # Errors
/// No daemon answers.
pub fn ended(most: usize, everywhere: bool) -> Result<Vec<JobRecord>> {
    match daemon()?.ask(&Demand::Finished { most, everywhere })? {
        ClusterReply::Records(mut records) => {
            records.reverse();
            Ok(records)
        }
        other => Err(refusal(other).into()),
    }
}

/// Says whose cluster is shown where the environment names another one than that of this host's daemon.
pub fn say_whose() {
    let named = std::env::var_os(file::VARIABLE).filter(|name| !name.is_empty());
    let meant = named.and_then(|_| Some(file::load(file::path().ok()?).ok()?.cluster.name));
    if let (Some(meant), Ok(Some(daemon))) = (meant, ClusterClient::find())
        && daemon.cluster != meant
    {
        let name = file::VARIABLE;
        eprintln!("weft ps: the daemon of this host is of cluster '{}', not of '{meant}' ({name})", daemon.cluster);
    }
}

/// The cluster as lines.
pub fn text(view: &ClusterView) -> String {
    let server = view.server.as_deref().unwrap_or("nobody");
    let mut lines =
        vec![format!("cluster {}, version {}, ordered by {server}", view.cluster, view.version), String::new()];
    let width = view.members.iter().map(|member| member.name.len()).max().unwrap_or(0).max(6);
    lines.push(format!("{:width$}  state      slots   load  free memory", "member"));
    lines.extend(view.members.iter().map(|member| member_line(member, width)));
    lines.extend(view.reservations.iter().map(reservation_line));
    lines.push(String::new());
    lines.push("job             user      partition  ranks  since     on                program".to_owned());
    lines.extend(view.jobs.iter().map(|job| job_line(job, view.time)));
    lines.extend(view.queue.iter().map(|job| queue_line(job, view.time)));
    if view.jobs.is_empty() && view.queue.is_empty() {
        lines.push("none".to_owned());
    }
    if !view.processes.is_empty() {
        lines.push(String::new());
        lines.push("process         user      kind       pid      since     on                program".to_owned());
        lines.extend(view.processes.iter().map(|process| process_line(process, view.time)));
    }
    lines.join("\n") + "\n"
}

fn process_line(process: &ProcessView, now: u64) -> String {
    let ProcessView { name, kind, member, pid, user, program, since, .. } = process;
    let since = age(now, *since);
    let (name, kind) = (name.as_str(), kind.to_string());
    format!("{name:14}  {user:8}  {kind:9}  {pid:<7}  {since:8}  {member:16}  {program}")
}

fn member_line(member: &MemberView, width: usize) -> String {
    let standing = match member.standing {
        MemberStanding::Alive if member.slots == 0 => "drained",
        MemberStanding::Alive => "alive",
        MemberStanding::Suspect => "silent",
        MemberStanding::Dead => "dead",
        MemberStanding::Unknown => "not seen",
    };
    let slots = format!("{}/{}", member.used, member.slots);
    let load = member.load.as_ref().map_or_else(String::new, |load| {
        format!("{:>5.2}  {} of {} MiB", load.load, load.free_bytes >> 20, load.memory_bytes >> 20)
    });
    let trouble = member.trouble.as_ref().map_or_else(String::new, |trouble| format!("  {trouble}"));
    format!("{:width$}  {standing:9}  {slots:>5}  {load}{trouble}", member.name)
}

/// A reservation in words.
pub fn reservation_line(one: &ReservationView) -> String {
    let hosts: Vec<String> = one.hosts.iter().map(|(name, slots)| format!("{name}:{slots}")).collect();
    let users = if one.users.is_empty() { "nobody".to_owned() } else { one.users.join(" ") };
    let (from, until) = (show_moment(one.from), show_moment(one.until));
    format!(
        "reservation {} of partition {}: {} for {users}, {from} to {until}",
        one.name,
        one.partition,
        hosts.join(" ")
    )
}

fn job_line(job: &JobView, now: u64) -> String {
    let partition = job.partition.as_deref().unwrap_or("-");
    let hosts: Vec<String> = job.hosts.iter().map(|(name, ranks)| format!("{name}:{ranks}")).collect();
    let (since, hosts) = (age(now, job.since), hosts.join(","));
    format!(
        "{:14}  {:8}  {partition:9}  {:>5}  {since:8}  {hosts:16}  {}",
        job.job.as_str(),
        job.user,
        job.size,
        job.program
    )
}

fn queue_line(job: &QueuedView, now: u64) -> String {
    let (since, reason) = (age(now, job.since), format!("waits: {}", job.reason));
    format!(
        "{:14}  {:8}  {:9}  {:>5}  {since:8}  {reason:16}  {}",
        job.job.as_str(),
        job.user,
        job.partition,
        job.ranks,
        job.program
    )
}

fn age(now: u64, since: u64) -> String {
    let seconds = now.saturating_sub(since);
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_numbers() {
        for (given, number) in [("TERM", 15), ("sigkill", 9), ("SIGUSR1", 10), ("10", 10)] {
            assert_eq!(signal(&given.replace("sigkill", "SIGKILL")), Ok(number));
        }
        assert!(signal("0").is_err() && signal("65").is_err());
        assert!(signal("NONE").expect_err("no signal").contains("USR1"));
    }

    #[test]
    fn a_cluster_is_shown_with_what_waits() {
        let text = text(&ClusterView {
            cluster: "lab".to_owned(),
            time: 100,
            members: vec![MemberView { name: "node1".to_owned(), slots: 4, used: 3, ..MemberView::default() }],
            queue: vec![QueuedView {
                job: JobName::new("node1", 2),
                user: "ann".to_owned(),
                partition: "all".to_owned(),
                ranks: 4,
                program: "./prog".to_owned(),
                since: 40,
                reason: "no room".to_owned(),
            }],
            reservations: vec![ReservationView {
                name: "course".to_owned(),
                partition: "all".to_owned(),
                hosts: vec![("node1".to_owned(), 2)],
                users: vec!["ann".to_owned()],
                from: 0,
                until: 3600,
            }],
            ..ClusterView::default()
        });
        for part in
            ["lab", "not seen", "3/4", "node1.2", "60 s", "waits: no room", "course of partition all: node1:2 for ann"]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}

//! Reservations by hand: `weft cluster reserve` writes them into the file, as a new version of it, and shows them.
//!
//! Moments are read by `date`, which knows the time zone of the user and words as `tomorrow 9:00`.

use super::change::replace;
use super::file::{self, ClusterFile, Slips};
use super::known::warn_of_unknown;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use weft_cluster::hosts::SlotHost;
use weft_database::{Cluster, Reservation, read_time, show_moment, show_time};

#[derive(clap::Args)]
pub struct ReserveArguments {
    /// What the reservation is called; without a name, all are shown
    name: Option<String>,
    /// Write JSON
    #[arg(long, conflicts_with = "name")]
    json: bool,
    /// Take it out of the file
    #[arg(long, requires = "name", conflicts_with_all = ["partition", "members", "slots", "from", "until", "lasts", "users"])]
    remove: bool,
    /// The partition [default: the default one]
    #[arg(long, value_name = "PARTITION", requires = "name")]
    partition: Option<String>,
    /// Whole members of it [default: all]
    #[arg(long, value_name = "HOST", value_delimiter = ',', requires = "name")]
    members: Option<Vec<String>>,
    /// So many slots, of the last members of the partition
    #[arg(long, value_name = "N", requires = "name", conflicts_with = "members")]
    slots: Option<usize>,
    /// When it begins: now, +2h, or what date(1) reads, as 'tomorrow 9:00' [default: now]
    #[arg(long, value_name = "TIME", requires = "name")]
    from: Option<String>,
    /// When it ends, said in the same ways
    #[arg(long, value_name = "TIME", requires = "name", conflicts_with = "lasts")]
    until: Option<String>,
    /// How long it lasts, as 30m, 2h, 1d12h
    #[arg(long = "for", value_name = "DURATION", requires = "name")]
    lasts: Option<String>,
    /// Who may use it; without users nobody, as before work on the hosts
    #[arg(long, value_name = "USER", value_delimiter = ',', requires = "name")]
    users: Vec<String>,
}

pub fn reserve(given: &ReserveArguments) -> Result<i32, Slips> {
    let Some(name) = &given.name else {
        let ClusterFile { cluster, .. } = file::find_used()?;
        if given.json {
            println!("{:#}", as_json(&cluster));
            return Ok(0);
        }
        lines(&cluster, now()).iter().for_each(|line| println!("{line}"));
        return Ok(0);
    };
    let path = file::path()?;
    // What has mistakes is somebody's work that is not done.
    let ClusterFile { text, cluster, .. } = file::load(path.clone())?;
    let is_there = cluster.reservations.iter().any(|one| one.name == *name);
    let slip = |what: String| vec![what];
    if given.remove && !is_there {
        let all: Vec<&str> = cluster.reservations.iter().map(|one| one.name.as_str()).collect();
        let all = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
        return Err(slip(format!("'{name}' is no reservation of cluster '{}', which has {all}", cluster.name)));
    }
    if !given.remove && is_there {
        return Err(slip(format!("reservation '{name}' is there already; --remove takes it out")));
    }
    // What is over goes with the next change.
    let now = now();
    let is_over = |one: &str| cluster.reservations.iter().any(|other| other.name == one && other.until <= now);
    let rest = if cluster.reservations.is_empty() {
        text.clone()
    } else {
        weft_database::without_reservations(&text, |one| one == name || is_over(one)).ok_or_else(|| {
            slip(format!("'{}': its reservations stand in a form of their own; edit it", path.display()))
        })?
    };
    let draft = if given.remove {
        rest
    } else {
        weft_database::with_reservation(&rest, &wanted(given, name, &cluster, now).map_err(slip)?)
    };
    file::understand(&path, &draft)?;
    let cluster = replace(&path, &text, &draft)?;
    match cluster.reservations.iter().find(|one| one.name == *name) {
        Some(one) => {
            warn_of_unknown(&[], std::slice::from_ref(one));
            println!("{}", line(one, now));
        }
        None => println!("reservation {name} is out"),
    }
    println!("{}: version {}; weft cluster apply brings it to the members", path.display(), cluster.version);
    Ok(0)
}

fn wanted(given: &ReserveArguments, name: &str, cluster: &Cluster, now: u64) -> Result<Reservation, String> {
    let partition = cluster.partition(given.partition.as_deref()).map_err(|error| format!("partition {error}"))?;
    let from = given.from.as_deref().map_or(Ok(now), |text| moment("--from", text, now))?;
    let until = match (&given.until, &given.lasts) {
        (Some(text), _) => moment("--until", text, now)?,
        (None, Some(text)) => from.saturating_add(duration("--for", text)?),
        (None, None) => return Err("when it ends is not said: --until TIME or --for DURATION".to_owned()),
    };
    if until <= from.max(now) {
        return Err(format!("it would end at {}, which is not after its begin and now", show_moment(until)));
    }
    let names = || partition.hosts.iter().map(|host| host.name.clone()).collect();
    // The file says what a member has; here it is named only.
    let named = if given.slots.is_some() { Vec::new() } else { given.members.clone().unwrap_or_else(names) };
    let hosts = named.into_iter().map(|name| SlotHost { name, slots: 0 }).collect();
    let (name, partition, users) = (name.to_owned(), partition.name.clone(), given.users.clone());
    Ok(Reservation { name, partition, slots: given.slots, hosts, from, until, users })
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

fn duration(option: &str, text: &str) -> Result<u64, String> {
    let read = read_time(text).map(|time| time.as_secs());
    read.ok_or_else(|| format!("{option} '{text}': allowed are times as 90s, 30m, 2h, 1d12h"))
}

fn moment(option: &str, text: &str, now: u64) -> Result<u64, String> {
    if text == "now" {
        return Ok(now);
    }
    if let Some(later) = text.strip_prefix('+') {
        return Ok(now.saturating_add(duration(option, later)?));
    }
    let asked = Command::new("date").arg(format!("--date={text}")).arg("+%s").output();
    let said = asked.ok().filter(|asked| asked.status.success()).map(|asked| asked.stdout);
    let read = said.and_then(|said| String::from_utf8(said).ok()?.trim().parse().ok());
    let allowed = "allowed are now, +2h, and what date(1) reads, as 'tomorrow 9:00' or 2026-11-27T09:00:00Z";
    // An empty text is midnight to it.
    read.filter(|_| !text.trim().is_empty()).ok_or_else(|| format!("{option} '{text}': {allowed}"))
}

/// The reservations of a cluster, those that are over included.
pub fn as_json(cluster: &Cluster) -> serde_json::Value {
    let host = |host: &SlotHost| serde_json::json!({ "name": host.name, "slots": host.slots });
    let one = |one: &Reservation| {
        serde_json::json!({
            "name": one.name, "partition": one.partition, "from": one.from, "until": one.until, "users": one.users,
            "hosts": one.hosts.iter().map(host).collect::<Vec<_>>(),
        })
    };
    cluster.reservations.iter().map(one).collect()
}

/// The same in words.
pub fn lines(cluster: &Cluster, now: u64) -> Vec<String> {
    if cluster.reservations.is_empty() {
        return vec![format!("cluster {} has no reservations", cluster.name)];
    }
    cluster.reservations.iter().map(|one| line(one, now)).collect()
}

fn line(one: &Reservation, now: u64) -> String {
    let hosts: Vec<String> = one.hosts.iter().map(|host| format!("{}:{}", host.name, host.slots)).collect();
    let users = if one.users.is_empty() { "nobody".to_owned() } else { one.users.join(" ") };
    let words = |seconds: u64| show_time(Duration::from_secs(seconds));
    let state = match (one.from.saturating_sub(now), one.until.saturating_sub(now)) {
        (_, 0) => "over".to_owned(),
        (0, left) => format!("holds for {} more", words(left)),
        (begin, _) => format!("begins in {}", words(begin)),
    };
    let (from, until) = (show_moment(one.from), show_moment(one.until));
    format!("{}: {} of partition {}, {from} to {until}, for {users}; {state}", one.name, hosts.join(" "), one.partition)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_said_in_several_ways_and_others_are_refused_in_one_line() {
        assert_eq!(moment("--from", "now", 7), Ok(7));
        assert_eq!(moment("--from", "+1h", 7), Ok(3607));
        assert_eq!(moment("--from", "2026-11-27T09:00:00Z", 7), Ok(1_795_770_000));
        for text in ["", "soonish", "+2", "-1h30", "+1h 3"] {
            let told = moment("--from", text, 7).expect_err(text);
            assert!(told.starts_with(&format!("--from '{}': allowed are", text.trim_start_matches('+'))), "{told}");
            assert!(!told.contains('\n'));
        }
    }
}

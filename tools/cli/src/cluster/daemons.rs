//! The daemons of a cluster: starting them on all members, and ending them.

use super::file::{self, ClusterFile, Slips};
use super::members;
use crate::hosts::line;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use weft_database::Cluster;
use weft_requests::client::{ClusterClient, refusal};
use weft_requests::{ClusterReply, Demand};

/// How long a daemon may take until it answers.
const PATIENCE: Duration = Duration::from_secs(8);
const LOOK: Duration = Duration::from_millis(5);

/// What a member needs.
#[derive(Serialize, Deserialize)]
struct Outfit {
    text: String,
    key: String,
    system: bool,
}

/// Where the key of a cluster is that has this file.
pub fn key_of(path: &Path) -> PathBuf {
    path.with_extension("key")
}

/// The key, made where there is none.
///
/// # Errors
/// It cannot be read or written.
pub fn key(path: &Path) -> Result<String, Slips> {
    let key = key_of(path);
    if !key.exists() {
        weft_lanes::key::make(&key).map_err(|error| vec![error.to_string()])?;
    }
    let content = weft_lanes::key::content(&key).map_err(|error| vec![error.to_string()])?;
    Ok(String::from_utf8_lossy(&content).into_owned())
}

/// Starts the daemon of each member, at the same time; those that run already are left.
pub fn start() -> Result<i32, Slips> {
    let ClusterFile { path, text, cluster } = file::find()?;
    let outfit = Outfit { text, key: key(&path)?, system: file::is_system(&path) };
    let outfit = serde_json::to_string(&outfit).map_err(|error| vec![error.to_string()])?;
    on_all(&cluster, "begin", &outfit)
}

/// Ends the daemons of all members. Jobs go on.
pub fn stop() -> Result<i32, Slips> {
    let ClusterFile { path, cluster, .. } = file::find_used()?;
    let key = weft_lanes::key::content(&key_of(&path))
        .map_err(|error| vec![format!("{error}; who ends the daemons of a cluster shows them its key")])?;
    on_all(&cluster, "end", &String::from_utf8_lossy(&key))
}

/// Runs `weft cluster WHAT` on each member.
fn on_all(cluster: &Cluster, what: &str, input: &str) -> Result<i32, Slips> {
    members::on_all(cluster, input, PATIENCE, |host| vec![what, &cluster.name, host])
}

/// The daemon of this host, if one runs.
///
/// # Errors
/// It is of another cluster, or of another one of this name.
fn daemon_of(name: &str, key: &str) -> Result<Option<ClusterClient>, Slips> {
    let failed = |error: std::io::Error| vec![error.to_string()];
    let Some(mut client) = ClusterClient::find().map_err(failed)? else { return Ok(None) };
    let is_its = client.cluster == name
        && client.ask(&Demand::HasKey { key: key.to_owned() }).map_err(failed)? == ClusterReply::Done;
    if is_its {
        return Ok(Some(client));
    }
    let other = if client.cluster == name { "another cluster" } else { "cluster" };
    Err(vec![format!("a daemon of {other} '{}' runs here, as '{}'", client.cluster, client.member)])
}

/// Takes what this member needs, from standard input, and starts its daemon.
pub fn begin(name: &str, member: &str) -> Result<i32, Slips> {
    let failed = |error: String| vec![error];
    let outfit = std::io::read_to_string(std::io::stdin().lock()).map_err(|error| failed(error.to_string()))?;
    let outfit: Outfit = serde_json::from_str(&outfit).map_err(|error| failed(format!("no outfit: {error}")))?;
    // Where it may not run nothing is left.
    let running = daemon_of(name, &outfit.key)?;
    if let Some(other) = running.as_ref().filter(|client| client.member != member) {
        return Err(failed(format!("a daemon of cluster '{name}' runs here, as '{}'", other.member)));
    }
    let path = file::place_of(name, outfit.system);
    let took = members::take_text(name, &path, &outfit.text);
    if took.is_err() && !path.exists() {
        return took.map(|_| 1);
    }
    take_key(&path, &outfit.key)?;
    if running.is_some() {
        println!("runs already");
        return Ok(0);
    }
    let daemon = std::env::current_exe().map_err(|error| failed(error.to_string()))?.with_file_name("weftd");
    let log = path.with_extension("log");
    let open = std::fs::File::options().create(true).append(true).open(&log);
    let open = open.map_err(|error| failed(format!("'{}': {error}", log.display())))?;
    let mut command = Command::new(&daemon);
    command.arg(&path).args(["--name", member, "--detach"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(open);
    let child = command.spawn();
    let child = child.map_err(|error| failed(format!("'{}' cannot be started: {error}", daemon.display())))?;
    wait_for(child, &log)
}

fn take_key(path: &Path, key: &str) -> Result<(), Slips> {
    let place = key_of(path);
    match weft_lanes::key::content(&place) {
        Ok(ours) if ours == key.as_bytes() => Ok(()),
        Ok(_) => Err(vec![format!("'{}' is another key; remove it where this cluster is meant", place.display())]),
        Err(_) if place.exists() => weft_lanes::key::content(&place).map(drop).map_err(|error| vec![error.to_string()]),
        Err(_) => weft_lanes::key::write(&place, key).map_err(|error| vec![error.to_string()]),
    }
}

/// Waits until the daemon answers.
fn wait_for(mut child: Child, log: &Path) -> Result<i32, Slips> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Ok(Some(client)) = ClusterClient::find() {
            println!("runs as '{}' of '{}'", client.member, client.cluster);
            return Ok(0);
        }
        if let Ok(Some(status)) = child.try_wait() {
            let said = std::fs::read(log).ok().and_then(|said| line(&said, true)).map(|said| without_time(&said));
            return Err(vec![said.unwrap_or_else(|| format!("the daemon has ended ({status})"))]);
        }
        std::thread::sleep(LOOK);
    }
    Err(vec![format!("the daemon has not answered within {} s; see '{}'", PATIENCE.as_secs(), log.display())])
}

/// A line of the log as it is told at once.
fn without_time(line: &str) -> String {
    let stamped = line.split_once(' ').filter(|(time, _)| weft_database::read_moment(time).is_some());
    stamped.map_or(line, |(_, rest)| rest).to_owned()
}

/// Ends the daemon of this host, if it is of this cluster, whose key comes from standard input.
pub fn end(name: &str) -> Result<i32, Slips> {
    let key = std::io::read_to_string(std::io::stdin().lock()).map_err(|error| vec![error.to_string()])?;
    let Some(mut client) = daemon_of(name, &key)? else {
        println!("has not run");
        return Ok(0);
    };
    match client.ask(&Demand::Stop).map_err(|error| vec![error.to_string()])? {
        ClusterReply::Done => {
            println!("has ended");
            Ok(0)
        }
        other => Err(vec![refusal(other).to_string()]),
    }
}

/// What systemd needs to start the daemon of this host at boot.
pub fn unit() -> Result<i32, Slips> {
    let ClusterFile { path, cluster, .. } = file::find()?;
    let daemon = std::env::current_exe().map_err(|error| vec![error.to_string()])?.with_file_name("weftd");
    println!(
        "# /etc/systemd/system/weftd.service; then: systemctl enable --now weftd\n\
         [Unit]\nDescription=Weft's daemon of cluster {}\nWants=network-online.target\nAfter=network-online.target\nStartLimitIntervalSec=0\n\n\
         [Service]\nExecStart={} {}\nRestart=always\nRestartSec=1\n\
         # Jobs go on when the daemon is started again.\nKillMode=process\nOOMPolicy=continue\nTasksMax=infinity\nDelegate=yes\nLimitNOFILE=1048576\n\n\
         [Install]\nWantedBy=multi-user.target",
        cluster.name,
        daemon.display(),
        path.display()
    );
    Ok(0)
}

/// What systemd needs to listen for the daemon of this host, which is root's. Its own name for what is in no file
/// system begins with `@`.
pub fn socket_unit() -> Result<i32, Slips> {
    println!(
        "# /etc/systemd/system/weftd.socket; then: systemctl enable --now weftd.socket\n\
         [Unit]\nDescription=The socket of Weft's daemon\n\n\
         [Socket]\nListenStream=@{}\n\n\
         [Install]\nWantedBy=sockets.target",
        weft_requests::client::socket_name(0)
    );
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_is_told_without_its_time() {
        assert_eq!(without_time("2026-11-27T09:00:00Z weftd: no key"), "weftd: no key");
        assert_eq!(without_time("weftd: no key"), "weftd: no key");
    }
}

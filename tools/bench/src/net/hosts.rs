//! Hosts for a run: two network namespaces joined by one cable, a core each; or more of them, with cables into one
//! bridge.
//!
//! They go with a guard process that deletes them when its standard input ends, so also when we are killed. Jobs are
//! started there by a launch script, which serves Weft's launcher and MPICH's.

use crate::process;
use anyhow::{Context, bail, ensure};
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const SCRIPT: &str = include_str!("../../../../tests/namespaces.sh");
/// The end of the cable in either.
pub const INTERFACE: &str = "eth0";
/// How the filter is attached.
pub const MODE_VARIABLE: &str = "WEFT_XDP_MODE";
const ASK_LIMIT: Duration = Duration::from_secs(30);

/// Runs a command on a host, whose core follows from its name. Hydra says -x as to ssh, and gives words for a shell.
const LAUNCH: &str = r#"#!/bin/sh
if [ "$1" = -x ]; then
    shift
    host=$1
    shift
    set -- sh -c "$*"
else
    host=$1
    shift
fi
skip=$(((${host##*x} - 1) % COUNT))
for cpu in CPUS; do
    [ "$skip" = 0 ] && break
    skip=$((skip - 1))
done
exec ip netns exec "$host" taskset -c "$cpu" "$@"
"#;

/// Namespaces that live as long as this value, or the process.
pub struct BenchHosts {
    prefix: String,
    count: usize,
    /// Where the first host's cable ends, and by which interface.
    other_end: (String, &'static str),
    pub launch: PathBuf,
    guard: Child,
}

impl BenchHosts {
    /// Makes two, or so many, and in `folder` the script that starts programs there, each host's on the next of these
    /// processors.
    ///
    /// # Errors
    /// That is not permitted here, or what it needs is missing, in one line.
    pub fn up(folder: &Path, many: Option<u32>, cpus: &[usize]) -> anyhow::Result<Self> {
        let is_root = std::fs::metadata("/proc/self").is_ok_and(|us| us.uid() == 0);
        ensure!(is_root, "hosts are network namespaces here, and only root makes those");
        for (program, package) in [("ip", "iproute2"), ("taskset", "util-linux")] {
            let mut command = Command::new(program);
            command.arg("-V");
            let there = process::run(command, ASK_LIMIT).is_ok();
            process::check_interrupt()?;
            ensure!(there, "there is no `{program}` here (Debian: apt-get install {package})");
        }
        let launch = folder.join("launch");
        std::fs::write(&launch, script(cpus))?;
        std::fs::set_permissions(&launch, std::fs::Permissions::from_mode(0o755))?;
        let prefix = format!("wb{}x", std::process::id());
        let mut command = Command::new("sh");
        let count = many.map_or(2, |many| many as usize);
        let how = if many.is_some() { "guard" } else { "cable" };
        command.args(["-c", SCRIPT, "namespaces.sh", how, &prefix, &count.to_string()]).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut guard = command.spawn().context("cannot start a shell")?;
        if !says_up(&mut guard)? {
            bail!("network namespaces cannot be made here: {}", last_words(&mut guard));
        }
        let other_end = match many {
            Some(_) => (format!("{prefix}-switch"), "port1"),
            None => (format!("{prefix}2"), INTERFACE),
        };
        Ok(Self { prefix, count, other_end, launch, guard })
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// The name of a host, from 0.
    pub fn name(&self, at: usize) -> String {
        format!("{}{}", self.prefix, at + 1)
    }

    /// All, as launchers want them.
    pub fn names(&self) -> String {
        (0..self.count).map(|at| self.name(at)).collect::<Vec<_>>().join(",")
    }

    pub fn address(at: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 0, at as u8 + 1)
    }

    /// A command on a host, on whatever core.
    pub fn command(&self, at: usize, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name(at)]).arg(program);
        command
    }

    /// The first host's cable: what has crossed it, and whether an XDP program is attached at its end.
    ///
    /// # Errors
    /// The kernel cannot be asked.
    pub fn cable(&self) -> anyhow::Result<Cable> {
        let own = self.end(0)?;
        let (name, interface) = &self.other_end;
        Ok(Cable { received: own.received + ask_end(name, interface)?.received, ..own })
    }

    fn end(&self, at: usize) -> anyhow::Result<Cable> {
        ask_end(&self.name(at), INTERFACE)
    }

    /// Attaches the filter that the device xdp uses to both ends of the cable, in this mode, until the value is
    /// dropped.
    ///
    /// # Errors
    /// Why it cannot be attached.
    pub fn attach(&self, weft: &Path, mode: &str) -> anyhow::Result<[Holder; 2]> {
        let hold = |at: usize| -> anyhow::Result<Holder> {
            let mut command = self.command(at, weft);
            command.args(["bench", "hold-filter", &Self::address(1 - at).to_string()]).process_group(0);
            command.env(MODE_VARIABLE, mode);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut holder = Holder(command.spawn().context("cannot start `ip`")?);
            match says_up(&mut holder.0)? {
                true => Ok(holder),
                false => bail!("the XDP program cannot be attached: {}", last_words(&mut holder.0)),
            }
        };
        Ok([hold(0)?, hold(1)?])
    }
}

/// The rendezvous of a host, with lanes on the cable.
pub struct Rendezvous(Child);

impl Drop for Rendezvous {
    fn drop(&mut self) {
        // Errors say that it has ended before.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl BenchHosts {
    /// Starts the rendezvous of both hosts, which find each other's by a key in `folder`.
    ///
    /// # Errors
    /// Why there are no lanes.
    pub fn meet_by_lanes(&self, weft: &Path, folder: &Path, mode: &str) -> anyhow::Result<[Rendezvous; 2]> {
        let key = folder.join("key");
        if !key.exists() {
            let mut command = Command::new(weft);
            command.args(["rendezvous", "--make-key"]).arg(&key);
            process::run(command, ASK_LIMIT)?.check()?;
        }
        let start = |at: usize| -> anyhow::Result<Rendezvous> {
            let mut command = self.command(at, weft);
            command.args(["rendezvous", "--lanes", INTERFACE, "--key"]).arg(&key).process_group(0);
            command.env(MODE_VARIABLE, mode);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
            let mut rendezvous = Rendezvous(command.spawn().context("cannot start `ip`")?);
            while !self.end(at)?.has_program {
                process::check_interrupt()?;
                if rendezvous.0.try_wait()?.is_some() {
                    bail!("a rendezvous has no lanes: {}", last_words(&mut rendezvous.0));
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            Ok(rendezvous)
        };
        Ok([start(0)?, start(1)?])
    }
}

impl Drop for BenchHosts {
    fn drop(&mut self) {
        end(&mut self.guard);
    }
}

fn script(cpus: &[usize]) -> String {
    let all = cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
    LAUNCH.replace("COUNT", &cpus.len().to_string()).replace("CPUS", &all)
}

/// A process that keeps a filter attached.
pub struct Holder(Child);

impl Drop for Holder {
    fn drop(&mut self) {
        end(&mut self.0);
    }
}

/// It ends by itself when nobody can write to it any more.
fn end(child: &mut Child) {
    drop(child.stdin.take());
    // An error says that there is no such child any more.
    let _ = child.wait();
}

fn says_up(child: &mut Child) -> anyhow::Result<bool> {
    let mut said = String::new();
    BufReader::new(child.stdout.take().context("its output is piped")?).read_line(&mut said)?;
    Ok(said == "up\n")
}

/// What a process that has failed said last.
fn last_words(child: &mut Child) -> String {
    let mut said = String::new();
    if let Some(mut stream) = child.stderr.take() {
        // Nothing more can be said than what can be read.
        let _ = stream.read_to_string(&mut said);
    }
    said.trim().lines().last().unwrap_or("it does not say why").to_owned()
}

/// A cable, as far as some of its ends say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cable {
    /// Bytes, at the ends that were asked. What a lane sends by a tap device is counted where it arrives, and nowhere
    /// else.
    pub received: u64,
    pub has_program: bool,
    /// In the driver.
    pub is_native: bool,
}

/// As `ip` has it.
const NATIVE: u64 = 1;

fn ask_end(host: &str, interface: &str) -> anyhow::Result<Cable> {
    let mut command = Command::new("ip");
    command.args(["-n", host, "-s", "-j", "link", "show", "dev", interface]);
    let outcome = process::run(command, ASK_LIMIT)?;
    outcome.check().context("asking about the cable")?;
    cable(&outcome.stdout)
}

fn cable(json: &str) -> anyhow::Result<Cable> {
    let all: serde_json::Value = serde_json::from_str(json).context("what `ip` says of the cable")?;
    let xdp = &all[0]["xdp"];
    let received = all[0]["stats64"]["rx"]["bytes"].as_u64().context("`ip` counts no bytes of the cable")?;
    Ok(Cable { received, has_program: xdp["prog"].is_object(), is_native: xdp["mode"] == NATIVE })
}

/// Keep the XDP filter attached that leads to an address, until standard input ends.
#[derive(Clone, Debug, clap::Args)]
pub struct HoldArgs {
    address: IpAddr,
}

/// Attaches as the settings say, says so, waits, and ends.
///
/// # Errors
/// Why the filter cannot be attached.
pub fn hold(args: &HoldArgs) -> anyhow::Result<()> {
    // A port that is ours, so that the filter takes nobody's datagrams.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let settings = weft_fabric::Settings::from_env(std::env::vars_os());
    let wrong =
        |errors: Vec<weft_fabric::SettingError>| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let mode = settings.map_err(|errors| anyhow::anyhow!(wrong(errors)))?.xdp_mode;
    let lanes = weft_fabric::Lanes::facing(&[args.address], &[socket.local_addr()?.port()], mode)?;
    println!("up");
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    drop(lanes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_program_of_the_cable_are_read() {
        let plain = r#"[{"ifname":"eth0","stats64":{"rx":{"bytes":30,"packets":1},"tx":{"bytes":12,"packets":1}}}]"#;
        assert_eq!(cable(plain).unwrap(), Cable { received: 30, has_program: false, is_native: false });
        let xdp = plain.replace(r#""ifname""#, r#""xdp":{"mode":1,"prog":{"id":7}},"ifname""#);
        assert_eq!(cable(&xdp).unwrap(), Cable { received: 30, has_program: true, is_native: true });
        let generic = xdp.replace(r#""mode":1"#, r#""mode":2"#);
        assert_eq!(cable(&generic).unwrap(), Cable { received: 30, has_program: true, is_native: false });
        assert!(cable("[]").is_err() && cable("no JSON").is_err());
    }

    #[test]
    fn the_launch_script_is_one_for_a_shell_and_knows_both_launchers() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("launch");
        std::fs::write(&file, script(&[4, 7]).replace("ip netns exec", "echo")).unwrap();
        let say = |words: &[&str]| {
            let mut command = Command::new("sh");
            command.arg(&file).args(words);
            process::run(command, ASK_LIMIT).unwrap().stdout
        };
        assert_eq!(say(&["wb7x1", "weft", "a b"]), "wb7x1 taskset -c 4 weft a b\n");
        assert_eq!(say(&["-x", "wb7x2", "\"proxy\"", "--port", "1"]), "wb7x2 taskset -c 7 sh -c \"proxy\" --port 1\n");
        // Where hosts are more than processors, they share them.
        assert_eq!(say(&["wb7x11", "weft"]), "wb7x11 taskset -c 4 weft\n");
    }
}

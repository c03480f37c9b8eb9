//! MPI over TCP and over datagrams: the programs under tests/c/mpi, whose ranks share no memory although they run on
//! one host, or share it with some of the others only.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use weft_tests::{build, root, tree};

/// A busy machine may take its time.
const PATIENCE: Duration = Duration::from_secs(60);

fn weft(arguments: &str) -> Command {
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(arguments.split_whitespace()).stdin(Stdio::null());
    command
}

fn compile(name: &str, folder: &Path) -> PathBuf {
    let source = root().join("tests/c/mpi").join(name).with_extension("c");
    let program = folder.join(name);
    let output = Command::new(tree().join("bin/mpicc"))
        .args(["-Wall", "-Wextra", "-Werror", "-O1", "-pthread", "-o"])
        .args([&program, &source])
        .output()
        .expect("the compiler command can be started");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Runs the program in each of these ways: it ends well, and says nothing but that.
fn passes(name: &str, ways: &[&[&str]]) {
    let folder = TempDir::new().expect("a temporary folder");
    let program = compile(name, folder.path());
    for way in ways {
        let mut command = weft("run --bind none --timeout 100");
        let output = command.args(*way).arg(&program).output().expect("the launcher can be started");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let quiet = ["", "ok"].contains(&said.trim());
        assert!(output.status.success() && quiet, "{name}, {way:?}: {}\n{said}", output.status);
    }
}

/// This host under several names, each with an agent of its own: what ranks of several hosts see.
const TWO_HOSTS: &[&str] = &["--launch", "env NAME={host}", "--hosts", "a:2,b:2"];
const THREE_HOSTS: &[&str] = &["--launch", "env NAME={host}", "--hosts", "a:2,b:2,c:2"];

/// One host without shared memory.
const fn near(device: &'static str, ranks: &'static str) -> [&'static str; 4] {
    ["--device", device, "-n", ranks]
}

macro_rules! programs {
    ($($name:ident)*) => {
        $(
            mod $name {
                #[test]
                fn tcp() {
                    let hosts = [&["--device", "shm,tcp"], super::TWO_HOSTS].concat();
                    super::passes(stringify!($name), &[&super::near("tcp", "2"), &super::near("tcp", "5"), &hosts]);
                }

                #[test]
                fn udp() {
                    let hosts = [&["--device", "shm,udp"], super::TWO_HOSTS].concat();
                    super::passes(stringify!($name), &[&super::near("udp", "2"), &super::near("udp", "5"), &hosts]);
                }

                #[test]
                fn both() {
                    super::passes(stringify!($name), &[&super::near("udp,tcp", "3"), super::TWO_HOSTS]);
                }
            }
        )*
    };
}

weft_tests::programs_between_hosts!(programs);

#[test]
fn ranks_share_memory_with_those_of_their_host() {
    for device in ["shm,tcp", "shm,udp", "auto"] {
        let with = |hosts: &[&'static str]| [&["--device", device], hosts].concat();
        passes("hosts_split", &[&with(TWO_HOSTS), &with(THREE_HOSTS)]);
    }
}

#[test]
fn collectives_of_ranks_that_lie_on_hosts_in_any_way_are_right() {
    let uneven = ["--launch", "env NAME={host}", "--hosts", "a:3,b:1"];
    let in_turn = ["--map", "host", "--launch", "env NAME={host}", "--hosts", "a:1,b:2,c:2"];
    passes("coll_hosts", &[&["-n", "3"], TWO_HOSTS, &uneven, &in_turn]);
}

/// Every host of this job has two ranks; only the first of them speaks to the other host.
#[test]
fn collectives_use_the_network_once_for_each_host() {
    let program = build::c_program(&tree().join("bin/mpicc"), "tests/c/mpi/hosts_leaders.c");
    for (device, used) in [("shm,tcp", "tcp_packets"), ("shm,udp", "udp_packets")] {
        let mut command = weft(&format!("run --device {device} --bind none --timeout 100"));
        let mut launcher = command.args(TWO_HOSTS).arg(&program).stdout(Stdio::piped()).spawn().expect("the launcher");
        let mut lines = BufReader::new(launcher.stdout.take().expect("piped")).lines();
        (0..4).for_each(|_| assert!(lines.next().is_some_and(|line| line.is_ok_and(|line| line.contains("done")))));
        shown(launcher.id(), |ranks| {
            let counts = |name: &str| ranks.iter().map(|rank| rank["counters"][name].as_u64()).collect::<Vec<_>>();
            let (network, near) = (counts(used), counts("shm_packets"));
            // Of each of the 100 rounds the leader sends at least the barrier's and the sum's message.
            network.len() == 2
                && network[0] >= Some(200)
                && network[1] == Some(0)
                && near.iter().all(|count| *count >= Some(200))
        });
        launcher.kill().expect("still there");
        launcher.wait().expect("ended");
    }
}

/// The job that this launcher has started, once `holds` says so of its ranks.
fn shown(launcher: u32, holds: impl Fn(&[Value]) -> bool) {
    let name = format!("{launcher}-");
    let given_up = Instant::now() + PATIENCE;
    let mut last = String::new();
    while Instant::now() < given_up {
        let output = weft("ps --json").output().expect("weft ps can be started");
        last = String::from_utf8_lossy(&output.stdout).into_owned();
        let jobs: Value = serde_json::from_str(&last).expect("JSON");
        let jobs = jobs.as_array().or_else(|| jobs["jobs"].as_array()).cloned().unwrap_or_default();
        let ours = jobs.iter().find(|job| job["name"].as_str().is_some_and(|other| other.starts_with(&name)));
        if ours.and_then(|job| job["ranks"].as_array()).is_some_and(|ranks| holds(ranks)) {
            return;
        }
    }
    panic!("weft ps does not come to show it; last:\n{last}");
}

#[test]
fn the_counters_say_which_way_messages_took() {
    let program = build::c_program(&tree().join("bin/mpicc"), "tests/c/join/member.c");
    let ways = [
        ("tcp", "tcp_packets", "shm_packets", "tcp to 2"),
        ("udp", "udp_packets", "tcp_packets", "udp to 2"),
        ("shm,tcp", "shm_packets", "tcp_packets", "shm to all ranks"),
    ];
    for (device, used, unused, says) in ways {
        let mut command = weft(&format!("run --device {device} --bind none --timeout 100 -n 3"));
        // The collectives of one host would need no packets at all.
        command.env("WEFT_COLLECTIVES", "messages").arg(&program).arg("wait").stdout(Stdio::piped());
        let mut launcher = command.spawn().expect("the launcher can be started");
        let mut lines = BufReader::new(launcher.stdout.take().expect("piped")).lines();
        (0..3).for_each(|_| assert!(lines.next().is_some_and(|line| line.is_ok_and(|line| line.contains("sum 6")))));
        // Brought up to date when a rank goes to sleep, which all three come to do.
        shown(launcher.id(), |ranks| {
            let count = |name: &str| ranks.iter().filter_map(|rank| rank["counters"][name].as_u64()).sum::<u64>();
            ranks.len() == 3
                && ranks.iter().all(|rank| rank["counters"][used].as_u64() > Some(0))
                && ranks.iter().all(|rank| rank["devices"].as_str().is_some_and(|text| text.contains(says)))
                && count(unused) == 0
                && count("strangers") == 0
        });
        launcher.kill().expect("still there");
        launcher.wait().expect("ended");
    }
}

//! MPI over TCP: the programs under tests/c/mpi, whose ranks share no memory although they run on one host.

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

/// Runs the program at each number of ranks: it says nothing and ends well.
fn passes_at(name: &str, ranks: &[u32]) {
    let folder = TempDir::new().expect("a temporary folder");
    let program = compile(name, folder.path());
    for ranks in ranks {
        let mut command = weft(&format!("run --device tcp --bind none --timeout 100 -n {ranks}"));
        let output = command.arg(&program).output().expect("the launcher can be started");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(output.status.success() && said.is_empty(), "{name} at {ranks} ranks: {}\n{said}", output.status);
    }
}

macro_rules! programs {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                passes_at(stringify!($name), &[2, 3, 5]);
            }
        )*
    };
}

programs! {
    coll_inter
    coll_move
    coll_neighbor
    coll_reduce
    objects_groups
    objects_inter
    objects_topology
    point_ask
    point_buffered
    point_cancel
    point_complete
    point_exchange
    point_modes
    point_persistent
    point_probe
    point_threads
    point_types
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
    for (device, used, unused) in [("tcp", "tcp_packets", "shm_packets"), ("shm,tcp", "shm_packets", "tcp_packets")] {
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
                && count(unused) == 0
                && count("strangers") == 0
        });
        launcher.kill().expect("still there");
        launcher.wait().expect("ended");
    }
}

//! Ranks that are lost while the others go on, and processes of other jobs, on two hosts, which are network namespaces.

use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;
use weft_tests::namespaces::Namespaces;
use weft_tests::ranks::{assert_ok, compile};
use weft_tests::tree;

/// A job with so many ranks on each of the hosts. The launcher is on the first one, so that it gets to the doors of the
/// ranks.
fn job(ranks: [u32; 2], options: &[&str], program: &Path, arguments: &[&str]) -> Command {
    let hosts = Namespaces::pair();
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &hosts.name(1)]).arg(tree().join("bin/weft"));
    command.args(["run", "--bind", "none", "--timeout", "60", "--launch", "ip netns exec {host}", "--hosts"]);
    command.arg(format!("{}:{},{}:{}", hosts.name(1), ranks[0], hosts.name(2), ranks[1]));
    command.args(options).arg(program).args(arguments);
    // A host may take long to answer: the machine may be loaded.
    command.env("WEFT_LAUNCH_TIMEOUT", "100").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

const WAYS: [&str; 3] = ["shm,tcp", "shm,udp", "auto"];

/// The cases of a program in which a rank is lost.
fn loses(name: &str, cases: &[(&str, [u32; 2])]) {
    let folder = TempDir::new().expect("there is room for a folder");
    let (program, file) = (compile(folder.path(), name, &[]), folder.path().join("file"));
    for (case, ranks) in cases {
        for devices in WAYS {
            let arguments = [case, file.to_str().expect("a plain path")];
            let output = job(*ranks, &["--keep-going", "--device", devices], &program, &arguments).output();
            let output = output.expect("weft can be started");
            assert_ok(&format!("{case} on {ranks:?} by {devices}"), &output);
            let err = String::from_utf8_lossy(&output.stderr);
            assert!(err.contains("; the others go on"), "{case} by {devices}: {err}");
        }
    }
}

#[test]
fn what_needs_a_rank_that_is_lost_ends() {
    loses("failures", &[("point", [2, 2]), ("anybody", [2, 1]), ("every", [1, 2]), ("bridge", [2, 2])]);
}

#[test]
fn those_who_live_agree_wherever_they_are() {
    loses("failures", &[("revoked", [2, 2]), ("shrunk", [2, 1]), ("shrunk", [3, 2]), ("aborted", [2, 3])]);
}

#[test]
fn windows_and_files_of_a_rank_that_is_lost_are_told() {
    loses("failures_windows", &[("lock", [2, 2]), ("get", [2, 1]), ("pointer", [1, 2])]);
}

/// Prints the seed that fails; `WEFT_TEST_SEED` runs that one, `WEFT_TEST_ROUNDS` more of them.
#[test]
fn ranks_killed_at_random_moments() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compile(folder.path(), "failures_random", &[]);
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    let seeds = match number("WEFT_TEST_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("WEFT_TEST_ROUNDS").unwrap_or(12),
    };
    for seed in seeds {
        let (first, devices) = (1 + seed as u32 % 2, WAYS[seed as usize % WAYS.len()]);
        let ranks = [first, 2 + seed as u32 / 3 % 3];
        let seed = seed.to_string();
        let mut command = job(ranks, &["--keep-going", "--device", devices], &program, &[&seed]);
        command.env_remove("WEFT_TEST_ROUNDS").env_remove("WEFT_TEST_SEED");
        let output = command.output().expect("weft can be started");
        assert_ok(&format!("WEFT_TEST_SEED={seed} ({ranks:?} by {devices})"), &output);
    }
}

/// Two jobs, which are told the port by a file.
fn meet(name: &str, options: &[&str]) {
    let folder = TempDir::new().expect("there is room for a folder");
    let (program, port) = (compile(folder.path(), name, &["-std=gnu99"]), folder.path().join("port"));
    let port = port.to_str().expect("a plain path");
    let serve = job([1, 1], options, &program, &["serve", port]).spawn().expect("weft can be started");
    let connect = job([1, 2], options, &program, &["connect", port]).output().expect("weft can be started");
    assert_ok("who accepts", &serve.wait_with_output().expect("it ends"));
    assert_ok("who connects", &connect);
}

#[test]
fn two_jobs_on_two_hosts_meet() {
    meet("spawn_ports", &[]);
}

#[test]
fn a_process_of_another_job_that_dies_is_lost() {
    meet("failures_jobs", &["--keep-going"]);
}

#[test]
fn ports_and_spawned_processes_inside_a_job() {
    let folder = TempDir::new().expect("there is room for a folder");
    for name in ["spawn_ports", "spawn"] {
        let program = compile(folder.path(), name, &["-std=gnu99"]);
        for devices in WAYS {
            let output = job([1, 1], &["--device", devices], &program, &[]).output().expect("weft can be started");
            assert_ok(&format!("{name} by {devices}"), &output);
        }
    }
}

/// What is said at a door is not encrypted.
#[test]
fn an_encrypted_job_on_several_hosts_opens_no_port() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compile(folder.path(), "failures_jobs", &[]);
    let output = job([1, 1], &["--encrypt"], &program, &["serve", "port"]).output().expect("weft can be started");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && err.contains("MPI_Open_port"), "{err}");
}

//! Active Messages: C programs of ours over `libam`, on one host by shared memory and by the network.

use std::path::PathBuf;
use std::process::{Command, Output};
use tempfile::TempDir;
use weft_tests::ranks;

fn compiled(folder: &TempDir, name: &str) -> PathBuf {
    ranks::compile_from("tests/c/am", folder.path(), name, &["-std=gnu99", "-lam"])
}

/// Runs one of the programs of `tests/c/am` on so many ranks.
fn run(name: &str, ranks: u32, arguments: &[&str], settings: &[(&str, &str)]) -> Output {
    let folder = TempDir::new().expect("there is room for a folder");
    let mut command = ranks::command(&compiled(&folder, name), ranks, arguments);
    command.envs(settings.iter().copied()).output().expect("weft can be started")
}

fn passes(name: &str, ranks: u32, arguments: &[&str], settings: &[(&str, &str)]) {
    let output = run(name, ranks, arguments, settings);
    ranks::assert_ok(&format!("{name} {arguments:?} on {ranks} ranks with {settings:?}"), &output);
}

/// Who waits sleeps at once.
const SLEEPY: [(&str, &str); 2] = [("WEFT_SPIN_US", "0"), ("WEFT_YIELD_US", "0")];

#[test]
fn requests_and_replies_of_all_sizes_arrive() {
    passes("pingpong", 2, &[], &[]);
    passes("pingpong", 2, &[], &SLEEPY);
    for device in ["udp,tcp", "tcp"] {
        passes("pingpong", 2, &[], &[("WEFT_DEVICE", device)]);
    }
    passes("pingpong", 2, &[], &[("WEFT_SINGLE_COPY", "off")]);
}

#[test]
fn a_program_that_is_started_by_hand_becomes_a_job() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compiled(&folder, "pingpong");
    let output = Command::new(&program).args(["2", "L"]).output().expect("it can be started");
    ranks::assert_ok("pingpong 2 L", &output);
    let output = Command::new(&program).args(["two", "L"]).output().expect("it can be started");
    assert!(!output.status.success() && output.stdout.is_empty());
}

#[test]
fn endpoints_stand_side_by_side_and_what_does_not_fit_comes_back() {
    for ranks in [1, 2, 3] {
        passes("endpoints", ranks, &[], &[]);
    }
    passes("endpoints", 2, &[], &[SLEEPY[0], SLEEPY[1], ("WEFT_DEVICE", "udp,tcp")]);
}

#[test]
fn who_ends_the_job_ends_those_who_poll() {
    let output = run("endpoints", 3, &["one ends"], &[]);
    assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn memory_is_the_programs_again_once_it_is_no_segment() {
    passes("landing", 2, &[], &[("WEFT_SINGLE_COPY", "off")]);
    passes("landing", 2, &[], &[]);
    passes("landing", 2, &[], &[("WEFT_DEVICE", "tcp")]);
}

//! Several interfaces in one process on two hosts, which are network namespaces: the programs under tests/c/together.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use weft_tests::namespaces::Namespaces;
use weft_tests::{build, ranks, tree};

/// Runs `words` on both hosts, with so many ranks on each and these settings: it ends well, and says `ok`.
fn passes(words: &[&str], each: u32, settings: &[(&str, &str)]) {
    let hosts = Namespaces::pair();
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["run", "--bind", "none", "--timeout", "100", "--launch", "ip netns exec {host}", "--hosts"]);
    command.arg(format!("{}:{each},{}:{each}", hosts.name(1), hosts.name(2))).args(words);
    command.env("NATIVE", build::example_library("weft-tests", "native")).envs(settings.iter().copied());
    // A host may take long to answer: the machine may be loaded.
    command.env("WEFT_LAUNCH_TIMEOUT", "100").stdin(Stdio::null());
    let output = command.output().expect("the launcher can be started");
    ranks::assert_ok(&format!("{words:?} with {settings:?}"), &output);
}

fn program(folder: &tempfile::TempDir, name: &str) -> PathBuf {
    ranks::compile_from("tests/c/together", folder.path(), name, &["-ldl"])
}

const SLEEPY: [(&str, &str); 2] = [("WEFT_SPIN_US", "0"), ("WEFT_YIELD_US", "0")];

#[test]
fn two_interfaces_have_the_same_place_and_messages_of_their_own() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let thin = program(&folder, "thin");
    let thin = thin.to_str().expect("text");
    for devices in ["auto", "tcp", "shm,tcp"] {
        passes(&["--device", devices, thin], 2, &[]);
    }
    passes(&[thin, "native first"], 1, &[]);
    passes(&[thin, "MPI ends first"], 2, &SLEEPY);
    passes(&["--encrypt", thin], 1, &[]);
}

#[test]
fn who_waits_in_one_interface_moves_the_other_and_is_woken_for_it() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let waits = program(&folder, "waits");
    let waits = waits.to_str().expect("text");
    for devices in ["auto", "tcp"] {
        passes(&["--device", devices, waits], 1, &[]);
        passes(&["--device", devices, waits], 1, &SLEEPY);
    }
}

#[test]
fn threads_wait_in_both_interfaces_at_the_same_time() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let threads = program(&folder, "threads");
    passes(&[threads.to_str().expect("text")], 2, &[]);
    passes(&[threads.to_str().expect("text")], 1, &SLEEPY);
}

#[test]
fn mpi_and_sockets_and_the_native_interface_go_together() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let all = program(&folder, "all");
    let preload = format!("LD_PRELOAD={}", weft_tests::sockets::library().display());
    let address = Namespaces::pair().address(1).to_string();
    passes(&["env", &preload, all.to_str().expect("text"), &address], 2, &[]);
}

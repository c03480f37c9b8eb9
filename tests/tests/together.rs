//! Several interfaces in one process: MPI, sockets, and the fabric's own API in a library of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;
use weft_tests::{build, interfaces, ranks, tree};

fn native() -> &'static Path {
    static NATIVE: OnceLock<PathBuf> = OnceLock::new();
    NATIVE.get_or_init(|| build::example_library("native"))
}

fn compiled(folder: &TempDir, name: &str) -> PathBuf {
    ranks::compile_from("tests/c/together", folder.path(), name, &["-ldl"])
}

fn command(folder: &TempDir, name: &str, ranks: u32, arguments: &[&str]) -> Command {
    let mut command = ranks::command(&compiled(folder, name), ranks, arguments);
    command.env("NATIVE", native());
    command
}

/// Runs one of the programs of `tests/c/together` on so many ranks.
fn run(name: &str, ranks: u32, arguments: &[&str], settings: &[(&str, &str)]) -> Output {
    let folder = TempDir::new().expect("there is room for a folder");
    let output = command(&folder, name, ranks, arguments).envs(settings.iter().copied()).output();
    output.expect("weft can be started")
}

fn passes(name: &str, ranks: u32, arguments: &[&str], settings: &[(&str, &str)]) {
    let output = run(name, ranks, arguments, settings);
    ranks::assert_ok(&format!("{name} {arguments:?} on {ranks} ranks with {settings:?}"), &output);
}

/// Who waits sleeps at once.
const SLEEPY: [(&str, &str); 2] = [("WEFT_SPIN_US", "0"), ("WEFT_YIELD_US", "0")];
/// The sender of a long message has work to do for it.
const STREAMED: (&str, &str) = ("WEFT_SINGLE_COPY", "off");

#[test]
fn two_interfaces_have_the_same_place_and_messages_of_their_own() {
    for ranks in [1, 2, 4] {
        for how in ["", "native first", "MPI ends first"] {
            passes("thin", ranks, &[how], &[]);
        }
        passes("thin", ranks, &[], &SLEEPY);
    }
}

#[test]
fn ranks_of_one_host_that_go_by_the_network_have_two_interfaces() {
    for device in ["udp,tcp", "tcp"] {
        passes("thin", 4, &[], &[("WEFT_DEVICE", device)]);
        passes("waits", 2, &[], &[("WEFT_DEVICE", device)]);
        passes("waits", 2, &[], &[("WEFT_DEVICE", device), SLEEPY[0], SLEEPY[1]]);
    }
}

#[test]
fn who_waits_in_one_interface_moves_the_other() {
    passes("waits", 2, &[], &[STREAMED]);
}

#[test]
fn who_sleeps_in_one_interface_is_woken_for_the_other() {
    passes("waits", 2, &[], &[STREAMED, SLEEPY[0], SLEEPY[1]]);
}

#[test]
fn threads_wait_in_both_interfaces_at_the_same_time() {
    for ranks in [2, 4] {
        passes("threads", ranks, &[], &[]);
        passes("threads", ranks, &[], &SLEEPY);
    }
}

#[test]
fn libraries_that_see_nothing_of_each_other_meet() {
    let library = tree().join("lib/libmpi_abi.so.1");
    passes("local", 2, &[library.to_str().expect("text")], &[]);
}

#[test]
fn mpi_and_sockets_and_the_native_interface_go_together() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compiled(&folder, "all");
    for ranks in [2, 4] {
        let weft = tree().join("bin/weft");
        let words = ["sock", "--", program.to_str().expect("text"), "127.0.0.1"];
        let mut command = ranks::command(&weft, ranks, &words);
        let output = command.env("NATIVE", native()).output().expect("weft can be started");
        ranks::assert_ok(&format!("all on {ranks} ranks"), &output);
    }
}

/// Each test has a virtual machine of its own.
fn machine(what: &str) -> (&'static str, String) {
    ("PVM_VMID", format!("together-{}-{what}", std::process::id()))
}

#[test]
fn mpi_and_pvm_and_sockets_go_together() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = ranks::compile_from("tests/c/together", folder.path(), "tasks", &["-lpvm3"]);
    for ranks in [2, 4] {
        let words = ["sock", "--", program.to_str().expect("text"), "127.0.0.1"];
        let mut command = ranks::command(&tree().join("bin/weft"), ranks, &words);
        let output = command.envs([machine("tasks")]).output().expect("weft can be started");
        ranks::assert_ok(&format!("tasks on {ranks} ranks"), &output);
    }
}

/// P4's processes are ranks, or forks of the first one.
#[test]
fn a_task_of_pvm_and_a_process_of_p4_meet_at_a_native_port() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program =
        |name, more| interfaces::compile(folder.path(), &format!("tests/c/together/{name}.c"), more, &["-std=gnu99"]);
    let (tasks, processes) = (program("meet_pvm", "pvm3 weft"), program("meet_p4", "p4 weft"));
    std::fs::write(folder.path().join("group"), "local 2\n").expect("there is room for a file");
    let name = format!("p4 {}", std::process::id());
    let mut forks = Command::new("timeout");
    forks.arg("60").arg(&processes).args([&name, "-p4pg", "group"]).current_dir(folder.path());
    for mut job in [ranks::command(&processes, 3, &[&name]), forks] {
        let job = job.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it can be started");
        let mut command = ranks::command(&tasks, 2, &[&name, "3"]);
        let output = command.envs([machine("meet")]).output().expect("weft can be started");
        ranks::assert_ok("tasks", &output);
        ranks::assert_ok("processes", &job.wait_with_output().expect("it ends"));
    }
}

#[test]
fn what_a_rank_executes_or_forks_is_a_job_of_one_and_an_interface_opens_once() {
    let output = run("alone", 2, &[], &[]);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    assert_eq!(err, "the interface native is open in this process already; a process has one of each, opened once\n");
}

#[test]
fn another_version_is_refused_by_a_line_that_names_both() {
    let folder = TempDir::new().expect("there is room for a folder");
    let output = Command::new(compiled(&folder, "alone")).arg("other").env("NATIVE", native()).output();
    let output = output.expect("it can be started");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && err.lines().count() == 1, "{err}");
    let both = ["Weft 9.8.7 (process table 99,", "Weft 0.1.0 (process table 1,"];
    assert!(both.iter().all(|version| err.contains(version)), "{err}");
}

#[test]
fn a_process_that_ends_without_leaving_an_interface_is_missed() {
    let output = run("thin", 2, &["native stays open"], &[]);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && err.contains("without MPI_Finalize"), "{err}");
}

#[test]
fn a_rank_that_never_opens_an_interface_is_lost_there_when_it_has_ended() {
    passes("lost", 3, &["never opened"], &[]);
}

#[test]
fn a_killed_rank_leaves_nothing() {
    let output = run("lost", 3, &["killed"], &[]);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(137), "{out}{err}");
    assert!(err.contains("rank 0"), "{err}");
    let ranks: Vec<&str> = out.lines().collect();
    assert_eq!(ranks.len(), 3, "{out}{err}");
    for rank in ranks {
        assert!(!Path::new("/proc").join(rank).exists(), "rank {rank} lives");
    }
}

//! PVM: tasks alone, spawned, and as ranks of a job.

use std::process::{Command, Output};
use tempfile::TempDir;
use weft_tests::pvm::compiled;
use weft_tests::{ranks, tree};

/// Each test has a virtual machine of its own.
fn machine(name: &str) -> String {
    format!("test-{}-{name}", std::process::id())
}

fn alone(name: &str) -> Output {
    let folder = TempDir::new().expect("there is room for a folder");
    let mut command = Command::new("timeout");
    command.arg("60").arg(compiled(&folder, name)).env("PVM_VMID", machine(name));
    command.output().expect("it can be started")
}

#[test]
fn a_task_spawns_another_one_and_they_talk() {
    ranks::assert_ok("thin", &alone("thin"));
}

#[test]
fn ends_are_told_functions_are_called_and_nonsense_is_refused() {
    ranks::assert_ok("faults", &alone("faults"));
}

#[test]
fn ranks_of_a_job_are_siblings() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compiled(&folder, "ring");
    for ranks in [2, 4] {
        let output = ranks::command(&program, ranks, &[]).env("PVM_VMID", machine("ring")).output();
        ranks::assert_ok(&format!("ring on {ranks} ranks"), &output.expect("weft can be started"));
    }
}

#[test]
fn the_console_shows_starts_and_ends_tasks() {
    let mut command = Command::new("sh");
    let script =
        "printf 'conf\\nspawn -2 -> /bin/echo said\\nspawn /bin/sleep 60\\nps\\nhalt\\n' | timeout 30 \"$0\" pvm";
    let output = command.args(["-c", script]).arg(tree().join("bin/weft")).env("PVM_VMID", machine("console")).output();
    let output = output.expect("a shell");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    for wanted in ["1 host", "2 successful", "1 successful", "sleep", "LINUX64"] {
        assert!(out.contains(wanted), "{wanted}: {out}{err}");
    }
}

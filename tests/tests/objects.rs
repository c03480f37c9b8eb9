//! Shared objects in jobs: the example that knows its results, on each number of processes; and programs in C and
//! Python.

use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use weft_tests::{build, ranks, root, tree};

const SOURCES: &str = "tests/c/objects";

/// The program in C, compiled as its user would: with what pkg-config says.
fn compiled(folder: &Path) -> PathBuf {
    let found = Command::new("pkg-config")
        .args(["--cflags", "--libs", "weft-objects-c"])
        .env("PKG_CONFIG_PATH", tree().join("lib/pkgconfig"))
        .output()
        .expect("pkg-config can be started");
    let flags = String::from_utf8(found.stdout).expect("text");
    let program = folder.join("all");
    let output = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-o"])
        .arg(&program)
        .arg(root().join(SOURCES).join("all.c"))
        .args(flags.split_whitespace())
        .output()
        .expect("a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

#[test]
fn objects_of_c_programs_are_described_and_packed_and_standard_ones_are_there() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compiled(folder.path());
    for (processes, arguments) in [(1, &[][..]), (3, &[]), (2, &["deliver"])] {
        let output = ranks::command(&program, processes, arguments).output().expect("weft can be started");
        ranks::assert_ok(&format!("all.c on {processes} processes {arguments:?}"), &output);
    }
}

#[test]
fn objects_of_python_programs_are_plain_classes_beside_ports_and_groups() {
    let script = root().join(SOURCES).join("all.py");
    let script = script.to_str().expect("text");
    for (processes, arguments) in [(1, &[][..]), (3, &["beside"]), (2, &["deliver"])] {
        // Alone it is looked whether reads write.
        let before: &[&str] = if processes == 1 { &["-X", "dev", script] } else { &[script] };
        let words = [before, arguments].concat();
        let mut command = ranks::command(Path::new("python3"), processes, &words);
        command.env("PYTHONPATH", tree().join("lib/python")).env("PYTHONDONTWRITEBYTECODE", "1");
        let output = command.output().expect("weft can be started");
        ranks::assert_ok(&format!("all.py on {processes} processes {arguments:?}"), &output);
    }
}

#[test]
fn counters_queues_and_barriers_are_right_on_any_number_of_processes() {
    let program = build::example("shared_objects");
    for processes in 1..=8 {
        let mut command = Command::new(build::weft());
        command.args(["run", "--timeout", "60", "-n", &processes.to_string()]).arg(&program);
        let output = command.output().expect("weft can be started");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let all = 500 * processes;
        let said = format!("{all} additions, 300 jobs, 50 rounds by {processes} processes\n");
        assert!(output.status.success() && out == said && err.is_empty(), "{}\n{out}{err}", output.status);
    }
}

#[test]
fn nobody_is_kept_out_by_who_calls_in_a_loop() {
    let program = build::example("shared_objects");
    for processes in [2, 3] {
        let output = ranks::command(&program, processes, &["loops"]).output().expect("weft can be started");
        assert!(output.status.success(), "{}{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_process_that_ends_takes_only_what_it_alone_had() {
    let program = build::example("shared_objects");
    for processes in [2, 4] {
        let mut command = Command::new(build::weft());
        command.args(["run", "--keep-going", "--timeout", "60", "-n", &processes.to_string()]);
        let output = command.arg(&program).arg("killed").output().expect("weft can be started");
        let last = processes - 1;
        let said = format!(
            "object 'number' was on process {last} only, which has ended: share it again to create it anew; one that \
             is replicated goes on; {last} went on\n"
        );
        let out = String::from_utf8_lossy(&output.stdout);
        assert!(out == said, "{}\n{out}{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
}

//! Shared objects in jobs: the example that knows its results, on each number of processes.

use std::process::Command;
use weft_tests::build;

#[test]
fn counters_queues_and_barriers_are_right_on_any_number_of_processes() {
    let program = build::example("weft-objects", "shared_objects");
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
fn a_process_that_ends_takes_only_what_it_alone_had() {
    let program = build::example("weft-objects", "shared_objects");
    for processes in [2, 4] {
        let mut command = Command::new(build::weft());
        command.args(["run", "--keep-going", "--timeout", "60", "-n", &processes.to_string()]);
        let output = command.arg(&program).arg("killed").output().expect("weft can be started");
        let last = processes - 1;
        let said = format!("the object was on process {last}, which has ended; {last} went on\n");
        let out = String::from_utf8_lossy(&output.stdout);
        assert!(out == said, "{}\n{out}{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
}

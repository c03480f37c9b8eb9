//! Groups, communicators, topologies, attributes, info and errors, in C on several ranks.

use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;
use weft_tests::{root, tree};

/// Compiles one of the C programs; it goes with the folder.
fn program(folder: &TempDir, name: &str) -> PathBuf {
    let program = folder.path().join(name);
    let source = root().join("tests/c/mpi").join(name).with_extension("c");
    let flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"];
    let output = Command::new(tree().join("bin/mpicc")).args(flags).arg(&program).arg(source).output();
    let output = output.expect("mpicc can be started");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    program
}

fn run(program: &PathBuf, ranks: u32, arguments: &[&str]) -> Output {
    command(program, ranks, arguments).output().expect("weft can be started")
}

fn command(program: &PathBuf, ranks: u32, arguments: &[&str]) -> Command {
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["run", "--timeout", "60", "-n", &ranks.to_string()]).arg(program).args(arguments);
    command
}

/// Runs it on each number of ranks; every program says `ok` at its end.
fn passes(name: &str, ranks: &[u32]) {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = program(&folder, name);
    for &ranks in ranks {
        let output = run(&program, ranks, &[]);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && out == "ok\n", "{name} on {ranks} ranks: {}\n{out}{err}", output.status);
    }
}

#[test]
fn groups_and_communicators() {
    passes("objects_groups", &[1, 2, 3, 4, 8]);
}

#[test]
fn intercommunicators() {
    passes("objects_inter", &[2, 3, 5, 8]);
}

#[test]
fn communicators_go_when_nothing_is_under_way() {
    passes("disconnect", &[1, 2, 3, 4]);
}

#[test]
fn attributes_info_and_errors() {
    passes("objects_attributes", &[1, 2, 4]);
}

#[test]
fn errors_that_return() {
    passes("errors_returned", &[1, 3]);
}

#[test]
fn errors_of_objects_without_a_handler_go_to_that_of_the_process() {
    passes("errors_inherited", &[1, 2]);
    let folder = TempDir::new().expect("there is room for a folder");
    let output = run(&program(&folder, "errors_inherited"), 1, &["fatal"]);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(6) && err.contains("rank 1, but communicator") && err.contains("has rank 0 only"),
        "{err}"
    );
}

#[test]
fn a_program_that_frees_no_communicators_hears_of_it() {
    passes("objects_many", &[1, 2]);
}

#[test]
fn errors_name_the_argument_its_value_and_what_is_allowed() {
    passes("errors_said", &[1, 2]);
}

#[test]
fn corners_of_the_standard() {
    passes("corners", &[1, 2, 4]);
}

#[test]
fn buffered_sends_find_room_again() {
    passes("buffered_room", &[2, 3]);
    let folder = TempDir::new().expect("there is room for a folder");
    // Taken out of the sender's memory, messages leave without the sender's seeing it.
    let mut copied = command(&program(&folder, "buffered_room"), 2, &[]);
    let output = copied.env("WEFT_SINGLE_COPY_BYTES", "65537").output().expect("weft can be started");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out == "ok\n", "{}\n{out}{err}", output.status);
}

#[test]
fn loops_of_questions_hand_over_a_shared_core() {
    // The program puts its ranks onto one core. Those that the launcher may bind have sessions of their own, among
    // which the kernel hands nothing over where it shares processor time by session.
    let folder = TempDir::new().expect("there is room for a folder");
    let program = program(&folder, "asking");
    for ranks in ["2", "3"] {
        let mut command = Command::new(tree().join("bin/weft"));
        command.args(["run", "--timeout", "60", "--bind", "none", "-n", ranks]).arg(&program);
        let output = command.output().expect("weft can be started");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && out == "ok\n", "{ranks} ranks: {}\n{out}{err}", output.status);
    }
}

#[test]
fn topologies() {
    passes("objects_topology", &[1, 2, 3, 6, 8]);
}

#[test]
fn threads_make_communicators_at_the_same_time() {
    passes("objects_threads", &[1, 2, 3, 4]);
}

#[test]
fn an_error_that_nobody_handles_says_who_where_what_and_ends_the_job() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = program(&folder, "errors_fatal");
    let cases = [
        ("rank", 2, 6, ": MPI_Send: rank 7, but MPI_COMM_WORLD has ranks 0 to 1 (MPI_ERR_RANK)"),
        (
            "port",
            1,
            43,
            "weft: rank 0: MPI_Close_port: port_name 'nowhere' is no port that this process has open (MPI_ERR_PORT)",
        ),
        ("abort", 2, 42, "MPI_Abort was called with code 42"),
        ("early", 1, 16, "MPI_Barrier was called before MPI_Init"),
        ("late", 1, 16, "MPI_Barrier was called after MPI_Finalize"),
    ];
    for (what, ranks, code, line) in cases {
        let output = run(&program, ranks, &[what]);
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{what}: {err}");
        assert!(err.lines().any(|found| found.contains(line)), "{what}: {err}");
    }
}

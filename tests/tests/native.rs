//! Programs for the native interface (`interfaces/native`): C over `weft.h`, and Python.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;
use weft_tests::{ranks, root, tree};

const SOURCES: &str = "tests/c/native";

/// Compiles one of the programs, as its user would: with what pkg-config says.
fn compiled(folder: &Path, name: &str) -> PathBuf {
    compiled_from(SOURCES, folder, name)
}

fn compiled_from(sources: &str, folder: &Path, name: &str) -> PathBuf {
    let found = Command::new("pkg-config")
        .args(["--cflags", "--libs", "weft-native"])
        .env("PKG_CONFIG_PATH", tree().join("lib/pkgconfig"))
        .output()
        .expect("pkg-config can be started");
    let flags = String::from_utf8(found.stdout).expect("text");
    assert!(flags.contains("-lweft"), "{flags}");
    let program = folder.join(name);
    let output = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-pthread", "-o"])
        .arg(&program)
        .arg(root().join(sources).join(name).with_extension("c"))
        .args(flags.split_whitespace())
        .output()
        .expect("a C compiler");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Runs one of the programs on so many ranks.
fn run(name: &str, ranks: u32, arguments: &[&str], settings: &[(&str, &str)]) -> Output {
    let folder = TempDir::new().expect("there is room for a folder");
    let mut command = ranks::command(&compiled(folder.path(), name), ranks, arguments);
    command.envs(settings.iter().copied()).output().expect("weft can be started")
}

/// `weft run` of a job that goes on without processes that are lost.
fn keeping_on(ranks: u32) -> Command {
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["run", "--timeout", "60", "--keep-going", "-n", &ranks.to_string()]).stdin(Stdio::null());
    command
}

fn passes(name: &str, ranks: u32, arguments: &[&str], settings: &[(&str, &str)]) {
    let output = run(name, ranks, arguments, settings);
    ranks::assert_ok(&format!("{name} {arguments:?} on {ranks} ranks with {settings:?}"), &output);
}

/// Who waits sleeps at once.
const SLEEPY: [(&str, &str); 2] = [("WEFT_SPIN_US", "0"), ("WEFT_YIELD_US", "0")];

#[test]
fn messages_of_all_lengths_go_there_and_back() {
    passes("thin", 2, &[], &[]);
    passes("thin", 2, &[], &SLEEPY);
    passes("thin", 2, &[], &[("WEFT_DEVICE", "udp,tcp")]);
}

#[test]
fn messages_are_started_now_and_waited_for_later() {
    passes("later", 2, &[], &[]);
    passes("later", 2, &[], &SLEEPY);
    passes("later", 2, &[], &[("WEFT_DEVICE", "udp,tcp")]);
    let folder = TempDir::new().expect("there is room for a folder");
    let mut command = keeping_on(2);
    let output = command.arg(compiled(folder.path(), "later")).arg("lost").output().expect("weft can be started");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ok\n", "{output:?}");
}

#[test]
fn the_first_of_ports_and_descriptors_ends_a_wait_and_event_loops_are_woken() {
    passes("waits", 2, &[], &[]);
    passes("waits", 2, &[], &SLEEPY);
    passes("waits", 2, &[], &[("WEFT_DEVICE", "udp,tcp"), SLEEPY[0], SLEEPY[1]]);
}

/// A name that nobody else uses.
fn name(what: &str) -> String {
    format!("{what} {}", std::process::id())
}

#[test]
fn jobs_meet_at_a_port_with_a_name() {
    let folder = TempDir::new().expect("there is room for a folder");
    let (program, name) = (compiled(folder.path(), "named"), name("meeting"));
    // Two ranks of another job, and a process that nobody has launched, which come before or after the owner.
    let mut all = [
        ranks::command(&program, 2, &["guest", &name]),
        ranks::command(&program, 2, &["owner", &name, "3"]),
        Command::new(&program),
    ];
    all[2].args(["guest", &name]);
    let spawn = |command: &mut Command| command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    let started: Vec<_> = all.iter_mut().map(spawn).collect();
    for one in started {
        ranks::assert_ok("named", &one.wait_with_output().expect("it ends"));
    }
}

#[test]
fn a_name_ends_with_its_owner_however_that_ends() {
    let folder = TempDir::new().expect("there is room for a folder");
    let (program, name) = (compiled(folder.path(), "named"), name("squat"));
    for _ in 0..3 {
        let output = Command::new(&program).args(["squatter", &name]).output().expect("it can be started");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "ok\n", "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn an_owner_that_can_let_nobody_in_sleeps_and_answers_later() {
    let folder = TempDir::new().expect("there is room for a folder");
    let output = Command::new(compiled(folder.path(), "few")).arg(name("few")).output();
    ranks::assert_ok("few", &output.expect("it can be started"));
}

#[test]
fn raw_bytes_memory_of_others_and_handlers() {
    passes("transfers", 2, &[], &[]);
    passes("transfers", 2, &[], &SLEEPY);
    passes("transfers", 2, &[], &[("WEFT_DEVICE", "udp,tcp")]);
}

#[test]
fn members_of_a_group_receive_the_same_in_the_same_order() {
    passes("groups", 1, &[], &[]);
    passes("groups", 3, &[], &[]);
    passes("groups", 3, &[], &SLEEPY);
    passes("groups", 3, &[], &[("WEFT_DEVICE", "udp,tcp")]);
}

#[test]
fn a_group_goes_on_without_the_member_that_has_ordered() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compiled(folder.path(), "groups");
    let output = keeping_on(3).arg(&program).arg("killed").output().expect("weft can be started");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(out, "ok\n", "{}\n{err}", output.status);
}

#[test]
fn wrong_arguments_are_errors_that_say_what_is_wrong() {
    passes("wrong", 1, &[], &[]);
}

#[test]
fn who_waits_for_a_process_that_is_gone_is_told_and_goes_on() {
    passes("lost", 3, &["well"], &[]);
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compiled(folder.path(), "lost");
    let output = keeping_on(3).arg(&program).arg("killed").output().expect("weft can be started");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(out, "ok\n", "{}\n{err}", output.status);
}

#[test]
fn processes_are_started_and_signalled_and_told_of() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compiled(folder.path(), "start");
    for ranks in [1, 2] {
        for settings in [&[][..], &SLEEPY] {
            let output = ranks::command(&program, ranks, &[]).envs(settings.iter().copied()).output();
            ends_with_ok(&output.expect("weft can be started"));
        }
    }
    // One that nobody has launched.
    ends_with_ok(&Command::new(&program).stdin(Stdio::null()).output().expect("it can be started"));
}

/// Of processes that were lost the launcher tells, too.
fn ends_with_ok(output: &Output) {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out == "ok\n", "{}: {out}\n{err}", output.status);
}

#[test]
fn python_has_ports_objects_memory_and_coroutines() {
    let name = name("python");
    let script = root().join(SOURCES).join("all.py");
    let script = script.to_str().expect("text");
    let python = |mut command: Command| {
        let command = command.env("PYTHONPATH", tree().join("lib/python")).env("PYTHONDONTWRITEBYTECODE", "1");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it can be started")
    };
    let ranks = python(ranks::command(Path::new("python3"), 2, &[script, &name]));
    let mut guest = Command::new("python3");
    guest.args([script, &name, "guest"]);
    let guest = python(guest);
    for one in [ranks, guest] {
        ranks::assert_ok("python", &one.wait_with_output().expect("it ends"));
    }
}

#[test]
fn the_board_keeps_notes_from_c_and_python() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compiled_from("apps/board", folder.path(), "board");
    let mut board = Command::new(&program).spawn().expect("it can be started");
    let visit = |mut command: Command, words: &[&str]| {
        let command = command.args(words).env("PYTHONPATH", tree().join("lib/python"));
        let output = command.env("PYTHONDONTWRITEBYTECODE", "1").output().expect("it can be started");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let script = root().join("apps/board/board.py");
    let python = || {
        let mut command = Command::new("python3");
        command.arg(&script);
        command
    };
    visit(Command::new(&program), &["pin", "a note"]);
    visit(python(), &["pin", "another one"]);
    let read = [visit(Command::new(&program), &["read"]), visit(python(), &["read"])];
    board.kill().and_then(|()| board.wait()).expect("it runs");
    assert_eq!(read, ["a note\nanother one\n"; 2]);
}

#[test]
fn ports_and_mpi_go_together() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = ranks::compile_from(SOURCES, folder.path(), "beside", &["-lweft"]);
    for settings in [&[][..], &SLEEPY] {
        let output = ranks::command(&program, 2, &[]).envs(settings.iter().copied()).output();
        ranks::assert_ok("beside", &output.expect("weft can be started"));
    }
}

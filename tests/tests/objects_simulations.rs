//! Bodies, maps and ions over shared objects, as their users run them: known answers, the same result and the same
//! picture for every number of processes, and wrong use in one line.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use weft_tests::build;

fn run(program: &Path, processes: u32, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    if processes > 0 {
        command = Command::new(build::weft());
        command.args(["run", "--timeout", "60", "-n", &processes.to_string()]).arg(program);
    }
    command.args(arguments).output().expect("it can be started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a run has found, and its picture. It must be right.
fn found(program: &Path, processes: u32, arguments: &[&str]) -> (String, Vec<u8>) {
    let folder = tempfile::tempdir().expect("a place for a picture");
    let picture = folder.path().join("picture.png");
    let picture_option = ["--picture", picture.to_str().expect("text")];
    let output = run(program, processes, &[arguments, &picture_option].concat());
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    let what = format!("{arguments:?} on {processes} processes: {}\n{out}{err}", output.status);
    assert!(output.status.success() && err.is_empty(), "{what}");
    let plural = if processes > 1 { "processes" } else { "process" };
    let end = format!(", {} {plural}, ", processes.max(1));
    let (found, rest) = out.split_once(&end).unwrap_or_else(|| panic!("no '{end}' in {what}"));
    assert!(rest.ends_with(" s: right\n"), "{what}");
    let painted = std::fs::read(&picture).unwrap_or_else(|fault| panic!("{fault}: {what}"));
    (found.to_owned(), painted)
}

/// The program finds the same without a launcher, and on one to three processes; the answer is that.
fn same_on_any_number(program: &Path, arguments: &[&str]) -> String {
    let first = found(program, 0, arguments);
    for processes in 1..=3 {
        let next = found(program, processes, arguments);
        assert_eq!(next.0, first.0, "{arguments:?} on {processes} processes");
        assert!(next.1 == first.1, "{arguments:?} on {processes} processes: another picture");
    }
    first.0
}

/// One line, by one process.
fn refuses(program: &Path, arguments: &[&str], allowed: &str) {
    let output = run(program, 2, arguments);
    let err = text(&output.stderr);
    let lines: Vec<&str> = err.lines().filter(|line| arguments.iter().all(|word| line.contains(word))).collect();
    assert!(lines.len() == 1 && lines[0].contains(allowed), "{arguments:?}: {err}");
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {err}");
}

fn program(name: &str) -> PathBuf {
    build::binary(name)
}

#[test]
fn bodies_move_as_they_do_in_another_program() {
    let barnes = program("barnes");
    same_on_any_number(&barnes, &["--class", "S"]);
    // Fewer bodies than go into a leaf, and fewer than processes.
    same_on_any_number(&barnes, &["--bodies", "9", "--steps", "3"]);
    same_on_any_number(&barnes, &["--bodies", "2", "--steps", "3"]);
    refuses(&barnes, &["--bodies", "1"], "2..=16777216");
}

#[test]
fn maps_are_laid_over_each_other() {
    let polygon = program("polygon");
    let found = same_on_any_number(&polygon, &["--class", "S"]);
    assert_eq!(found, "polygon: 1081 and 1082 polygons, 3916 in the overlay");
    same_on_any_number(&polygon, &["--size", "700", "--polygons", "4000"]);
    same_on_any_number(&polygon, &["--size", "2", "--polygons", "1"]);
    refuses(&polygon, &["--polygons", "60000"], "up to 45000 on 300 x 300 cells");
}

#[test]
fn ions_recombine_or_escape() {
    let moca = program("moca");
    same_on_any_number(&moca, &["--clusters", "5"]);
    // Several processes take part at the start, and fewer later.
    same_on_any_number(&moca, &["--particles", "400", "--clusters", "2"]);
    same_on_any_number(&moca, &["--particles", "2", "--clusters", "3"]);
    refuses(&moca, &["--particles", "35"], "even numbers");
}

//! The applications over shared objects, as their users run them: right answers, the same result and picture for every
//! number of processes, and wrong use in one line.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use weft_tests::build;

/// One application with its small inputs.
struct App {
    program: PathBuf,
    name: &'static str,
    folder: tempfile::TempDir,
}

impl App {
    fn new(name: &'static str) -> Self {
        let program = build::binary(name);
        Self { program, name, folder: tempfile::tempdir().expect("a place for pictures") }
    }

    /// Runs it on so many processes; without a launcher if that is 0.
    fn run(&self, processes: u32, arguments: &[&str]) -> Output {
        let mut command = match processes {
            0 => Command::new(&self.program),
            _ => {
                let mut command = Command::new(build::weft());
                command.args(["run", "--timeout", "60", "-n", &processes.to_string()]).arg(&self.program);
                command
            }
        };
        command.args(arguments).output().expect("it can be started")
    }

    /// All runs with these arguments end well, say the same but for processes and time, and paint the same.
    fn is_the_same_on_any_number_of_processes(&self, arguments: &[&str]) {
        let mut first = None;
        for processes in [0, 1, 2, 3] {
            let picture = self.folder.path().join(format!("{processes}.png"));
            let mut all = arguments.to_vec();
            all.extend(["--picture", picture.to_str().expect("a path that is text")]);
            let output = self.run(processes, &all);
            let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            let what = format!("{} {all:?} on {processes} processes", self.name);
            assert!(output.status.success() && err.is_empty(), "{what}: {}\n{out}{err}", output.status);
            assert!(out.ends_with(" s: right\n"), "{what}: {out}");
            assert!(out.contains(&format!(", {} process", processes.max(1))), "{what}: {out}");
            let found = (without_time(&out), bytes(&picture));
            assert!(found.1.starts_with(b"\x89PNG"), "{what}: no picture");
            let first = first.get_or_insert_with(|| found.clone());
            assert_eq!(found.0, first.0, "{what}");
            assert!(found.1 == first.1, "{what}: another picture");
        }
    }

    /// Process 0 alone tells in one line, which says what is allowed.
    fn refuses(&self, arguments: &[&str], allowed: &str) {
        for processes in [0, 2] {
            let output = self.run(processes, arguments);
            let err = String::from_utf8_lossy(&output.stderr);
            let told: Vec<&str> = err.lines().filter(|line| line.contains(&format!("{}: ", self.name))).collect();
            let [line] = told[..] else { panic!("{arguments:?} on {processes} processes: {err}") };
            let names = arguments.iter().all(|argument| line.contains(argument));
            assert!(names && line.contains(allowed), "{arguments:?}: {line}");
            assert_eq!(output.status.code(), Some(2), "{arguments:?} on {processes} processes: {err}");
        }
    }
}

fn bytes(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_default()
}

/// The last line ends with processes and seconds.
fn without_time(out: &str) -> String {
    let line = out.lines().last().unwrap_or_default();
    let kept: Vec<&str> = line.split(", ").filter(|part| !part.contains("process") && !part.contains(" s: ")).collect();
    format!("{}\n{}", out.strip_suffix(&format!("{line}\n")).unwrap_or(out), kept.join(", "))
}

#[test]
fn over_relaxation_is_that_of_the_plain_loop() {
    let sor = App::new("sor");
    sor.is_the_same_on_any_number_of_processes(&["--class", "S"]);
    // Sizes without a known answer are compared with the plain loop: odd ones, and a row for each process.
    sor.is_the_same_on_any_number_of_processes(&["--rows", "37", "--columns", "53"]);
    sor.is_the_same_on_any_number_of_processes(&["--rows", "5", "--columns", "8"]);
    sor.refuses(&["--rows", "2"], "3..=65536");
    sor.refuses(&["--class", "Z"], "possible values: S, P, L");
}

#[test]
fn skyline_systems_are_solved() {
    let skyline = App::new("skyline");
    skyline.is_the_same_on_any_number_of_processes(&["--class", "S"]);
    skyline.is_the_same_on_any_number_of_processes(&["--equations", "150", "--fill", "100"]);
    // Fewer rows than one process announces.
    skyline.is_the_same_on_any_number_of_processes(&["--equations", "7", "--fill", "50"]);
    skyline.refuses(&["--fill", "0"], "1..=100");
}

#[test]
fn end_games_have_known_values() {
    let awari = App::new("awari");
    awari.is_the_same_on_any_number_of_processes(&["--class", "S"]);
    awari.is_the_same_on_any_number_of_processes(&["--stones", "4", "--plain"]);
    awari.refuses(&["--stones", "18"], "1..=17");
}

//! `weft sock` and `weft run --sockets` themselves.

use std::process::Command;
use tempfile::TempDir;
use weft_tests::sockets::{library, run};
use weft_tests::tree;

fn weft(arguments: &str) -> Command {
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(arguments.split_whitespace());
    command
}

/// What a shell under this command sees in its environment.
fn seen(command: &mut Command, variable: &str) -> String {
    run(command.args(["sh", "-c", &format!("echo ${variable}")])).text().trim().to_owned()
}

#[test]
fn the_library_stands_before_what_was_preloaded_and_rules_are_passed_on() {
    let library = library().to_string_lossy().into_owned();
    assert_eq!(seen(&mut weft("sock --"), "LD_PRELOAD"), library);
    assert_eq!(seen(weft("sock").env("LD_PRELOAD", "libm.so.6"), "LD_PRELOAD"), format!("{library}:libm.so.6"));
    assert_eq!(seen(&mut weft("sock --only 80,90-99"), "WEFT_SOCK_ONLY"), "80,90-99");
    assert_eq!(seen(&mut weft("sock --spin 7"), "WEFT_SOCK_SPIN_US"), "7");
    assert_eq!(seen(&mut weft("sock --not sh"), "LD_PRELOAD"), "", "an excluded program is left alone");
}

#[test]
fn every_rank_of_a_job_gets_the_library() {
    let library = library().to_string_lossy().into_owned();
    let seen = seen(&mut weft("run --sockets --bind none -n 2"), "LD_PRELOAD");
    assert_eq!(seen.lines().collect::<Vec<_>>(), [&library, &library]);
}

#[test]
fn the_program_takes_the_place_of_the_command() {
    let mut child = weft("sock -- sleep 1000").spawn().expect("weft can be started");
    let name = format!("/proc/{}/comm", child.id());
    // Only a program that has replaced the command ever shows this name under its number.
    while std::fs::read_to_string(&name).expect("our child") != "sleep\n" {
        std::thread::yield_now();
    }
    child.kill().expect("our child");
    child.wait().expect("our child");
    let code = weft("sock -- sh -c").arg("exit 7").status().expect("weft can be started").code();
    assert_eq!(code, Some(7));
    assert_eq!(weft("sock -- no-such-program-anywhere").output().expect("weft").status.code(), Some(127));
}

#[test]
fn a_program_that_cannot_be_preloaded_is_named_and_runs() {
    let folder = TempDir::new().expect("a folder");
    let (source, program) = (folder.path().join("alone.c"), folder.path().join("alone"));
    std::fs::write(&source, "int main(void) { return 3; }\n").expect("a file");
    run(Command::new("cc").arg("-static").arg("-o").arg(&program).arg(&source));
    let output = weft("sock --").arg(&program).output().expect("weft can be started");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("/alone' is linked statically"), "{said}");
    assert_eq!(output.status.code(), Some(3));
}

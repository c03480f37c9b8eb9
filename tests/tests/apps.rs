//! The small programs of `apps`, one for each of the smaller interfaces: each has an answer that is known.

use std::process::{Command, Output};
use tempfile::TempDir;
use weft_tests::{interfaces, ranks};

/// What it prints.
fn said(mut command: Command) -> String {
    let output: Output = command.output().expect("it can be started");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && err.is_empty(), "{}\n{out}{err}", output.status);
    out.into_owned()
}

fn compiled(folder: &TempDir, name: &str, libraries: &str) -> std::path::PathBuf {
    interfaces::compile(folder.path(), &format!("apps/{name}/{name}.c"), libraries, &["-O2"])
}

#[test]
fn fractal_is_the_same_picture_for_any_number_of_workers() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compiled(&folder, "fractal", "pvm3");
    let picture = |workers: &str| {
        let file = folder.path().join(workers);
        let mut command = Command::new("timeout");
        command.arg("60").arg(&program).arg(workers).arg(&file);
        command.env("PVM_VMID", format!("test-{}-fractal", std::process::id()));
        assert_eq!(said(command), format!("{workers} workers, done\n"));
        std::fs::read(file).expect("it has written the picture")
    };
    let picture = [picture("1"), picture("3")];
    assert!(picture[0] == picture[1] && picture[0].starts_with(b"P5\n720 480\n255\n"));
    // In the middle is the set, and outside of it not much.
    let at = |row: usize, column: usize| picture[0][b"P5\n720 480\n255\n".len() + row * 720 + column];
    assert_eq!((at(240, 480), at(0, 0)), (0, 254));
}

#[test]
fn primes_are_counted() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compiled(&folder, "primes", "p4");
    for (others, processes) in [("0", 1), ("2", 3)] {
        std::fs::write(folder.path().join("group"), format!("local {others}\n")).expect("there is room for a file");
        let mut command = Command::new("timeout");
        command.arg("60").arg(&program).args(["100000", "-p4pg", "group"]).current_dir(folder.path());
        let said = said(command);
        assert!(said.starts_with(&format!("9592 primes below 100000; the busiest of {processes} ")), "{said}");
    }
    let output = ranks::command(&program, 2, &[]).output().expect("weft can be started");
    assert!(String::from_utf8_lossy(&output.stderr).contains("share no memory"), "{output:?}");
}

#[test]
fn pi_is_found() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compiled(&folder, "pi", "tcgmsg m");
    for ranks in [1, 3] {
        let said = said(ranks::command(&program, ranks, &["50"]));
        assert!(said.starts_with("pi is 3.14159265") && said.contains("in 50 strips"), "{said}");
    }
}

#[test]
fn histogram_has_every_number() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compiled(&folder, "histogram", "am");
    for ranks in [1, 3] {
        let said = said(ranks::command(&program, ranks, &["2000"]));
        assert!(said.ends_with(&format!("{} numbers of {ranks} processes\n", 2000 * ranks)), "{said}");
        assert_eq!(said.lines().count(), 41, "{said}");
    }
}

#[test]
fn life_is_the_same_for_any_number_of_processes() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compiled(&folder, "life", "fm");
    let said = [1, 2, 5].map(|ranks| said(ranks::command(&program, ranks, &["300"])));
    assert!(said.iter().all(|one| *one == said[0] && one.ends_with(" cells live after 300 generations\n")), "{said:?}");
    assert_eq!(self::said(ranks::command(&program, 2, &["2"])), "7 cells live after 2 generations\n");
}

//! TCGMSG: C and Fortran programs over the installed library.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Output;
use tempfile::TempDir;
use weft_tests::{interfaces, ranks, tree};

struct Program {
    _folder: TempDir,
    path: PathBuf,
    place: String,
}

fn program(source: &str, more: &[&str]) -> Program {
    let folder = TempDir::new().expect("there is room for a folder");
    let path = interfaces::compile(folder.path(), &format!("tests/c/tcgmsg/{source}"), "tcgmsg", more);
    let place = folder.path().to_str().expect("text").to_owned();
    Program { _folder: folder, path, place }
}

fn run(program: &Program, nodes: u32, arguments: &[&str], settings: &[(&str, &str)]) -> Output {
    let mut command = ranks::command(&program.path, nodes, arguments);
    command.envs(settings.iter().copied()).output().expect("weft can be started")
}

/// Who waits sleeps at once.
const SLEEPY: [(&str, &str); 2] = [("WEFT_SPIN_US", "0"), ("WEFT_YIELD_US", "0")];

#[test]
fn whole_interface_works_in_c() {
    let whole = program("whole.c", &[]);
    let cases: [(u32, &[(&str, &str)]); 4] = [(1, &[]), (2, &[]), (5, &[]), (3, &SLEEPY)];
    for (nodes, settings) in cases {
        let output = run(&whole, nodes, &[&nodes.to_string(), &whole.place], settings);
        ranks::assert_ok(&format!("whole on {nodes} with {settings:?}"), &output);
    }
}

#[test]
fn whole_interface_works_without_shared_memory() {
    let whole = program("whole.c", &[]);
    for device in ["udp,tcp", "tcp"] {
        let output = run(&whole, 3, &["3", &whole.place], &[("WEFT_DEVICE", device)]);
        ranks::assert_ok(device, &output);
    }
}

#[test]
fn fortran_calls_it() {
    let fortran = program("fortran.f90", &[]);
    for nodes in [1, 2, 4] {
        let output = run(&fortran, nodes, &[&fortran.place], &[]);
        ranks::assert_ok(&format!("fortran on {nodes}"), &output);
    }
}

#[test]
fn an_integer_of_fortran_may_have_eight_bytes() {
    let folder = TempDir::new().expect("there is room for a folder");
    let source = "tests/c/tcgmsg/fortran.f90";
    let path = interfaces::compile(folder.path(), source, "tcgmsg8 tcgmsg", &["-fdefault-integer-8"]);
    let place = folder.path().to_str().expect("text").to_owned();
    let fortran = Program { _folder: folder, path, place };
    ranks::assert_ok("fortran", &run(&fortran, 3, &[&fortran.place], &[]));
}

#[test]
fn older_names_take_longs_or_ints() {
    for integers in [&[][..], &["-DTCGMSG_INTEGER=4"]] {
        let old = program("old.c", integers);
        ranks::assert_ok(&format!("old {integers:?}"), &run(&old, 3, &[], &[]));
    }
}

#[test]
fn parallel_runs_what_a_procgrp_file_says() {
    let old = program("old.c", &[]);
    let folder = TempDir::new().expect("there is room for a folder");
    let parallel = |text: &str| {
        std::fs::write(folder.path().join("job.p"), text).expect("there is room for a file");
        let mut command = std::process::Command::new(tree().join("bin/weft"));
        command.arg0("parallel").arg("job").current_dir(folder.path()).output().expect("weft can be started")
    };
    let program = old.path.display();
    let output = parallel(&format!("# all here\nme localhost 2 {program} /\nme localhost 1 {program} .\n"));
    ranks::assert_ok("parallel", &output);
    let output = parallel("me localhost two program .\n");
    let expected = "parallel: job.p:1: 'two' is no number of processes, 1 to 8192; \
                    a line is: USER HOST PROCESSES PROGRAM DIRECTORY\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn what_a_program_does_wrong_ends_the_job_with_a_line() {
    let faults = program("faults.c", &[]);
    let expected = [
        ("early", "  0: SYNCH: called before PBEGIN or after PEND -1 (0xffffffffffffffff)."),
        ("twice", "  0: PBEGIN: TCGMSG was initialized already -1 (0xffffffffffffffff)."),
        ("type", "  0: RCV: type mismatch: node 1 has sent type 5, expected 6 (0x6)."),
        ("long", "  0: RCV: message of node 1 is too long for the buffer of 10 bytes: 100000 (0x186a0)."),
        ("self", "  0: SND: no message goes from a process to itself, node 0 (0x0)."),
        ("node", "  0: RCV: there is no such node among 2: 7 (0x7)."),
        ("length", "  0: SND: message length out of range: -1 (0xffffffffffffffff)."),
        ("operation", "  0: DGOP: unknown operation 'plus', numbers: 1 (0x1)."),
        ("counter", "  0: NXTVAL: the number of processes must not be 0 (0x0)."),
        ("file", "  0: PFCOPY: cannot open /no/such/file: No such file or directory (os error 2), node 0 (0x0)."),
        ("error", "  0: the program says so 42 (0x2a)."),
        ("gone", "  0: RCV: this process has ended, node 1 (0x1)."),
        ("gone before it took", "  0: WAITCOM: this process has ended, node 1 (0x1)."),
    ];
    for (what, line) in expected {
        let output = run(&faults, 2, &[what], &[]);
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{what}: {err}");
        assert!(err.lines().any(|said| said == line), "{what}: {err}");
    }
}

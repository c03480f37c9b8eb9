//! P4: C and Fortran programs over the installed library, alone on a host and under `weft run`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;
use weft_tests::{interfaces, ranks};

struct Program {
    folder: TempDir,
    path: PathBuf,
}

fn program(source: &str) -> Program {
    let folder = TempDir::new().expect("there is room for a folder");
    let path = interfaces::compile(folder.path(), &format!("tests/c/p4/{source}"), "p4", &[]);
    Program { folder, path }
}

impl Program {
    /// The command that runs it with this text as its procgroup.
    fn with(&self, procgroup: &str) -> Command {
        fs::write(self.folder.path().join("group"), procgroup).expect("there is room for a file");
        // What hangs ends: the first process, and with it all others.
        let mut command = Command::new("timeout");
        command.arg("60").arg(&self.path).args(["-p4pg", "group"]).current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, procgroup: &str, arguments: &[&str]) -> Output {
        self.with(procgroup).args(arguments).output().expect("it can be started")
    }
}

/// Those whose numbers were printed are gone, or go now: whoever has ended them has been asked by then.
fn assert_gone(out: &str) {
    let pids: Vec<&str> = out.lines().collect();
    assert_eq!(pids.len(), 3, "{out}");
    for pid in pids {
        let status = Path::new("/proc").join(pid).join("status");
        let lives = || fs::read_to_string(&status).is_ok_and(|text| !text.contains("State:\tZ"));
        let patience = (0..200).find(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            !lives()
        });
        assert!(patience.is_some(), "process {pid} lives");
    }
}

#[test]
fn whole_interface_works_on_one_host() {
    let whole = program("whole.c");
    for (slaves, sleepy) in [(0, false), (1, false), (4, false), (2, true)] {
        let all = (slaves + 1).to_string();
        let mut command = whole.with(&format!("# a comment\nlocal {slaves}\n"));
        command.args([&all, "1"]);
        if sleepy {
            command.env("WEFT_SPIN_US", "0").env("WEFT_YIELD_US", "0");
        }
        let output = command.output().expect("it can be started");
        ranks::assert_ok(&format!("whole with {slaves} slaves"), &output);
    }
}

#[test]
fn each_process_is_a_cluster_under_weft_run() {
    let whole = program("whole.c");
    for (processes, device) in [("1", "auto"), ("3", "auto"), ("3", "udp,tcp")] {
        let mut command =
            ranks::command(&whole.path, processes.parse().expect("a number"), &["-p4norem", processes, "0"]);
        let output = command.env("WEFT_DEVICE", device).output().expect("weft can be started");
        ranks::assert_ok(&format!("whole on {processes} with {device}"), &output);
    }
}

#[test]
fn several_clusters_are_started_as_one_job() {
    let fortran = program("fortran.f90");
    let path = fortran.path.display();
    let output = fortran.run(&format!("local 1\nlocalhost 1 {path}\nlocalhost 2 {path}\n"), &[]);
    ranks::assert_ok("three clusters", &output);
    let faults = program("faults.c");
    let output = faults.run(&format!("local 0\nlocalhost 2 {path} nobody-else\n"), &["soft"]);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains("the name of the user has 11 bytes, at most 9 are allowed"), "{err}");
}

#[test]
fn fortran_calls_it() {
    let fortran = program("fortran.f90");
    ranks::assert_ok("fortran", &fortran.run("local 2\n", &[]));
    ranks::assert_ok("fortran under weft run", &ranks::command(&fortran.path, 2, &[]).output().expect("weft"));
}

/// The message is longer than what leaves before its receiver asks.
#[test]
fn what_was_sent_last_arrives_though_its_sender_ends() {
    let faults = program("faults.c");
    let output = faults.run("local 1\n", &["last"]);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.ends_with("arrived\n"), "{out}{err}");
}

#[test]
fn a_killed_process_takes_the_job_along() {
    let faults = program("faults.c");
    let said = [
        ("killed", " of the job was ended by signal 9"),
        ("computes", " of the job was ended by signal 9"),
        ("error", ":  p4_error: the program says so: 42"),
        ("master killed", ""),
    ];
    for (what, line) in said {
        let output = faults.run("local 2\n", &[what]);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(!output.status.success() && err.contains(line), "{what}: {out}{err}");
        assert_eq!(err.lines().count(), usize::from(!line.is_empty()), "{what}: {err}");
        assert_gone(&out);
    }
}

#[test]
fn what_is_wrong_is_told_in_a_line() {
    let faults = program("faults.c");
    let said = [
        ("process", "p4_error: p4_send: there is no such process among 3: 77"),
        ("length", "p4_error: p4_send: a message has no such length: -1"),
        ("twice", "p4_error: p4_shfree: the memory is none of p4_shmalloc, or was given back before: -1"),
        ("gone", "p4_error: p4_recv: the process of this number (-1: all others) has ended: 1"),
    ];
    for (what, line) in said {
        let output = faults.run("local 2\n", &[what]);
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{what}: {err}");
        assert!(err.lines().count() == 1 && err.contains(line), "{what}: {err}");
    }
    let output = faults.run("local 0\n", &["soft"]);
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && out.ends_with("\n0 -1 1\n"), "{out}");
}

#[test]
fn a_bad_procgroup_is_told_with_file_and_line() {
    let faults = program("faults.c");
    let allowed = "a line is: HOST PROCESSES [PROGRAM [USER]]";
    let output = faults.run("# two\nlocal two\n", &["soft"]);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains(&format!("group:2: 'two' is no number of processes, 0 or more; {allowed}")), "{err}");
    let mut command = Command::new(&faults.path);
    let output = command.args(["-p4pg", "/no/such/file", "soft"]).output().expect("it can be started");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains("the procgroup file /no/such/file cannot be read: No such file"), "{err}");
}

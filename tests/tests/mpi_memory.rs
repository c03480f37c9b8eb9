//! Ranks whose shared memory cannot grow any more: what needs it ends with the reason, and nobody waits for ever.

use std::path::{Path, PathBuf};
use std::process::Output;
use tempfile::TempDir;
use weft_tests::ranks::{command, compile};

/// `MPI_ERR_IN_STATUS`, which `MPI_Waitall` answers for whatever a status says; and `MPI_ERR_NO_MEM`.
const IN_STATUS: i32 = 19;
const NO_MEM: i32 = 39;

fn program() -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compile(folder.path(), "no_memory", &[]);
    (folder, program)
}

fn run(program: &Path, ranks: u32, arguments: &[&str]) -> (Output, String) {
    let output = command(program, ranks, arguments).output().expect("weft can be started");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, err)
}

#[test]
fn the_job_ends_once_and_the_reason_is_said() {
    let (_folder, program) = program();
    for (errno, words) in [("ENOSPC", "No space left on device"), ("ENOMEM", "Cannot allocate memory")] {
        for ranks in [2, 3, 4] {
            for operation in ["sendrecv", "long", "isend", "waitall", "barrier", "dup"] {
                let (output, err) = run(&program, ranks, &[errno, operation]);
                let what = format!("{errno}, {operation} on {ranks} ranks: {}\n{err}", output.status);
                let code = if operation == "waitall" { IN_STATUS } else { NO_MEM };
                assert_eq!(output.status.code(), Some(code), "{what}");
                assert!(err.contains(words) && err.contains("there is no shared memory for messages"), "{what}");
                assert_eq!(err.matches("was ended by an MPI error (MPI_ERRORS_ARE_FATAL)").count(), 1, "{what}");
                assert!(!err.contains("has ended") && !err.contains("is lost"), "{what}");
            }
        }
    }
}

#[test]
fn every_rank_is_told_where_errors_are_returned() {
    let (_folder, program) = program();
    for ranks in [2, 3, 4] {
        for operation in ["sendrecv", "long", "isend", "waitall"] {
            let mut command = std::process::Command::new(weft_tests::tree().join("bin/weft"));
            // A rank that ends does not end the others, so that all are heard.
            command.args(["run", "--keep-going", "--timeout", "60", "-n", &ranks.to_string()]);
            let output = command.arg(&program).args(["ENOMEM", operation, "returns"]).output().expect("a run");
            let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert_eq!(out.lines().count(), ranks as usize, "{operation} on {ranks} ranks: {out}\n{err}");
            // MPIX_ERR_PROC_FAILED: a job that goes on takes those whom it cannot reach for lost.
            assert!(out.lines().all(|class| class == "101"), "{operation} on {ranks} ranks: {out}\n{err}");
            assert!(!err.contains("time limit"), "{operation} on {ranks} ranks: {err}");
        }
    }
}

/// The memory is mapped, and descriptors are not needed any more. Numbers that are a program's own by now are left
/// alone.
#[test]
fn a_program_that_closes_all_descriptors_goes_on() {
    let (_folder, program) = program();
    for ranks in [1, 2, 3, 4] {
        for operation in ["sendrecv", "isend", "waitall", "barrier", "dup"] {
            let (output, err) = run(&program, ranks, &["close", operation]);
            assert!(output.status.success(), "{operation} on {ranks} ranks: {}\n{err}", output.status);
        }
    }
}

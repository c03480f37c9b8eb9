//! Programs of MPICH under our launcher, and our PMI client under MPICH's launcher.

use super::support::{Finished, finish, lines_sorted, weft_run};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use weft_tests::build;
use weft_tests::peers::Peer;

fn ending() -> &'static PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build::c_program(&Peer::Mpich.command("mpicc"), "tests/c/launcher/ending.c"))
}

fn run(ranks: usize, how: &str) -> Finished {
    finish(weft_run(&format!("-n {ranks} --timeout 60")).arg(ending()).arg(how))
}

#[test]
fn mpich_ring_runs_on_one_to_four_ranks() {
    for ranks in 1..=4usize {
        let done = run(ranks, "");
        assert_eq!((done.code, done.err.as_str()), (0, ""));
        let expected: Vec<String> =
            (0..ranks).map(|rank| format!("rank {rank} of {ranks} heard of {}", (rank + ranks - 1) % ranks)).collect();
        assert_eq!(lines_sorted(&done.out), expected);
    }
}

#[test]
fn mpich_ranks_that_end_badly_are_named() {
    let cases = [
        ("no-finalize", 1, "rank 1 (pid", "exited after MPI_Init without MPI_Finalize"),
        ("no-init", 1, "rank 1 (pid", "exited without MPI_Init while other ranks called it"),
        ("exit", 9, "rank 1 (pid", "exited with code 9"),
        ("abort", 42, "rank 1 (pid", "called MPI_Abort with code 42"),
        ("crash", 139, "rank 1 (pid", "segmentation fault"),
    ];
    for (how, code, who, cause) in cases {
        let done = run(3, how);
        assert_eq!(done.code, code, "{how}: {}", done.err);
        let line = done.err.lines().find(|line| line.starts_with("weft run: ")).expect(how);
        assert!(line.contains(who) && line.contains(cause), "{how}: {}", done.err);
    }
}

#[test]
fn mpich_code_after_finalize_is_ours_and_the_others_finish() {
    let done = run(3, "late");
    assert_eq!(done.code, 5, "{}", done.err);
    assert_eq!(done.out.lines().count(), 3);
    assert!(done.err.contains("exited with code 5 after MPI_Finalize"), "{}", done.err);
}

#[test]
fn our_pmi_client_runs_under_mpich_s_launcher_and_under_ours() {
    let client = build::example("pmi_ring");
    let mut foreign = Command::new(Peer::Mpich.command("mpiexec"));
    let expected = ["rank 0 of 3 heard 'from-2'", "rank 1 of 3 heard 'from-0'", "rank 2 of 3 heard 'from-1'"];
    let theirs = finish(foreign.args(["-n", "3"]).arg(&client));
    assert_eq!((theirs.code, lines_sorted(&theirs.out)), (0, expected.to_vec()), "{}", theirs.err);
    let ours = finish(weft_run("-n 3").arg(&client));
    assert_eq!((ours.code, lines_sorted(&ours.out)), (0, expected.to_vec()), "{}", ours.err);
}

#[test]
fn program_of_open_mpi_is_refused_in_one_line_where_pmix_is_off_or_cannot_be() {
    let program = build::c_program(&Peer::OpenMpi.command("mpicc"), "tests/c/launcher/ending.c");
    let done = finish(weft_run("-n 2").arg(&program).env("WEFT_PMIX", "off"));
    assert_eq!((done.code, done.out.as_str(), done.err.lines().count()), (1, "", 1), "{}", done.err);
    assert!(done.err.contains("Open MPI (libmpi.so.40)") && done.err.contains("2 jobs of one"), "{}", done.err);
    let done = finish(weft_run("-n 2").arg(&program).env("WEFT_PMIX_LIBRARY", "/no/libpmix.so"));
    assert_eq!((done.code, done.out.as_str(), done.err.lines().count()), (1, "", 1), "{}", done.err);
    assert!(done.err.contains("no PMIx server") && done.err.contains("/no/libpmix.so"), "{}", done.err);
}

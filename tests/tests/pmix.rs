//! Programs that speak PMIx under `weft run` on one host: a client of the library alone, and Open MPI's.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use weft_tests::peers::Peer;
use weft_tests::pmix::client;
use weft_tests::{build, tree};

struct Finished {
    code: i32,
    out: String,
    err: String,
}

fn weft_run(ranks: usize) -> Command {
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["run", "--bind", "none", "--timeout", "100", "-n", &ranks.to_string()]).stdin(Stdio::null());
    command
}

fn finish(command: &mut Command) -> Finished {
    let Output { status, stdout, stderr } = command.output().expect("it can be started");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Finished { code: status.code().unwrap_or(-1), out: text(stdout), err: text(stderr) }
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// All goes well, and each rank says this.
fn says(done: &Finished, ranks: usize, line: impl Fn(usize) -> String) {
    let expected: Vec<String> = (0..ranks).map(line).collect();
    let expected = sorted(&expected.join("\n")).into_iter().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!((done.code, sorted(&done.out), &*done.err), (0, expected.iter().map(String::as_str).collect(), ""));
}

#[test]
fn ranks_are_told_of_their_job() {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    let done = finish(weft_run(2).arg(client()).args([":", "-n", "1"]).arg(client()));
    let mut expected: Vec<String> = (0..3)
        .map(|rank| {
            format!(
                "rank {rank} of 3, universe 3, host 0 of 1, local {rank} of 3: 0,1,2, first 0, program {} of 2",
                rank / 2
            )
        })
        .collect();
    expected.extend((0..3).map(|rank| format!("rank {rank} knows {}", host.trim())));
    expected.sort_unstable();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    assert_eq!((done.code, sorted(&done.out), &*done.err), (0, expected, ""));
}

#[test]
fn what_ranks_put_comes_to_all_of_them() {
    for how in ["collect", "ask"] {
        says(&finish(weft_run(4).arg(client()).arg(how)), 4, |rank| format!("rank {rank} exchanged 20"));
    }
    says(&finish(weft_run(5).arg(client()).arg("parts")), 5, |rank| {
        format!("rank {rank} fenced with {}", 3 - rank % 2)
    });
}

#[test]
fn names_are_published_found_and_taken_back() {
    let done = finish(weft_run(3).arg(client()).arg("publish"));
    says(&done, 3, |rank| format!("rank {rank} found 'here it is' of rank 0"));
}

#[test]
fn ranks_connect_and_begin_again() {
    for what in ["connect", "again"] {
        let done = finish(weft_run(3).arg(client()).arg(what));
        assert_eq!((done.code, &*done.out, &*done.err), (0, "", ""), "{what}");
    }
}

/// What all users of the host may see is the name of the job, and the port. The library believes what a process says of
/// its user, so such a one is not to be taken for a rank.
#[test]
fn who_knows_no_more_than_others_may_see_is_no_rank() {
    let script = "exec env PMIX_NAMESPACE=weft-$WEFT_JOB \"$0\" again";
    let done = finish(weft_run(1).args(["sh", "-c", script]).arg(client()).env("WEFT_PMIX", "on"));
    assert_eq!((done.code, &*done.out), (9, ""), "{}", done.err);
    assert!(done.err.contains("init: "), "{}", done.err);
    let done = finish(weft_run(1).arg(client()).arg("stranger"));
    assert_eq!((done.code, &*done.out, &*done.err), (0, "", ""));
}

#[test]
fn further_processes_are_refused_in_one_line() {
    let done = finish(weft_run(2).arg(client()).arg("spawn"));
    assert_eq!((done.code, &*done.out), (0, "spawn: NOT-SUPPORTED\n"));
    assert_eq!(done.err, "weft run: rank 0: it asked by PMIx for further processes, which is not served\n");
}

#[test]
fn an_abort_a_killed_rank_and_one_that_leaves_end_the_job() {
    let done = finish(weft_run(3).arg(client()).arg("abort"));
    assert_eq!(done.code, 7, "{}", done.err);
    assert!(done.err.contains("rank 2 ") && done.err.contains("enough of it"), "{}", done.err);
    let done = finish(weft_run(3).arg(client()).arg("killed"));
    assert_eq!(done.code, 137, "{}", done.err);
    assert!(done.err.contains("rank 2 ") && done.err.contains("signal 9"), "{}", done.err);
    let done = finish(weft_run(3).arg(client()).arg("gone"));
    assert_ne!(done.code, 0, "{}", done.err);
    assert!(done.err.contains("rank 2 ") && done.err.contains("without MPI_Finalize"), "{}", done.err);
}

#[test]
fn a_library_that_is_not_there_is_named_with_what_helps() {
    let done = finish(weft_run(2).arg(client()).env("WEFT_PMIX_LIBRARY", "/no/libpmix.so"));
    assert_eq!((done.code, &*done.out, done.err.lines().count()), (1, "", 1), "{}", done.err);
    for part in ["/no/libpmix.so", "libpmix2", "WEFT_PMIX_LIBRARY", "WEFT_PMIX=off"] {
        assert!(done.err.contains(part), "{part}: {}", done.err);
    }
}

/// It is one of ours that believes what the server tells: both halves are held against each other.
#[test]
fn our_own_programs_take_pmix_where_it_is_switched_on() {
    let member = build::c_program(&tree().join("bin/mpicc"), "tests/c/join/member.c");
    let done = finish(weft_run(3).arg(member).env("WEFT_PMIX", "on"));
    says(&done, 3, |rank| format!("rank {rank} of 3 sum 6"));
    let told = finish(weft_run(1).args(["sh", "-c", "echo $PMIX_RANK,$PMI_RANK,$WEFT_SEGMENT"]).env("WEFT_PMIX", "on"));
    assert_eq!(told.out, "0,,\n", "one way, not two");
    let told = finish(weft_run(1).args(["sh", "-c", "echo $PMIX_RANK,$PMI_RANK"]));
    assert_eq!(told.out, ",0\n");
}

fn open_mpi() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build::c_program(&Peer::OpenMpi.command("mpicc"), "tests/c/join/member.c"))
}

/// With the library that comes with it, and with Debian's, which is older.
#[test]
fn programs_of_open_mpi_run_with_their_own_library() {
    for library in ["", "libpmix.so.2"] {
        for ranks in [1, 2, 4] {
            let done = finish(weft_run(ranks).arg(open_mpi()).env("WEFT_PMIX_LIBRARY", library));
            says(&done, ranks, |rank| format!("rank {rank} of {ranks} sum {}", ranks * (ranks + 1) / 2));
        }
    }
    let done = finish(weft_run(3).arg(open_mpi()).arg("abort"));
    assert_eq!(done.code, 7, "{}", done.err);
}

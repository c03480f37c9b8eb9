//! Weft among other launchers: in an allocation of Slurm, under `srun`, under Open MPI's `mpirun`, and PMI-2 under
//! ours.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use weft_tests::peers::Peer;
use weft_tests::slurm::Slurm;
use weft_tests::{build, tree};

fn member() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build::c_program(&tree().join("bin/mpicc"), "tests/c/join/member.c"))
}

struct Finished {
    code: i32,
    out: String,
    err: String,
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

/// What the ranks of a job of so many say.
fn greetings(ranks: usize) -> Vec<String> {
    let sum = ranks * (ranks + 1) / 2;
    (0..ranks).map(|rank| format!("rank {rank} of {ranks} sum {sum}")).collect()
}

fn weft() -> Command {
    let mut command = Command::new(tree().join("bin/weft"));
    command.stdin(Stdio::null());
    command
}

/// `weft run` in an allocation of Slurm's. The machine may be loaded.
fn in_allocation(size: &[&str], options: &[&str]) -> Command {
    let mut command = Slurm::up().command("salloc");
    command.arg("--quiet").args(size).arg(tree().join("bin/weft")).args(["run", "--bind", "none"]).args(options);
    command.env("WEFT_LAUNCH_TIMEOUT", "60");
    command
}

const LOCAL_RANKS: [&str; 3] = ["sh", "-c", "echo $PMI_RANK $MPI_LOCALNRANKS"];

#[test]
fn an_allocation_gives_hosts_slots_and_ranks() {
    let done = finish(in_allocation(&["-N2", "-n3"], &[]).args(LOCAL_RANKS));
    assert_eq!((done.code, sorted(&done.out)), (0, vec!["0 2", "1 2", "2 1"]), "{}", done.err);
    let done = finish(in_allocation(&["-N3", "--ntasks-per-node=2"], &["-n", "3", "--map", "host"]).args(LOCAL_RANKS));
    assert_eq!((done.code, sorted(&done.out)), (0, vec!["0 1", "1 1", "2 1"]), "{}", done.err);
}

#[test]
fn what_has_no_line_end_passes_a_step_at_once_and_messages_pass_between_nodes() {
    let done = finish(in_allocation(&["-N3", "-n5"], &[]).arg(member()));
    assert_eq!((done.code, sorted(&done.out)), (0, greetings(5).iter().map(String::as_str).collect()), "{}", done.err);
}

#[test]
fn more_ranks_than_an_allocation_has_slots_are_refused_and_it_can_be_left() {
    let done = finish(in_allocation(&["-N2", "-n3"], &["-n", "4"]).args(LOCAL_RANKS));
    assert_eq!(done.code, 2);
    let line = "weft run: allocation of Slurm: 4 ranks, but the hosts have 3 slots: n1:2, n2:1; --no-allocation \
                (WEFT_ALLOCATION=off) runs on this host alone\n";
    assert_eq!(done.err, line);
    let done = finish(in_allocation(&["-N2", "-n3"], &["--no-allocation", "-n", "4"]).args(LOCAL_RANKS));
    assert_eq!((done.code, sorted(&done.out)), (0, vec!["0 4", "1 4", "2 4", "3 4"]), "{}", done.err);
    let done = finish(in_allocation(&["-N2", "-n3"], &[]).args(LOCAL_RANKS).env("WEFT_ALLOCATION", "off"));
    assert_eq!((done.code, &*done.out), (0, "0 1\n"), "{}", done.err);
}

#[test]
fn mpiexec_takes_the_allocation_as_well() {
    let mut command = Slurm::up().command("salloc");
    command.args(["--quiet", "-N2", "-n3"]).arg(tree().join("bin/mpiexec")).args(["-n", "3"]).args(LOCAL_RANKS);
    let done = finish(command.env("WEFT_LAUNCH_TIMEOUT", "60"));
    assert_eq!((done.code, sorted(&done.out)), (0, vec!["0 2", "1 2", "2 1"]), "{}", done.err);
}

/// Each rank's own would otherwise take all of the allocation.
#[test]
fn a_launcher_in_a_rank_or_in_one_of_several_tasks_stays_where_it_is() {
    let weft = tree().join("bin/weft");
    let inner = format!("{} run -n 1 {}", weft.display(), "sh -c 'echo $MPI_LOCALNRANKS'");
    let done = finish(in_allocation(&["-N2", "-n2"], &[]).args(["sh", "-c", &inner]));
    assert_eq!((done.code, sorted(&done.out)), (0, vec!["1", "1"]), "{}", done.err);
    let mut tasks = Slurm::up().command("srun");
    let done = finish(tasks.args(["-N2", "-n2", "sh", "-c", &inner]));
    assert_eq!((done.code, sorted(&done.out)), (0, vec!["1", "1"]), "{}", done.err);
}

#[test]
fn our_programs_are_one_job_under_srun_with_either_pmi() {
    for mpi in ["pmi2", "pmix"] {
        for ranks in [1usize, 3] {
            let mut srun = Slurm::up().command("srun");
            let done = finish(srun.args([&format!("--mpi={mpi}"), "-n", &ranks.to_string()]).arg(member()));
            let expected = greetings(ranks);
            assert_eq!(
                (done.code, sorted(&done.out)),
                (0, expected.iter().map(String::as_str).collect()),
                "{mpi}: {}",
                done.err
            );
        }
    }
}

#[test]
fn srun_without_pmi_is_refused_by_name() {
    let done = finish(Slurm::up().command("srun").args(["--mpi=none", "-n", "2"]).arg(member()));
    assert_ne!(done.code, 0);
    assert!(done.out.is_empty() && done.err.contains("Slurm's srun without --mpi=pmi2 or pmix"), "{}", done.err);
}

#[test]
fn an_abort_ends_the_job_under_each_of_them() {
    for mpi in ["pmi2", "pmix"] {
        let mut srun = Slurm::up().command("srun");
        let done = finish(srun.args([&format!("--mpi={mpi}"), "-n", "3"]).arg(member()).arg("abort"));
        assert_ne!(done.code, 0, "{mpi}: {}", done.err);
    }
    let done = finish(prterun(3).arg(member()).arg("abort"));
    assert_eq!(done.code, 7, "{}", done.err);
}

fn prterun(ranks: usize) -> Command {
    let mut command = Command::new(Peer::OpenMpi.command("mpirun"));
    command.args(["--oversubscribe", "--allow-run-as-root", "-n", &ranks.to_string()]).stdin(Stdio::null());
    command
}

#[test]
fn our_programs_are_one_job_under_open_mpi_s_launcher() {
    for ranks in [1usize, 2, 4] {
        let done = finish(prterun(ranks).arg(member()));
        let expected = greetings(ranks);
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        assert_eq!((done.code, sorted(&done.out)), (0, expected), "{}", done.err);
    }
}

#[test]
fn what_a_rank_starts_is_a_job_of_its_own_under_pmix_too() {
    let done = finish(prterun(2).arg(member()).arg("child"));
    assert_eq!((done.code, sorted(&done.out)[0]), (0, "rank 0 of 1 sum 1"), "{}", done.err);
}

#[test]
fn a_pmix_library_that_is_not_there_is_named_with_a_remedy() {
    let done = finish(prterun(1).args(["-x", "WEFT_PMIX_LIBRARY=/no/libpmix.so"]).arg(member()));
    assert_ne!(done.code, 0);
    assert!(done.out.is_empty() && done.err.contains("cannot be loaded: /no/libpmix.so"), "{}", done.err);
    assert!(done.err.contains("libpmix2"), "{}", done.err);
}

fn two() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let program = build::profile_directory().join("pmi2-client");
        let source = weft_tests::root().join("tests/c/launchers/two.c");
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-Wall", "-Werror", "-o"]).arg(&program).arg(source).arg("-lpmi2");
        let output = cc.output().expect("a C compiler");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        program
    })
}

#[test]
fn programs_with_slurm_s_library_of_pmi_2_start_under_weft_run() {
    let done = finish(weft().args(["run", "--bind", "none", "-n", "3"]).arg(two()));
    let expected: Vec<String> =
        (0..3).map(|rank| format!("{rank} of 3: value of {}=x, (vector,(0,1,3)), rank 0", (rank + 1) % 3)).collect();
    assert_eq!((done.code, sorted(&done.out)), (0, expected.iter().map(String::as_str).collect()), "{}", done.err);
    let done = finish(weft().args(["run", "--bind", "none", "-n", "3"]).arg(two()).arg("abort"));
    assert_eq!(done.code, 1, "{}", done.err);
    assert!(done.err.contains("rank 2") && done.err.contains("as it was asked to"), "{}", done.err);
}

//! A client of the PMIx library, and Open MPI's programs, under `weft run` on two hosts, which are network namespaces.

use std::process::{Command, Output, Stdio};
use weft_tests::namespaces::Namespaces;
use weft_tests::peers::Peer;
use weft_tests::pmix::client;
use weft_tests::{build, tree};

struct Finished {
    code: i32,
    out: Vec<String>,
    err: String,
}

/// Four ranks, by turns on the two hosts.
fn weft_run() -> Command {
    weft_run_by("ip netns exec {host}")
}

fn weft_run_by(launch: &str) -> Command {
    let hosts = Namespaces::pair();
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["run", "--bind", "none", "--timeout", "100", "--launch", launch, "--map", "host"]);
    command.args(["--hosts", &format!("{}:2,{}:2", hosts.name(1), hosts.name(2)), "-n", "4"]);
    // A host may take long to answer: the machine may be loaded.
    command.env("WEFT_LAUNCH_TIMEOUT", "100").stdin(Stdio::null());
    command
}

fn finish(command: &mut Command) -> Finished {
    let Output { status, stdout, stderr } = command.output().expect("it can be started");
    let mut out: Vec<String> = String::from_utf8_lossy(&stdout).lines().map(str::to_owned).collect();
    out.sort_unstable();
    Finished { code: status.code().unwrap_or(-1), out, err: String::from_utf8_lossy(&stderr).into_owned() }
}

#[test]
fn ranks_of_both_hosts_are_one_job() {
    let hosts = Namespaces::pair();
    let done = finish(weft_run().arg(client()));
    let mut expected: Vec<String> = (0..4)
        .map(|rank| {
            let (host, local) = (rank % 2, rank / 2);
            let peers = ["0,2", "1,3"][host];
            format!(
                "rank {rank} of 4, universe 4, host {host} of 2, local {local} of 2: {peers}, first {host}, program 0 of 1"
            )
        })
        .collect();
    expected.extend((0..4).map(|rank| format!("rank {rank} knows {}", hosts.name(2))));
    expected.sort_unstable();
    assert_eq!((done.code, done.out, &*done.err), (0, expected, ""));
}

#[test]
fn what_ranks_put_comes_to_both_hosts() {
    for how in ["collect", "ask"] {
        let done = finish(weft_run().arg(client()).arg(how));
        let expected: Vec<String> = (0..4).map(|rank| format!("rank {rank} exchanged 20")).collect();
        assert_eq!((done.code, done.out, &*done.err), (0, expected, ""), "{how}");
    }
    let done = finish(weft_run().arg(client()).arg("parts"));
    let expected: Vec<String> = (0..4).map(|rank| format!("rank {rank} fenced with 2")).collect();
    assert_eq!((done.code, done.out, &*done.err), (0, expected, ""));
    let done = finish(weft_run().arg(client()).arg("publish"));
    let expected: Vec<String> = (0..4).map(|rank| format!("rank {rank} found 'here it is' of rank 0")).collect();
    assert_eq!((done.code, done.out, &*done.err), (0, expected, ""));
}

#[test]
fn an_abort_and_a_killed_rank_end_the_job_on_both() {
    let done = finish(weft_run().arg(client()).arg("abort"));
    assert_eq!(done.code, 7, "{}", done.err);
    assert!(done.err.contains("rank 3 ") && done.err.contains("enough of it"), "{}", done.err);
    let done = finish(weft_run().arg(client()).arg("killed"));
    assert_eq!(done.code, 137, "{}", done.err);
    assert!(done.err.contains("rank 3 ") && done.err.contains("signal 9"), "{}", done.err);
}

/// On the second host nobody is left, and with the first one gone the fence would wait for it for ever.
#[test]
fn ranks_go_on_without_a_host_whose_ranks_are_all_lost() {
    let done = finish(weft_run().arg("--keep-going").arg(client()).arg("survive"));
    let expected: Vec<String> = [0, 2].map(|rank| format!("rank {rank} goes on without: NOT-FOUND")).into();
    assert_eq!((done.code, done.out), (0, expected), "{}", done.err);
    assert_eq!(done.err.matches("the others go on").count(), 2, "{}", done.err);
}

/// Two values of each rank: what each host gives could be sent, and all of it together could not. Four: nor could that.
#[test]
fn a_fence_with_more_than_can_be_sent_fails_for_all_in_one_line() {
    for (count, status, lines) in [("1", "SUCCESS", 0), ("2", "OUT-OF-RESOURCE", 1), ("4", "OUT-OF-RESOURCE", 1)] {
        let done = finish(weft_run().arg(client()).args(["much", count]));
        let expected: Vec<String> = (0..4).map(|rank| format!("rank {rank}: {status}")).collect();
        assert_eq!((done.code, done.out), (0, expected), "{}", done.err);
        assert_eq!(done.err.lines().count(), lines, "{}", done.err);
        assert_eq!(done.err.matches("a PMIx fence has failed").count(), lines, "{}", done.err);
    }
}

#[test]
fn hosts_without_the_library_are_named_in_one_line() {
    // Launch commands such as ssh leave variables out that the job has.
    let mut command = weft_run_by("env --unset=WEFT_PMIX_LIBRARY ip netns exec {host}");
    let done = finish(command.arg(client()).env("WEFT_PMIX_LIBRARY", "/no/libpmix.so"));
    assert_eq!((done.code, done.out.len()), (1, 0), "{}", done.err);
    let hosts = Namespaces::pair();
    let begin = format!("weft run: hosts '{}', '{}': no PMIx server", hosts.name(1), hosts.name(2));
    assert!(done.err.starts_with(&begin) && done.err.lines().count() == 1, "{}", done.err);
    assert!(done.err.contains("/no/libpmix.so") && done.err.contains("libpmix2"), "{}", done.err);
}

/// A library that takes longer to begin than a host may take to answer.
#[test]
fn a_library_that_begins_slowly_is_no_host_that_does_not_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, library) = (folder.path().join("slow.c"), folder.path().join("libslow.so"));
    let slow = "#include <unistd.h>\n__attribute__((constructor)) static void begin(void) { sleep(8); }\n";
    std::fs::write(&source, slow).expect("written");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-Wl,--no-as-needed", "-o"]).arg(&library).arg(&source).arg("-l:libpmix.so.2");
    assert!(cc.status().expect("a C compiler").success());
    let done = finish(
        weft_run().arg(client()).arg("collect").env("WEFT_LAUNCH_TIMEOUT", "4").env("WEFT_PMIX_LIBRARY", &library),
    );
    let expected: Vec<String> = (0..4).map(|rank| format!("rank {rank} exchanged 20")).collect();
    assert_eq!((done.code, done.out, &*done.err), (0, expected, ""));
}

#[test]
fn programs_of_open_mpi_run_on_both_hosts() {
    let program = build::c_program(&Peer::OpenMpi.command("mpicc"), "tests/c/join/member.c");
    let done = finish(weft_run().arg(program));
    let expected: Vec<String> = (0..4).map(|rank| format!("rank {rank} of 4 sum 10")).collect();
    assert_eq!((done.code, done.out, &*done.err), (0, expected, ""));
}

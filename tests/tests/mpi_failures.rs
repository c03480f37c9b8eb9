//! Ranks that are lost while the others go on, in C.

use std::process::{Command, Stdio};
use tempfile::TempDir;
use weft_tests::ranks::{assert_ok, command, compile};
use weft_tests::tree;

fn keeping_on(program: &std::path::Path, ranks: u32, options: &[&str], argument: &str) -> Command {
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["run", "--keep-going", "--timeout", "20", "-n", &ranks.to_string()]);
    command.args(options).arg(program).arg(argument);
    command
}

/// Runs a case on shared memory and over the network's devices.
fn passes(what: &str, ranks: &[u32]) {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compile(folder.path(), "failures", &[]);
    for &ranks in ranks {
        for device in ["auto", "udp", "tcp"] {
            let output =
                keeping_on(&program, ranks, &["--device", device], what).output().expect("weft can be started");
            let err = String::from_utf8_lossy(&output.stderr);
            let what = format!("{what} on {ranks} ranks by {device}");
            assert_ok(&what, &output);
            assert!(err.contains("; the others go on"), "{what}: {err}");
        }
    }
}

#[test]
fn what_needs_a_lost_rank_ends_and_all_else_goes_on() {
    passes("point", &[3, 4]);
}

#[test]
fn tools_hear_of_a_lost_rank() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compile(folder.path(), "tool_lost", &[]);
    assert_ok("tool_lost", &keeping_on(&program, 3, &[], "").output().expect("weft can be started"));
}

#[test]
fn receives_from_anybody_stall_until_the_loss_is_acknowledged() {
    passes("anybody", &[3, 4]);
}

#[test]
fn a_revocation_reaches_everybody_though_the_revoker_dies() {
    passes("revoked", &[3, 5]);
}

#[test]
fn those_who_live_agree_and_make_a_communicator() {
    passes("shrunk", &[2, 3, 5]);
}

#[test]
fn who_asks_who_is_lost_in_a_loop_goes_on_sending() {
    passes("told", &[3, 5]);
}

#[test]
fn an_abort_ends_the_members_of_the_communicator_alone() {
    passes("aborted", &[5]);
}

#[test]
fn a_leader_that_has_lost_the_other_one_tells_its_group() {
    passes("bridge", &[4]);
}

#[test]
fn a_leader_that_has_lost_a_member_tells_the_other_one() {
    passes("bridge_end", &[4]);
}

#[test]
fn a_loss_is_seen_whatever_else_is_waited_for() {
    passes("every", &[3, 4]);
}

#[test]
fn agreements_and_shrinks_may_be_under_way_at_once() {
    passes("overlapped", &[3, 4]);
}

fn passes_on_windows(what: &str, ranks: u32) {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compile(folder.path(), "failures_windows", &[]);
    for device in ["auto", "udp", "tcp"] {
        let mut command = keeping_on(&program, ranks, &["--device", device], what);
        let output = command.arg(folder.path().join("file")).output().expect("weft can be started");
        assert_ok(&format!("{what} on {ranks} ranks by {device}"), &output);
    }
}

#[test]
fn who_waits_for_a_lock_of_one_that_is_lost_is_told() {
    passes_on_windows("lock", 4);
}

#[test]
fn accesses_to_a_lost_rank_end_and_those_to_others_go_on() {
    passes_on_windows("get", 3);
}

#[test]
fn the_loss_of_who_keeps_a_shared_pointer_is_told() {
    passes_on_windows("pointer", 3);
}

/// The two jobs have met through their first ranks; what the others know of each other is a card. Whether those who
/// accept go on without ranks of their own makes no difference but the class of the error.
#[test]
fn a_process_of_another_job_that_dies_before_it_was_talked_to_is_lost() {
    for option in ["--keep-going", "--map=slot"] {
        let folder = TempDir::new().expect("there is room for a folder");
        let program = compile(folder.path(), "failures_jobs", &[]);
        let start = |option, words: &[&str], ranks: &str| {
            let mut command = Command::new(tree().join("bin/weft"));
            command.args(["run", option, "--timeout", "20", "-n", ranks]).arg(&program);
            command.arg(words[0]).arg(folder.path().join("port")).args(&words[1..]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weft can be started")
        };
        let words = if option == "--keep-going" { &["serve"][..] } else { &["serve", "plain"] };
        let jobs = [start(option, words, "3"), start("--keep-going", &["connect"], "2")];
        for (what, job) in ["who accepts", "who connects"].into_iter().zip(jobs) {
            assert_ok(what, &job.wait_with_output().expect("it ends"));
        }
    }
}

#[test]
fn without_the_option_a_lost_rank_ends_the_job() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compile(folder.path(), "failures", &[]);
    let output = command(&program, 3, &["shrunk"]).output().expect("weft can be started");
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(128 + 9), "{err}");
    assert!(err.contains("the 2 ranks that still ran were ended"), "{err}");
}

/// Prints the seed that fails; `WEFT_TEST_SEED` runs that one, `WEFT_TEST_ROUNDS` more of them.
#[test]
fn ranks_killed_at_random_moments() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compile(folder.path(), "failures_random", &[]);
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    let seeds = match number("WEFT_TEST_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("WEFT_TEST_ROUNDS").unwrap_or(40),
    };
    for seed in seeds {
        let (ranks, device) = (3 + seed as u32 % 4, ["auto", "udp", "tcp", "auto"][seed as usize / 4 % 4]);
        let mut command = keeping_on(&program, ranks, &["--device", device], &seed.to_string());
        let output = command.output().expect("weft can be started");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(
            output.status.success() && out == "ok\n",
            "WEFT_TEST_SEED={seed} ({ranks} ranks by {device}): {}\n{out}{err}",
            output.status
        );
    }
}

/// Over the network a rank sees the loss of another by the end of a connection, which may be before the launcher hears
/// of that one's end. Here it always is: the shell that rank 0 runs under ends after rank 1.
#[test]
fn who_aborts_for_want_of_a_lost_rank_is_not_told_as_the_cause() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compile(folder.path(), "lost_first", &[]);
    let script = "cd $1
        if [ $PMI_RANK = 1 ]; then echo $$ > pid; exec $0; fi
        $0; code=$?; while [ -e /proc/$(cat pid) ]; do :; done; exit $code";
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["run", "--timeout", "60", "--device", "tcp", "-n", "2", "sh", "-c", script]);
    let output = command.arg(&program).arg(folder.path()).output().expect("weft can be started");
    let err = String::from_utf8_lossy(&output.stderr);
    let told: Vec<&str> = err.lines().filter(|line| line.starts_with("weft run: ")).collect();
    assert!(told.len() == 1 && told[0].contains("rank 0 ") && told[0].ends_with("exited with code 137"), "{err}");
    assert_eq!(output.status.code(), Some(137), "{err}");
}

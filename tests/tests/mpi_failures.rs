//! Ranks that are lost while the others go on, in C.

use std::process::Command;
use tempfile::TempDir;
use weft_tests::ranks::{command, compile};
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
            let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            let what = format!("{what} on {ranks} ranks by {device}");
            assert!(output.status.success() && out == "ok\n", "{what}: {}\n{out}{err}", output.status);
            assert!(err.contains("; the others go on"), "{what}: {err}");
        }
    }
}

#[test]
fn what_needs_a_lost_rank_ends_and_all_else_goes_on() {
    passes("point", &[3, 4]);
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
fn an_abort_ends_the_members_of_the_communicator_alone() {
    passes("aborted", &[5]);
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

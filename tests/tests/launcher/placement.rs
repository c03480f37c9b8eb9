//! Binding, and two launchers on one machine.

use super::support::{Running, finish};
use std::process::{Command, Stdio};
use weft_tests::build;

const SHOW: &str = "grep Cpus_allowed_list /proc/self/status | cut -f2";

fn bound(how: &str, ranks: usize, script: &str) -> Command {
    let mut command = Command::new(build::weft());
    command.args(["run", "--bind", how, "-n", &ranks.to_string(), "sh", "-c", script]);
    command.stdin(Stdio::null());
    command
}

fn processors() -> usize {
    std::thread::available_parallelism().unwrap().get()
}

/// Starts a job of one bound rank; waits while jobs of others hold the cores.
fn holder() -> (Running, String) {
    loop {
        let script = format!("{SHOW}; cat");
        let mut command = bound("core", 1, &script);
        let mut job = Running::start(command.stdin(Stdio::piped()).stderr(Stdio::null()));
        let core = job.line();
        if !core.is_empty() {
            return (job, core);
        }
        job.code();
    }
}

#[test]
fn two_launchers_do_not_bind_to_the_same_core() {
    assert!(processors() >= 2, "this test needs two processors");
    let (mut first, first_core) = holder();
    let (mut second, second_core) = holder();
    assert_ne!(first_core, second_core);

    // With a core held, as many ranks as there are cores do not fit: auto binds none, core says so.
    let auto = finish(&mut bound("auto", processors(), SHOW));
    let whole = finish(&mut Command::new("sh").args(["-c", SHOW])).out;
    assert!(auto.out.lines().all(|line| line == whole.trim()), "{} expected in {}", whole, auto.out);
    let refused = finish(&mut bound("core", processors(), SHOW));
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("free cores"), "{}", refused.err);

    for job in [&mut first, &mut second] {
        drop(job.weft.stdin.take());
        assert_eq!(job.code(), 0);
    }
}

#[test]
fn more_ranks_than_cores_are_not_bound() {
    let whole = finish(&mut Command::new("sh").args(["-c", SHOW])).out;
    let done = finish(&mut bound("auto", processors() + 1, SHOW));
    assert_eq!(done.out.lines().count(), processors() + 1);
    assert!(done.out.lines().all(|line| line == whole.trim()));
}

#[test]
fn affinity_mask_of_the_launcher_is_kept() {
    let script = format!("exec taskset -c 0 {} run --bind core -n 2 true", build::weft().display());
    let done = finish(&mut Command::new("sh").args(["-c", &script]));
    assert_eq!(done.code, 1, "{}", done.err);
    assert!(done.err.contains("needs 2 free cores") && done.err.contains("of the 1 that"), "{}", done.err);
}

//! Whoever is killed, nothing of the job is left.

use super::support::{Running, children, family, kill, weft_run};
use std::process::{Command, Stdio};

/// A job of two ranks with three stubborn orphans each, and the ranks' process ids.
fn job_with_orphans(directory: &tempfile::TempDir) -> (Running, Vec<i32>) {
    let mut command = weft_run("-n 2");
    command.arg(family()).env("TMPDIR", directory.path()).stderr(Stdio::null());
    let mut job = Running::start(&mut command);
    let pid = |line: String| line.strip_prefix("ready ").expect("ready").parse().expect("a number");
    let ranks = [job.line(), job.line()].map(pid).to_vec();
    (job, ranks)
}

fn assert_nothing_left(mut job: Running, directory: &tempfile::TempDir) {
    job.wait_until_nothing_lives();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "files in the temporary directory");
    let shared = std::fs::read_dir("/dev/shm").unwrap().map(|entry| entry.unwrap().file_name());
    let name = job.weft.id().to_string();
    assert!(!shared.into_iter().any(|file| file.to_string_lossy().contains(&name)), "files in /dev/shm");
}

#[test]
fn killed_launcher_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (mut job, _) = job_with_orphans(&directory);
    job.signal(libc::SIGKILL);
    assert_eq!(job.code(), 137);
    assert_nothing_left(job, &directory);
}

#[test]
fn killed_keeper_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (mut job, _) = job_with_orphans(&directory);
    let [keeper] = children(job.weft.id() as i32)[..] else { panic!("one child expected") };
    kill(keeper, libc::SIGKILL);
    assert_eq!(job.code(), 1);
    assert_nothing_left(job, &directory);
}

#[test]
fn killed_rank_ends_the_others_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (mut job, ranks) = job_with_orphans(&directory);
    kill(ranks[1], libc::SIGKILL);
    assert_eq!(job.code(), 137);
    assert_nothing_left(job, &directory);
}

#[test]
fn launcher_killed_with_its_process_group_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = weft_run("-n 2");
    command.arg(family()).env("TMPDIR", directory.path()).stderr(Stdio::null());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut job = Running::start(&mut command);
    assert!(job.line().starts_with("ready") && job.line().starts_with("ready"));
    // SAFETY: no memory is passed; the group was made for this job.
    assert_eq!(unsafe { libc::kill(-(job.weft.id() as i32), libc::SIGKILL) }, 0);
    assert_eq!(job.code(), 137);
    assert_nothing_left(job, &directory);
}

#[test]
fn orphans_of_ranks_that_succeed_are_ended_too_and_told() {
    let mut command = weft_run("-n 2");
    command.arg(family()).arg("leave").stderr(Stdio::piped());
    let mut job = Running::start(&mut command);
    let mut err = job.weft.stderr.take().unwrap();
    assert_eq!(job.code(), 0);
    job.wait_until_nothing_lives();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut err, &mut text).unwrap();
    assert_eq!(text, "weft run: 6 processes left behind by the ranks ended\n");
}

/// As tasks that a rank has spawned, and that end when it has all that they had to say.
#[test]
fn who_is_about_to_end_with_the_ranks_ends_by_itself() {
    // It reads until nobody has the other end any more, which the rank takes with it.
    let script = "pipe=$(mktemp -u); mkfifo $pipe; (read word < $pipe; echo late) & exec 3> $pipe; rm $pipe";
    let output = weft_run("-n 2").args(["sh", "-c", script]).output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!((output.status.code(), &*out, &*err), (Some(0), "late\nlate\n", ""));
}

#[test]
fn launcher_survives_an_ignored_child_signal() {
    // Inherited, it would take away the exit codes.
    let script =
        format!("trap '' CHLD; exec {} run --bind none -n 2 sh -c 'exit 6'", weft_tests::build::weft().display());
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{}", String::from_utf8_lossy(&output.stderr));
}

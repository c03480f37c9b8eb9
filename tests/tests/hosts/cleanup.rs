//! Whoever is killed, nothing of the job is left on any host.

use super::support::{on_hosts, script};
use crate::launcher::{Running, children, family, kill};
use std::process::Stdio;
use weft_tests::namespaces::Namespaces;

/// One job of three processes on each host, two of which are stubborn orphans in sessions of their own; with what runs
/// where.
struct Victims {
    job: Running,
    /// Rank, keeper and agent of each host.
    hosts: Vec<[i32; 3]>,
    /// The keeper of the launch commands.
    guard: i32,
}

fn victims() -> Victims {
    let text = "trap '' TERM HUP; (setsid sleep 1000 &); (sleep 1000 &); \
                echo $PMI_RANK $$ $PPID $(sed 's/.*) . //; s/ .*//' /proc/$PPID/stat); while :; do sleep 1000; done";
    let mut job = Running::start(script(on_hosts(1, ""), text).stderr(Stdio::piped()));
    let mut lines = [job.line(), job.line()];
    lines.sort();
    let numbers = |line: &String| {
        let numbers: Vec<i32> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
        [numbers[1], numbers[2], numbers[3]]
    };
    let hosts = lines.iter().map(numbers).collect();
    let [guard] = children(job.weft.id() as i32)[..] else { panic!("one child of the launcher") };
    Victims { job, hosts, guard }
}

/// The job's standard error, when nothing of it lives any more.
fn end_of(mut victims: Victims, code: i32) -> String {
    let mut text = String::new();
    let mut err = victims.job.weft.stderr.take().unwrap();
    std::io::Read::read_to_string(&mut err, &mut text).unwrap();
    assert_eq!(victims.job.code(), code, "{text}");
    victims.job.wait_until_nothing_lives();
    text
}

const ROUNDS: usize = 4;

#[test]
fn killed_launcher_leaves_nothing() {
    for _ in 0..ROUNDS {
        let victims = victims();
        victims.job.signal(libc::SIGKILL);
        end_of(victims, 137);
    }
}

#[test]
fn killed_rank_ends_the_others() {
    for round in 0..ROUNDS {
        let victims = victims();
        kill(victims.hosts[round % 2][0], libc::SIGKILL);
        let text = end_of(victims, 137);
        let host = Namespaces::pair().name(round % 2 + 1);
        assert!(text.contains(&format!("on {host} was killed by signal 9")), "{text}");
    }
}

#[test]
fn killed_agent_ends_the_job_and_is_named() {
    for round in 0..ROUNDS {
        let victims = victims();
        kill(victims.hosts[round % 2][2], libc::SIGKILL);
        let text = end_of(victims, 1);
        let host = Namespaces::pair().name(round % 2 + 1);
        assert!(text.contains(&format!("the agent of host '{host}' is gone")), "{text}");
    }
}

#[test]
fn killed_keeper_of_a_host_ends_the_job_and_is_named() {
    for round in 0..ROUNDS {
        let victims = victims();
        let keeper = victims.hosts[round % 2][1];
        kill(keeper, libc::SIGKILL);
        let text = end_of(victims, 1);
        let host = Namespaces::pair().name(round % 2 + 1);
        assert!(text.contains(&format!("the keeper process (pid {keeper}) on host '{host}' was killed")), "{text}");
    }
}

#[test]
fn killed_keeper_of_the_launch_commands_ends_the_job_and_is_named() {
    for _ in 0..ROUNDS {
        let victims = victims();
        let guard = victims.guard;
        kill(guard, libc::SIGKILL);
        let text = end_of(victims, 1);
        assert!(text.contains("was killed") || text.contains("is gone"), "{text}");
    }
}

#[test]
fn agents_of_all_hosts_killed_at_once_leave_nothing() {
    for _ in 0..ROUNDS {
        let victims = victims();
        victims.hosts.iter().for_each(|host| kill(host[2], libc::SIGKILL));
        end_of(victims, 1);
    }
}

#[test]
fn agent_that_does_not_answer_is_given_up_by_name() {
    let victims = victims();
    kill(victims.hosts[1][2], libc::SIGSTOP);
    kill(victims.hosts[0][0], libc::SIGKILL);
    let text = end_of(victims, 137);
    let line = format!("the agent of host '{}' does not answer", Namespaces::pair().name(2));
    assert!(text.contains(&line), "{text}");
}

#[test]
fn orphans_of_all_hosts_are_ended_and_counted() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = on_hosts(1, "");
    command.args(["sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & exit 0"]).current_dir(directory.path());
    let mut job = Running::start(command.stderr(Stdio::piped()));
    let mut text = String::new();
    std::io::Read::read_to_string(&mut job.weft.stderr.take().unwrap(), &mut text).unwrap();
    assert_eq!((job.code(), text.as_str()), (0, "weft run: 2 processes left behind by the ranks ended\n"));
    job.wait_until_nothing_lives();
}

#[test]
fn killed_launcher_leaves_no_file_of_its_ranks() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = on_hosts(1, "");
    command.arg(family()).env("TMPDIR", directory.path()).stderr(Stdio::null());
    let mut job = Running::start(&mut command);
    assert!(job.line().starts_with("ready") && job.line().starts_with("ready"));
    job.signal(libc::SIGKILL);
    assert_eq!(job.code(), 137);
    job.wait_until_nothing_lives();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "files in the temporary directory");
}

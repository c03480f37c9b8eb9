//! Members that are lost while a job is on them.

use super::{Lab, STUCK, refused, said, used};
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

/// The process at the far end of what `weft run` sees a member by ends, as if the member had gone.
#[test]
fn a_job_ends_when_what_holds_it_on_a_member_ends() {
    let lab = Lab::with_daemons("");
    let mut job = lab.job(6, "never").spawn().expect("started");
    lab.began(6, "never");
    let pids = said(Command::new("ip").args(["netns", "pids", &lab.hosts.name(3)]).output().expect("started"));
    let is_door = |pid: &&str| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| words.ends_with(b"\0door\0"));
    let doors: Vec<&str> = pids.split_whitespace().filter(is_door).collect();
    assert_eq!(doors.len(), 1, "{pids}");
    said(Command::new("kill").args(["-KILL", doors[0]]).output().expect("started"));
    let begun = Instant::now();
    while job.try_wait().expect("asked").is_none() {
        assert!(begun.elapsed() < STUCK / 2, "the launcher waits for a member that is gone");
        std::thread::sleep(Duration::from_millis(20));
    }
    let reason = refused(job.wait_with_output().expect("ended"));
    assert!(reason.contains(&lab.hosts.name(3)), "{reason}");
    lab.until("its slots are free", |view| used(view) == 0);
}

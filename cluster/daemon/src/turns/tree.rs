//! The processes of a job on this host, and how the kernel runs them.
//!
//! They are what comes from the job's launcher, or from its door: first those who look after it, down to the keeper,
//! then the ranks and what these have started. Who looks after ranks that compute must get a core before them.

use crate::launcher::{RunPace, set_pace, start_of};
use serde::{Deserialize, Serialize};
use std::fs::{read_dir, read_to_string};

/// A process: its number and when it began, for the number may be another one's later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessMark {
    pub pid: i32,
    pub began: u64,
}

/// As the keeper names itself (`cluster/agent/src/keeper.rs`).
const KEEPER: &str = "weft-keeper";
/// The priorities of ranks, and of those who look after them.
const RANK: i32 = 1;
const STAFF: i32 = 2;
/// More threads of a job are not looked at in one turn: nobody holds the host up by having many.
const MOST_THREADS: usize = 1 << 14;

/// Sets how a job's processes are run.
pub fn set(roots: &[ProcessMark], pace: RunPace) {
    let mut left = MOST_THREADS;
    for root in roots.iter().filter(|root| start_of(root.pid) == Some(root.began)) {
        let mut all = vec![(root.pid, false)];
        while let Some((pid, is_rank)) = all.pop() {
            let is_keeper = !is_rank && name(pid).is_some_and(|name| name == KEEPER);
            for thread in numbers(&format!("/proc/{pid}/task")) {
                left = left.saturating_sub(1);
                if left == 0 {
                    return;
                }
                // One that has just ended is none of ours any more.
                let _ = set_pace(thread, pace, if is_rank { RANK } else { STAFF });
                all.extend(children(pid, thread).into_iter().map(|child| (child, is_rank || is_keeper)));
            }
        }
    }
}

fn name(pid: i32) -> Option<String> {
    read_to_string(format!("/proc/{pid}/comm")).ok().map(|name| name.trim_end().to_owned())
}

fn numbers(folder: &str) -> Vec<i32> {
    let entries = read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// What a thread has started and lives.
fn children(pid: i32, thread: i32) -> Vec<i32> {
    let list = read_to_string(format!("/proc/{pid}/task/{thread}/children")).unwrap_or_default();
    list.split_ascii_whitespace().filter_map(|child| child.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launcher::policy_of;
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    #[test]
    fn all_that_comes_from_a_process_has_its_turn_and_no_other_has() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 60 & echo $!; wait"]).stdout(Stdio::piped()).process_group(0);
        let mut shell = shell.spawn().expect("started");
        let mut line = String::new();
        BufReader::new(shell.stdout.take().expect("a pipe")).read_line(&mut line).expect("read");
        let (pid, sleeper) = (shell.id() as i32, line.trim().parse::<i32>().expect("a number"));
        let root = ProcessMark { pid, began: start_of(pid).expect("it lives") };
        let seen = || [pid, sleeper].map(|pid| policy_of(pid).expect("it lives"));
        let is_permitted = set_pace(pid, RunPace::First, STAFF).is_ok();
        set(&[root], RunPace::First);
        let wanted = if is_permitted { [(libc::SCHED_RR, STAFF); 2] } else { [(libc::SCHED_OTHER, 0); 2] };
        assert_eq!(seen(), wanted);
        set(&[ProcessMark { began: root.began + 1, ..root }], RunPace::AsOthers);
        assert_eq!(seen(), wanted, "it is another process that had this number");
        set(&[root], RunPace::AsOthers);
        assert_eq!(seen(), [(libc::SCHED_OTHER, 0); 2]);
        let _ = rustix::process::kill_process_group(
            rustix::process::Pid::from_raw(pid).expect("a number"),
            rustix::process::Signal::KILL,
        );
        shell.wait().expect("ended");
    }
}

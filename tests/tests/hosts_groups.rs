//! Totally ordered groups on two hosts, which are network namespaces, over each device: what is long goes to each host
//! once, and a member there passes it on, which may be killed before it does.
//!
//! `WEFT_TEST_ROUNDS=1000` runs as many rounds of kills for each device; `WEFT_TEST_SEED=N` begins with the round of
//! that seed.

use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;
use weft_tests::histories::{KillRounds, assert_one_order, histories, history};
use weft_tests::namespaces::Namespaces;

/// A job has the hosts to itself.
static ALONE: Mutex<()> = Mutex::new(());

/// What has a job run on two hosts with so many members each.
fn on_hosts<'a>(device: &'a str, hosts: &'a str) -> Vec<&'a str> {
    vec!["--bind", "none", "--launch", "ip netns exec {host}", "--device", device, "--hosts", hosts]
}

fn hosts(each: usize) -> String {
    let hosts = Namespaces::pair();
    format!("{}:{each},{}:{each}", hosts.name(1), hosts.name(2))
}

#[test]
fn all_have_the_same_history_over_each_device() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let hosts = hosts(2);
    for device in ["auto", "tcp", "shm,xdp"] {
        for bytes in [8, 20000] {
            let folder = TempDir::new().expect("there is room for a folder");
            let mut command = history(&on_hosts(device, &hosts), 300, bytes, folder.path());
            let output = command.env("WEFT_LAUNCH_TIMEOUT", "60").output().expect("weft can be started");
            let what = format!("{device}, {bytes} bytes: {}", String::from_utf8_lossy(&output.stderr));
            assert!(output.status.success(), "{what}");
            let histories = histories(folder.path());
            assert!(histories.len() == 4 && histories.iter().all(|all| all.len() == 4 * 300), "{what}");
            assert_one_order(&histories, &what);
        }
    }
}

#[test]
fn survivors_of_random_kills_have_the_same_history() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let hosts = hosts(3);
    for device in ["auto", "shm,xdp"] {
        let arguments = &on_hosts(device, &hosts);
        KillRounds { arguments, ranks: 6, messages: 1500, lengths: &[6000, 20_000] }.run(2);
    }
}

//! Totally ordered groups in jobs: all members have the same history, over each device, and whoever is killed.
//!
//! `WEFT_TEST_ROUNDS=1000` runs as many rounds of kills; `WEFT_TEST_SEED=N` begins with the round of that seed.

use std::fs;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;
use weft_tests::histories::{KillRounds, assert_one_order, histories, history, start};
use weft_tests::signal;

#[test]
fn all_have_the_same_history_over_each_device() {
    for (device, ranks, bytes) in
        [("auto", 4, 8), ("auto", 3, 100_000), ("tcp", 3, 8), ("tcp", 2, 20_000), ("udp,tcp", 3, 5000), ("auto", 1, 8)]
    {
        let folder = TempDir::new().expect("there is room for a folder");
        let arguments = ["--device", device, "-n", &ranks.to_string()];
        let output = history(&arguments, 200, bytes, folder.path()).output().expect("weft can be started");
        assert!(output.status.success(), "{device}: {}", String::from_utf8_lossy(&output.stderr));
        let histories = histories(folder.path());
        let whole: Vec<_> = histories.iter().map(Vec::len).collect();
        assert_eq!(whole, vec![200 * ranks; ranks], "{device}, {bytes} bytes");
        assert_one_order(&histories, device);
    }
}

#[test]
fn survivors_of_random_kills_have_the_same_history() {
    KillRounds { arguments: &["-n", "6"], ranks: 6, messages: 8000, lengths: &[8, 8, 300, 6000] }.run(6);
}

#[test]
fn who_is_stopped_for_seconds_is_left_behind_and_told() {
    let folder = TempDir::new().expect("there is room for a folder");
    let (job, members) = start(&["-n", "3"], 3, 50_000, 8, folder.path());
    signal::send(members[1], 19);
    // The others come to their end without it.
    while fs::read_dir(folder.path()).expect("a folder").count() < 2 {
        thread::sleep(Duration::from_millis(20));
    }
    signal::send(members[1], 18);
    let output = job.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("taken for dead"), "{text}");
    let histories = histories(folder.path());
    assert_eq!(histories.len(), 2);
    assert_one_order(&histories, "stopped");
}

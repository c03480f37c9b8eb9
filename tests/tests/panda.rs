//! Panda: C programs of ours over `libpanda`, on one host by shared memory and by the network.

use std::process::Output;
use tempfile::TempDir;
use weft_tests::ranks;

/// Runs one of the programs of `tests/c/panda` on so many ranks.
fn run(name: &str, ranks: u32, arguments: &[&str], settings: &[(&str, &str)]) -> Output {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = ranks::compile_from("tests/c/panda", folder.path(), name, &["-std=gnu99", "-lpanda"]);
    let mut command = ranks::command(&program, ranks, arguments);
    command.envs(settings.iter().copied()).output().expect("weft can be started")
}

fn passes(name: &str, ranks: &[u32], settings: &[(&str, &str)]) {
    for &ranks in ranks {
        let output = run(name, ranks, &[], settings);
        ranks::assert_ok(&format!("{name} on {ranks} ranks with {settings:?}"), &output);
    }
}

/// Who waits sleeps at once.
const SLEEPY: [(&str, &str); 2] = [("WEFT_SPIN_US", "0"), ("WEFT_YIELD_US", "0")];
const TCP: [(&str, &str); 1] = [("WEFT_DEVICE", "tcp")];

#[test]
fn calls_go_in_circles_and_are_answered_later_by_other_threads() {
    passes("rpc", &[1, 2, 3, 4], &[]);
    passes("rpc", &[2], &SLEEPY);
    passes("rpc", &[3], &TCP);
}

#[test]
fn messages_come_in_order_also_before_their_map_and_its_handler() {
    passes("mp", &[1, 2, 3, 4], &[]);
    passes("mp", &[2], &SLEEPY);
    passes("mp", &[3], &TCP);
}

#[test]
fn fragments_and_small_data_go_to_sets_of_platforms() {
    passes("points", &[1, 2, 4], &[]);
    passes("points", &[3], &TCP);
}

#[test]
fn members_of_a_group_get_all_messages_in_one_order() {
    passes("group", &[1, 2, 3, 4], &[]);
    passes("group", &[2], &SLEEPY);
    passes("group", &[3], &TCP);
}

#[test]
fn parameters_of_the_original_are_ignored_and_others_with_a_line() {
    let output = run("group", 1, &[], &[]);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "weft: Panda has no parameter 'bb_large', which is ignored\n");
}

#[test]
fn threads_take_turns_and_time_is_computed() {
    passes("threads", &[1, 2, 3], &[]);
    passes("threads", &[2], &TCP);
}

#[test]
fn upcalls_run_while_the_program_computes_or_holds_a_lock() {
    passes("alone", &[2], &[]);
    passes("alone", &[2], &SLEEPY);
    passes("alone", &[2], &TCP);
}

#[test]
fn what_is_wrong_ends_the_job_with_a_line() {
    let cases = [
        ("pop", "pan_msg_pop: a piece of 4 bytes, of a message with 0 at its head"),
        ("alignment", "pan_msg_push: an alignment of 16, of at most 8"),
        ("platform", "pan_rpc_trans: no platform 7, of 2"),
        ("mode", "pan_mp_send_message: mode 3, of MODE_SYNC 0, MODE_SYNC2 1 and, for sends, MODE_ASYNC 2"),
        ("map", "pan_mp_receive_message: 1023 is no map without a handler"),
        ("ended", "pan_rpc_trans: platform 1 has ended and answers no more"),
        (
            "early",
            "a message for entry 1000 of platform 0 has no room: messages that wait until somebody is registered for them \
             have 256 MiB at most",
        ),
        ("panic", "pan_panic on platform 0: 7 is odd"),
    ];
    for (what, expected) in cases {
        let output = run("alone", 2, &[what], &[]);
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(err.lines().any(|line| line == format!("weft: {expected}")), "{what}: {err}");
        assert_eq!(output.status.code(), Some(1), "{what}: {err}");
    }
}

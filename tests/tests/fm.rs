//! Fast Messages: C programs of ours over `libfm`, on one host by shared memory and by the network.

use std::process::Output;
use tempfile::TempDir;
use weft_tests::ranks;

/// Runs one of the programs of `tests/c/fm` on so many ranks.
fn run(name: &str, ranks: u32, arguments: &[&str], settings: &[(&str, &str)]) -> Output {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = ranks::compile_from("tests/c/fm", folder.path(), name, &["-std=gnu99", "-lfm"]);
    let mut command = ranks::command(&program, ranks, arguments);
    command.envs(settings.iter().copied()).output().expect("weft can be started")
}

fn passes(name: &str, ranks: u32, settings: &[(&str, &str)]) {
    let output = run(name, ranks, &[], settings);
    ranks::assert_ok(&format!("{name} on {ranks} ranks with {settings:?}"), &output);
}

/// Who waits sleeps at once.
const SLEEPY: [(&str, &str); 2] = [("WEFT_SPIN_US", "0"), ("WEFT_YIELD_US", "0")];

#[test]
fn pieces_arrive_in_order_and_floods_go_both_ways() {
    for ranks in [1, 2, 3] {
        passes("streams", ranks, &[]);
    }
    passes("streams", 2, &SLEEPY);
    for device in ["udp,tcp", "tcp"] {
        passes("streams", 2, &[("WEFT_DEVICE", device)]);
    }
}

#[test]
fn what_is_wrong_costs_a_line() {
    let output = run("streams", 1, &["wrong"], &[]);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    let calls: Vec<&str> = err.lines().filter_map(|line| line.split(": ").nth(1)).collect();
    let expected = [
        "FM_begin_message",
        "FM_begin_message",
        "FM_register_handler",
        "FM_send_piece",
        "FM_send_piece",
        "FM_send_piece",
        "FM_receive",
        "FM_end_message",
        "FM_extract",
    ];
    assert_eq!(calls, expected, "{err}");
}

#[test]
fn a_message_of_the_first_version_calls_a_function() {
    for ranks in [1, 3] {
        let output = run("first", ranks, &[], &[]);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && out == "ok\n", "{out}{err}");
        assert_eq!(err.lines().count(), 3 * ranks as usize, "{err}");
    }
}

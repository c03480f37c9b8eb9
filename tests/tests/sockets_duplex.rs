//! Both ends of a connection send and receive all the time, from a thread each: it is attached all the same, and no
//! byte is lost, also where the bytes go through pipes.

use std::process::Command;
use tempfile::TempDir;
use weft_tests::root;
use weft_tests::sockets::{Moved, run, sock};

#[test]
fn traffic_in_both_directions_attaches_without_a_pause() {
    let folder = TempDir::new().expect("a folder");
    let program = folder.path().join("duplex");
    let mut command = Command::new("cc");
    command.args(["-O2", "-pthread", "-o"]).arg(&program).arg(root().join("tests/c/sockets/duplex.c"));
    run(&mut command);
    for arguments in [["65536", "256", ""], ["200", "64", ""], ["30000", "128", "splice"]] {
        let mut command = sock(&program);
        let said = run(command.args(arguments.iter().filter(|word| !word.is_empty()))).err;
        let moved = Moved::of(&said);
        assert!(moved.accelerated == 2 && moved.by_ring > moved.by_kernel, "{arguments:?}: {moved:?}\n{said}");
    }
}

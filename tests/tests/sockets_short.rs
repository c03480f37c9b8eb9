//! Connections that are over soon, as between a web server and its workers: they stay with the kernel, which is faster
//! than moving them, and one of the same service that goes on comes to its ring (`tests/c/sockets/short.c`).

use std::path::Path;
use weft_tests::build;
use weft_tests::sockets::{Moved, run, sock};

fn moved(words: &[&str]) -> (Moved, String) {
    let said = run(sock(build::c_program(Path::new("cc"), "tests/c/sockets/short.c")).args(words)).err;
    (Moved::of(&said), said)
}

#[test]
fn connections_that_end_at_once_are_not_moved_again_and_again() {
    for bytes in ["0", "2000", "40000", "131072"] {
        let (moved, said) = moved(&["300", bytes]);
        assert!(moved.by_kernel >= 2 * 300 * 520, "{bytes}: {moved:?}\n{said}");
        assert!(moved.accelerated < 2 * 300 / 2, "{bytes}: {moved:?}\n{said}");
    }
}

#[test]
fn one_that_goes_on_comes_to_its_ring_behind_many_that_did_not() {
    let (moved, said) = moved(&["60", "0", "4000"]);
    assert!(moved.accelerated == 2 && moved.by_ring > 2 * 4000, "{moved:?}\n{said}");
}

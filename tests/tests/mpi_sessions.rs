//! Sessions, in C on several ranks.

use tempfile::TempDir;
use weft_tests::ranks::{assert_ok, command, compile};

fn passes(what: &str, ranks: &[u32]) {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compile(folder.path(), "sessions", &[]);
    for &ranks in ranks {
        let output = command(&program, ranks, &[what]).output().expect("weft can be started");
        assert_ok(&format!("sessions {what} on {ranks} ranks"), &output);
    }
}

#[test]
fn a_session_is_enough_and_another_may_follow_it() {
    passes("whole", &[1, 2, 3, 4]);
}

#[test]
fn several_sessions_at_once() {
    passes("several", &[1, 3]);
}

#[test]
fn the_world_comes_and_goes_beside_a_session() {
    passes("beside", &[1, 2, 4]);
}

#[test]
fn sessions_after_the_world() {
    passes("after", &[1, 3]);
}

#[test]
fn intercommunicators_from_groups() {
    passes("between", &[1, 2, 5]);
}

#[test]
fn threads_make_communicators_under_tags_of_their_own() {
    passes("threads", &[1, 2, 3]);
}

#[test]
fn buffers_of_sessions() {
    passes("buffered", &[1, 2]);
}

#[test]
fn errors_go_to_the_handler_of_the_session_or_the_one_that_is_given() {
    passes("errors", &[1, 2]);
}

#[test]
fn the_end_of_a_session_cleans_up_what_is_left_of_it() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compile(folder.path(), "sessions", &[]);
    for ranks in [1, 2, 3, 4] {
        let file = folder.path().join("file").display().to_string();
        let output = command(&program, ranks, &["left", &file]).output().expect("weft can be started");
        assert_ok(&format!("on {ranks} ranks"), &output);
    }
}

#[test]
fn the_world_s_communicator_may_be_used_without_the_world() {
    passes("bare", &[1, 2, 3]);
}

#[test]
fn a_rank_that_ends_with_a_session_open_after_the_world_ends_nobody_else() {
    weft_tests::ranks::passes("sessions_open", &[2, 3, 4]);
}

#[test]
fn a_rank_that_ends_with_a_session_open_is_named() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compile(folder.path(), "sessions_left", &[]);
    let output = command(&program, 2, &[]).output().expect("weft can be started");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && err.contains("without MPI_Finalize"), "{err}");
}

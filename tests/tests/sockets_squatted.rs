//! Names of the rendezvous that another user holds (`tests/c/sockets/squatter.c`): that is said, with the user, and
//! counts as a failure of who asks for a rendezvous. Needs root, to be two users.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use weft_tests::{build, tree};

const OWN: &str = "weft-rendezvous-v5-0";
const COMMON: &str = "weft-rendezvous-v5";

/// What `weft` answers and says in a network of its own where user 65534 holds `names`.
fn weft(how: &str, names: &[&str], arguments: &[&str]) -> (Option<i32>, String) {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let squatter = PROGRAM.get_or_init(|| build::c_program(Path::new("cc"), "tests/c/sockets/squatter.c"));
    let mut command = Command::new("unshare");
    command.arg("--net").arg(squatter).args(["65534", how]).args(names).arg("--");
    command.arg(tree().join("bin/weft")).args(arguments);
    let Output { status, stderr, .. } = command.output().expect("unshare, as root");
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

#[test]
fn a_name_that_another_user_holds_is_said_and_is_a_failure() {
    for arguments in [&["rendezvous", "--ensure"][..], &["rendezvous", "--idle", "0"]] {
        let (code, said) = weft("listen", &[OWN], arguments);
        let expected = format!("user 65534 holds the name '@{OWN}' of Unix sockets");
        assert!(code == Some(1) && said.contains(&expected) && said.lines().count() == 1, "{arguments:?}: {said}");
    }
    let (code, said) = weft("bind", &[OWN], &["rendezvous", "--ensure"]);
    let expected = format!("somebody who does not listen holds the name '@{OWN}' of Unix sockets");
    assert!(code == Some(1) && said.contains(&expected) && said.lines().count() == 1, "{said}");
}

#[test]
fn the_name_by_which_root_serves_all_users_is_said_too() {
    let (code, said) = weft("listen", &[COMMON], &["rendezvous", "--ensure", "--idle", "0"]);
    let expected = format!("user 65534 holds the name '@{COMMON}' of Unix sockets");
    assert!(code == Some(1) && said.contains(&expected) && said.lines().count() == 1, "{said}");
}

#[test]
fn a_program_runs_all_the_same_and_the_name_is_said_once() {
    let (code, said) = weft("listen", &[OWN, COMMON], &["sock", "--", "sh", "-c", "exit 5"]);
    let expected = format!("user 65534 holds the name '@{OWN}' of Unix sockets");
    assert!(code == Some(5) && said.contains(&expected) && said.lines().count() == 1, "{said}");
}

#[test]
fn names_that_nobody_holds_are_taken() {
    let (code, said) = weft("listen", &["weft-rendezvous-v5-1"], &["rendezvous", "--ensure", "--idle", "0"]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
}

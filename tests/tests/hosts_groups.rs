//! Totally ordered groups on two hosts, which are network namespaces, over each device.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;
use weft_tests::namespaces::Namespaces;
use weft_tests::{build, tree};

const LAUNCH: &str = "ip netns exec {host}";

/// A job has the hosts to itself.
static ALONE: Mutex<()> = Mutex::new(());

/// The program of `groups` on two hosts with two members each.
fn history(device: &str, messages: &str, bytes: &str, folder: &Path) -> Command {
    let hosts = Namespaces::pair();
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["run", "--bind", "none", "--timeout", "60", "--launch", LAUNCH, "--device", device]);
    command.args(["--hosts", &format!("{}:2,{}:2", hosts.name(1), hosts.name(2))]);
    command.arg(build::example("weft-group", "history")).args([messages, bytes]).arg(folder);
    command.env("WEFT_LAUNCH_TIMEOUT", "60").stdin(Stdio::null());
    command
}

#[test]
fn all_have_the_same_history_over_each_device() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for device in ["auto", "tcp", "shm,xdp"] {
        for bytes in ["8", "20000"] {
            let folder = TempDir::new().expect("there is room for a folder");
            let output = history(device, "300", bytes, folder.path()).output().expect("weft can be started");
            let what = format!("{device}, {bytes} bytes: {}", String::from_utf8_lossy(&output.stderr));
            assert!(output.status.success(), "{what}");
            let file = |rank: usize| fs::read_to_string(folder.path().join(rank.to_string())).expect("a history");
            let first = file(0);
            assert_eq!(first.lines().count(), 4 * 300 + 1, "{what}");
            assert!((1..4).all(|rank| file(rank) == first), "{what}");
        }
    }
}

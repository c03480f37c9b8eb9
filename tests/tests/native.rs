//! Programs for the native interface (`interfaces/native`): C over `weft.h`, and Python.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;
use weft_tests::{ranks, root, tree};

const SOURCES: &str = "tests/c/native";

/// Compiles one of the programs, as its user would: with what pkg-config says.
fn compiled(folder: &Path, name: &str) -> PathBuf {
    let found = Command::new("pkg-config")
        .args(["--cflags", "--libs", "weft-native"])
        .env("PKG_CONFIG_PATH", tree().join("lib/pkgconfig"))
        .output()
        .expect("pkg-config can be started");
    let flags = String::from_utf8(found.stdout).expect("text");
    assert!(flags.contains("-lweft"), "{flags}");
    let program = folder.join(name);
    let output = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-pthread", "-o"])
        .arg(&program)
        .arg(root().join(SOURCES).join(name).with_extension("c"))
        .args(flags.split_whitespace())
        .output()
        .expect("a C compiler");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Runs one of the programs on so many ranks.
fn run(name: &str, ranks: u32, arguments: &[&str], settings: &[(&str, &str)]) -> Output {
    let folder = TempDir::new().expect("there is room for a folder");
    let mut command = ranks::command(&compiled(folder.path(), name), ranks, arguments);
    command.envs(settings.iter().copied()).output().expect("weft can be started")
}

fn passes(name: &str, ranks: u32, arguments: &[&str], settings: &[(&str, &str)]) {
    let output = run(name, ranks, arguments, settings);
    ranks::assert_ok(&format!("{name} {arguments:?} on {ranks} ranks with {settings:?}"), &output);
}

/// Who waits sleeps at once.
const SLEEPY: [(&str, &str); 2] = [("WEFT_SPIN_US", "0"), ("WEFT_YIELD_US", "0")];

#[test]
fn messages_of_all_lengths_go_there_and_back() {
    passes("thin", 2, &[], &[]);
    passes("thin", 2, &[], &SLEEPY);
    passes("thin", 2, &[], &[("WEFT_DEVICE", "udp,tcp")]);
}

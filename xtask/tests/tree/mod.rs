//! The files of the repository, as the rules of the house read them.
#![allow(dead_code, reason = "each rule uses a part")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root").to_owned()
}

/// Path and text of every text file that git keeps or would keep, of those that `pattern` names (as git has patterns).
pub fn texts(pattern: &str) -> Vec<(String, String)> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z", pattern])
        .current_dir(root())
        .output()
        .expect("git can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout).expect("file names are text");
    let read = |name: &str| Some((name.to_owned(), fs::read_to_string(root().join(name)).ok()?));
    let texts: Vec<(String, String)> = names.split_terminator('\0').filter_map(read).collect();
    assert!(texts.len() > 15, "git told of {} files {pattern} only", texts.len());
    texts
}

/// Path and text of every Rust file of the crates that is no test and no example.
pub fn sources() -> Vec<(String, String)> {
    let is_source = |name: &str| {
        name.split('/').all(|part| !["tests", "examples", "benches"].contains(&part)) && !name.ends_with("/tests.rs")
    };
    let sources: Vec<(String, String)> = texts("*.rs").into_iter().filter(|(name, _)| is_source(name)).collect();
    assert!(sources.len() > 500, "git told of {} sources only", sources.len());
    sources
}

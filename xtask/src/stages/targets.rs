//! The test programs of the package `weft-tests`, by the stage that runs them: its manifest says what each one needs.
//!
//! All stages ask for the whole workspace and for the same features, and choose test programs by name: so whatever they
//! share is compiled once, and not once for each choice of packages, with the features that these happen to need.

use std::path::Path;

use anyhow::{Context, Result};

use crate::command::{ToolProgram, cargo, root};

/// What a test program needs beside a C compiler and the installed tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TestNeed {
    Nothing,
    /// Network namespaces.
    Hosts,
    /// To be alone: it times what it sees.
    Sockets,
    /// Programs of others.
    Programs,
}

/// Features of the packages of tests, all of them.
pub const FEATURES: [&str; 2] = ["--features", "weft-tests/hosts,weft-tests/sockets,weft-tests/programs"];

/// `cargo test` for the test programs with a need; `last` goes to them.
pub fn test(need: TestNeed, last: &[&str]) -> Result<ToolProgram> {
    let names = with_need(need, &root().join("tests"))?;
    let chosen = names.iter().flat_map(|name| ["--test", name]);
    let before = ["test", "--workspace", "--no-fail-fast"].into_iter().chain(FEATURES);
    Ok(cargo(&before.chain(chosen).chain(last.iter().copied()).collect::<Vec<_>>()))
}

fn with_need(need: TestNeed, package: &Path) -> Result<Vec<String>> {
    let manifest = package.join("Cargo.toml");
    let manifest = std::fs::read_to_string(&manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
    let files = std::fs::read_dir(package.join("tests")).context("the package of tests has no tests")?;
    let names = files.filter_map(|file| file.ok()?.file_name().to_str()?.strip_suffix(".rs").map(str::to_owned));
    let mut names: Vec<String> = names.filter(|name| need_of(name, &manifest) == need).collect();
    names.sort();
    Ok(names)
}

/// What a test program needs, by the features that its entry in the manifest requires.
fn need_of(name: &str, manifest: &str) -> TestNeed {
    let head = format!("name = \"{name}\"\nrequired-features = [");
    let required = manifest.split("[[test]]\n").find_map(|entry| entry.strip_prefix(&head)?.split(']').next());
    let known = [("hosts", TestNeed::Hosts), ("programs", TestNeed::Programs), ("sockets", TestNeed::Sockets)];
    let needed = known.into_iter().find(|(feature, _)| required.is_some_and(|required| required.contains(feature)));
    needed.map_or(TestNeed::Nothing, |(_, need)| need)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_test_program_needs_is_found() {
        let package = root().join("tests");
        let of = |need| with_need(need, &package).unwrap();
        let has = |need, name: &str| of(need).iter().any(|one| one == name);
        assert!(has(TestNeed::Nothing, "launcher") && has(TestNeed::Hosts, "hosts_lanes"));
        assert!(has(TestNeed::Sockets, "sockets_udp") && has(TestNeed::Programs, "sockets_programs"));
        let manifest = std::fs::read_to_string(package.join("Cargo.toml")).unwrap();
        let needy = [TestNeed::Hosts, TestNeed::Sockets, TestNeed::Programs].map(|need| of(need).len());
        assert_eq!(needy.iter().sum::<usize>(), manifest.matches("required-features").count());
    }
}

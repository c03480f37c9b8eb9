//! The test programs of the package `weft-tests`, by the stage that runs them: its manifest says what each one needs.
//!
//! All stages ask for the whole workspace and for the same features, and choose test programs by name: so whatever they
//! share is compiled once, and not once for each choice of packages, with the features that these happen to need.

use std::path::Path;

use anyhow::{Context, Result};

use crate::command::{Program, cargo, root};

/// What a test program needs beside a C compiler and the installed tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Plain,
    /// Network namespaces.
    Hosts,
    /// To be alone: it times what it sees.
    Sockets,
    /// Programs of others.
    Programs,
}

/// Features of the packages of tests, all of them.
pub const FEATURES: [&str; 2] = ["--features", "weft-tests/hosts,weft-tests/sockets,weft-tests/programs"];

/// `cargo test` for the test programs of a kind; `last` goes to them.
pub fn test(kind: Kind, last: &[&str]) -> Result<Program> {
    let names = of_kind(kind, &root().join("tests"))?;
    let chosen = names.iter().flat_map(|name| ["--test", name]);
    let before = ["test", "--workspace", "--no-fail-fast"].into_iter().chain(FEATURES);
    Ok(cargo(&before.chain(chosen).chain(last.iter().copied()).collect::<Vec<_>>()))
}

fn of_kind(kind: Kind, package: &Path) -> Result<Vec<String>> {
    let manifest = package.join("Cargo.toml");
    let manifest = std::fs::read_to_string(&manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
    let files = std::fs::read_dir(package.join("tests")).context("the package of tests has no tests")?;
    let names = files.filter_map(|file| file.ok()?.file_name().to_str()?.strip_suffix(".rs").map(str::to_owned));
    let mut names: Vec<String> = names.filter(|name| kind_of(name, &manifest) == kind).collect();
    names.sort();
    Ok(names)
}

/// The kind of a test program, by the features that its entry in the manifest requires.
fn kind_of(name: &str, manifest: &str) -> Kind {
    let head = format!("name = \"{name}\"\nrequired-features = [");
    let required = manifest.split("[[test]]\n").find_map(|entry| entry.strip_prefix(&head)?.split(']').next());
    let needs = |feature| required.is_some_and(|features| features.contains(feature));
    match () {
        () if needs("\"hosts\"") => Kind::Hosts,
        () if needs("\"programs\"") => Kind::Programs,
        () if needs("\"sockets\"") => Kind::Sockets,
        () => Kind::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_program_has_one_kind() {
        let package = root().join("tests");
        let of = |kind| of_kind(kind, &package).unwrap();
        let has = |kind, name: &str| of(kind).iter().any(|one| one == name);
        assert!(has(Kind::Plain, "launcher") && has(Kind::Hosts, "hosts_lanes"));
        assert!(has(Kind::Sockets, "sockets_udp") && has(Kind::Programs, "sockets_programs"));
        let all = [Kind::Plain, Kind::Hosts, Kind::Sockets, Kind::Programs].map(|kind| of(kind).len());
        let files = std::fs::read_dir(package.join("tests")).unwrap().filter_map(Result::ok);
        let files = files.filter(|file| file.path().extension().is_some_and(|ending| ending == "rs")).count();
        assert_eq!(all.iter().sum::<usize>(), files);
    }
}

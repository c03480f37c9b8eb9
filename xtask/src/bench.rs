//! `cargo xtask bench`: the release build, then `weft bench`.

use anyhow::Result;
use std::fs;

use crate::command::{ToolProgram, cargo, root, target};
use crate::install;
use crate::machine::{self, Need};

pub fn run(arguments: &[String]) -> Result<()> {
    machine::provide(&[Need::CCompiler, Need::PythonVenv])?;
    let prefix = install::tree(false)?;
    let bench = ToolProgram::new(prefix.join("bin/weft")).args(["bench"]).args(arguments);
    if !arguments.first().is_some_and(|what| ["apps", "figures"].contains(&what.as_str())) {
        return bench.run();
    }
    let packages = applications()?;
    if !packages.is_empty() {
        let words = packages.iter().flat_map(|package| ["-p", package]);
        cargo(&["build", "--release"]).args(words).run()?;
    }
    bench.args(["--programs"]).args([target().join("release")]).run()
}

/// The packages of `apps` that are programs.
fn applications() -> Result<Vec<String>> {
    let mut packages = Vec::new();
    for folder in fs::read_dir(root().join("apps"))? {
        let folder = folder?;
        if folder.path().join("src/main.rs").is_file() {
            packages.push(format!("weft-app-{}", folder.file_name().to_string_lossy()));
        }
    }
    packages.sort();
    Ok(packages)
}

//! C programs of `tests/c/pvm`.

use crate::{root, tree};
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// Compiles one of them into the folder.
///
/// # Panics
/// When it does not compile without a warning.
pub fn compiled(folder: &TempDir, name: &str) -> PathBuf {
    let (tree, program) = (tree(), folder.path().join(name));
    let source = root().join("tests/c/pvm").join(name).with_extension("c");
    let flags = ["-std=gnu99", "-Wall", "-Wextra", "-Werror", "-O1", "-I"];
    let mut command = Command::new("cc");
    command.args(flags).arg(tree.join("include")).arg("-o").arg(&program).arg(source);
    let rpath = format!("-Wl,-rpath,{}", tree.join("lib").display());
    let output = command.arg("-L").arg(tree.join("lib")).args(["-lpvm3", &rpath]).output().expect("a compiler");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    program
}

//! C programs of `tests/c/mpi` on several ranks.

use crate::{root, tree};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const SOURCES: &str = "tests/c/mpi";

/// Where one of the C programs stands.
pub fn source(name: &str) -> PathBuf {
    root().join(SOURCES).join(name).with_extension("c")
}

/// Compiles one of the C programs into the folder, with more arguments for the compiler.
///
/// # Panics
/// When it does not compile without a warning.
pub fn compile(folder: &Path, name: &str, more: &[&str]) -> PathBuf {
    compile_from(SOURCES, folder, name, more)
}

/// The same of a program that stands elsewhere.
///
/// # Panics
/// As [`compile`].
pub fn compile_from(sources: &str, folder: &Path, name: &str, more: &[&str]) -> PathBuf {
    let program = folder.join(name);
    let source = root().join(sources).join(name).with_extension("c");
    let flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-pthread", "-o"];
    let output = Command::new(tree().join("bin/mpicc")).args(flags).arg(&program).arg(source).args(more).output();
    let output = output.expect("mpicc can be started");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    program
}

/// The command that runs a program on so many ranks.
pub fn command(program: &Path, ranks: u32, arguments: &[&str]) -> Command {
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["run", "--timeout", "60", "-n", &ranks.to_string()]).arg(program).args(arguments);
    command
}

/// Asserts that the program ended well and said `ok`, and nothing else.
///
/// # Panics
/// When it did not.
pub fn assert_ok(what: &str, output: &Output) {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out == "ok\n", "{what}: {}\n{out}{err}", output.status);
}

/// Runs one of the C programs on each number of ranks; each says `ok` at its end.
///
/// # Panics
/// When it does not.
pub fn passes(name: &str, ranks: &[u32]) {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compile(folder.path(), name, &[]);
    for &ranks in ranks {
        let output = command(&program, ranks, &[]).output().expect("weft can be started");
        assert_ok(&format!("{name} on {ranks} ranks"), &output);
    }
}

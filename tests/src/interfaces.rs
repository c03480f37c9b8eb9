//! C and Fortran programs for the libraries of the smaller interfaces.

use crate::{root, tree};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles `source`, whose ending says the language, into the folder, for the installed libraries of these
/// names. `more` goes before the source.
///
/// # Panics
/// When it does not compile; C also when there is a warning.
pub fn compile(folder: &Path, source: &str, libraries: &str, more: &[&str]) -> PathBuf {
    let source = root().join(source);
    let is_fortran = source.extension().is_some_and(|ending| ending != "c");
    let compiler = if is_fortran { "gfortran" } else { "cc" };
    let program = folder.join(source.file_stem().expect("a name"));
    let tree = tree();
    let lib = tree.join("lib");
    let mut command = Command::new(compiler);
    // Old programs call one procedure with arrays of several types.
    command.args(if is_fortran { &["-O1", "-std=legacy", "-w"][..] } else { &["-O1", "-Wall", "-Wextra", "-Werror"] });
    command.arg("-I").arg(tree.join("include")).args(more).arg(&source).arg("-o").arg(&program).arg("-L").arg(&lib);
    command.args(libraries.split(' ').map(|library| format!("-l{library}")));
    let output = command.arg(format!("-Wl,-rpath,{}", lib.display())).output().expect("a compiler can be started");
    assert!(output.status.success(), "{}: {}", source.display(), String::from_utf8_lossy(&output.stderr));
    program
}

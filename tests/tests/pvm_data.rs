//! PVM: packing, errors and Fortran, as programs call them that are compiled against what was installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use weft_tests::ranks::assert_ok;
use weft_tests::{root, tree};

/// Compiles a program; the library is found when it runs.
fn compile(compiler: &str, folder: &Path, source: &str, more: &[&str]) -> PathBuf {
    let (lib, program) = (tree().join("lib"), folder.join("program"));
    let mut command = Command::new(compiler);
    command.arg("-o").arg(&program).arg(root().join("tests").join(source)).args(more);
    command.arg("-I").arg(tree().join("include")).arg("-L").arg(&lib).arg("-lpvm3");
    let output = command.arg(format!("-Wl,-rpath,{}", lib.display())).output().expect("the compiler can be started");
    assert!(output.status.success(), "{source}: {}", String::from_utf8_lossy(&output.stderr));
    program
}

/// In a virtual machine of its own.
fn run(program: &Path) -> Output {
    let machine = format!("data-{}", std::process::id());
    Command::new(program).env("PVM_VMID", machine).output().expect("it can be started")
}

#[test]
fn what_c_programs_pack_they_unpack_and_wrong_numbers_are_told() {
    let folder = TempDir::new().expect("there is room for a folder");
    let flags = ["-std=c99", "-Wall", "-Wextra", "-Werror"];
    // Without position-independent code the library's variables are the program's.
    for more in [&["-O2"][..], &["-O0", "-no-pie", "-fno-pie"]] {
        let program = compile("cc", folder.path(), "c/pvm/pack.c", &[&flags[..], more].concat());
        let output = run(&program);
        let err = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = err.lines().map(|line| line.split_once("]: ").map_or(line, |parts| parts.1)).collect();
        let known = ["pvm_initsend(): Bad parameter", "pvm_freebuf(): No such buffer", "here: No such buffer"];
        assert!(output.status.success() && output.stdout == b"ok\n", "{more:?}: {err}");
        assert_eq!(lines, known);
        assert!(err.lines().all(|line| line.starts_with("libpvm [pid")), "{err}");
    }
}

#[test]
fn what_one_task_packs_another_unpacks_in_every_encoding() {
    let folder = TempDir::new().expect("there is room for a folder");
    let flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1"];
    let program = compile("cc", folder.path(), "c/pvm/encodings.c", &flags);
    assert_ok("encodings", &run(&program));
}

#[test]
fn fortran_programs_in_both_forms_pack_and_unpack() {
    let folder = TempDir::new().expect("there is room for a folder");
    for source in ["fortran/pvm.f", "fortran/pvm.f90"] {
        let program = compile("gfortran", folder.path(), source, &["-O1", "-fallow-argument-mismatch", "-w"]);
        assert_ok(source, &run(&program));
    }
}

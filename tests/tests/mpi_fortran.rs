//! Programs in Fortran, in each of the three interfaces, on several ranks.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use weft_tests::ranks::{assert_ok, command};
use weft_tests::{root, tree};

fn source(name: &str) -> PathBuf {
    root().join("tests/fortran").join(name)
}

fn compile(folder: &Path, compiler: &str, sources: &[PathBuf], more: &[&str]) -> PathBuf {
    let program = folder.join("program");
    let mut command = Command::new(tree().join("bin").join(compiler));
    command.current_dir(folder).args(["-O2", "-w", "-cpp"]).args(more).arg("-o").arg(&program).args(sources);
    let output = command.output().expect("the command for compiling can be started");
    assert!(output.status.success(), "{sources:?}: {}", String::from_utf8_lossy(&output.stderr));
    program
}

fn passes(compiler: &str, name: &str, more: &[PathBuf]) {
    let folder = TempDir::new().expect("there is room for a folder");
    let sources: Vec<PathBuf> = std::iter::once(source(name)).chain(more.iter().cloned()).collect();
    let program = compile(folder.path(), compiler, &sources, &[]);
    for ranks in [1, 2, 3] {
        let file = folder.path().join(format!("file.{ranks}"));
        let output = command(&program, ranks, &[file.to_str().expect("a plain path")]).output();
        assert_ok(&format!("{name} on {ranks} ranks"), &output.expect("weft can be started"));
    }
}

#[test]
fn mpif_h_in_fixed_form() {
    passes("mpif77", "old.f", &[]);
}

#[test]
fn the_module_mpi() {
    passes("mpif90", "module.f90", &[]);
}

#[test]
fn the_module_mpi_f08_and_what_c_finds_of_it() {
    let folder = TempDir::new().expect("there is room for a folder");
    let object = folder.path().join("seen.o");
    let mut mpicc = Command::new(tree().join("bin/mpicc"));
    let output = mpicc.args(["-Wall", "-Werror", "-c", "-o"]).arg(&object).arg(source("seen.c")).output();
    assert!(output.expect("mpicc can be started").status.success());
    passes("mpifort", "new.f90", &[object]);
}

fn weft(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(arguments).envs(environment.iter().copied()).output().expect("weft can be started")
}

#[test]
fn a_compiler_that_is_missing_is_named_with_what_to_install() {
    let output = weft(&["fc", "a.f90"], &[("WEFT_FC", "no-such-fortran")]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.lines().count() == 1, "{text}");
    assert!(text.contains("no-such-fortran") && text.contains("apt-get install gfortran"), "{text}");
}

#[test]
fn questions_are_answered_with_the_folder_of_the_modules() {
    let output = weft(&["fc", "-showme:incdirs"], &[]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let holds = |name: &str| text.split_whitespace().any(|folder| Path::new(folder).join(name).exists());
    assert!(holds("mpif.h") && holds("mpi.mod") && holds("mpi_f08.mod"), "{text}");
}

#[test]
fn modules_are_made_in_a_private_folder_where_nothing_else_can_be_written() {
    let temporary = TempDir::new().expect("there is room for a folder");
    let copy = temporary.path().join("weft_mpi.f90");
    std::fs::copy(tree().join("include/fortran/weft_mpi.f90"), &copy).expect("the source is installed");
    let script = "cd $0/include && mount -t tmpfs none fortran && cp $1 fortran && mount -o remount,ro none fortran && \
                  exec $0/bin/weft fc -showme:incdirs";
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script]).arg(tree()).arg(&copy);
    command.env_remove("HOME").env_remove("XDG_CACHE_HOME").env("TMPDIR", temporary.path());
    let output = command.output().expect("unshare can be started");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let ours = |folder: &&str| Path::new(folder).starts_with(temporary.path());
    let made = out.split_whitespace().find(ours).unwrap_or_else(|| panic!("{out}{err}"));
    assert!(Path::new(made).join("mpi_f08.mod").exists(), "{out}{err}");
    let mode =
        std::fs::metadata(Path::new(made).parent().expect("a folder")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}
